"""A rebalance of the classic protocol, as the user's thread goes through it.

Gives up what must be given up, joins, takes what was assigned. Each step goes on where the one before has ended, in this
call of `poll` or a later one:

    something else to share out ─► commit ─► give up ─► JoinGroup … SyncGroup ─► commit what goes ─► give it up ─► take

Eager assignors have everybody give up everything before JoinGroup, so that nobody reads while partitions change
hands. Cooperative ones (KIP-429) have a member keep reading what it has, and say so in JoinGroup. What the leader
then wants to move it gives to nobody for one generation: its owner finds it missing from its share, commits, gives it
up, and asks for a second rebalance, in which it is free. An owner whose generation is over by then says nothing of
it: what it had may be another's.

Offsets are committed before a partition is given up and under the generation in which it was read; with the next one
the coordinator would refuse them. That is why `commit_first` comes before `join`, and why what is about to go is held
back from the user at once: what it is not given needs no commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ottla.client.consumer.assignors.assignor import Assignor, RebalanceProtocol, Subscription
from ottla.client.consumer.assignors.choice import common_protocol
from ottla.client.consumer.assignors.wire import decode_assignment, encode_subscription
from ottla.client.consumer.coordinator.generation import NO_GENERATION, Generation
from ottla.client.consumer.group.membership.classic_member import Assigned
from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.partition_exchange import compared, listed, nothing
from ottla.client.consumer.group.parts import GroupParts
from ottla.client.consumer.group.topic_watch import TopicWatch
from ottla.model import FOREVER, TopicPartition
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol


class ClassicRebalance:
    """What is to be done between one generation and the next."""

    def __init__(
        self,
        parts: GroupParts,
        membership: ClassicMembership,
        topics: TopicWatch,
        assignors: Mapping[str, Assignor],
        request_rejoin: Callable[[str], None],
    ) -> None:
        self.protocol = common_protocol(assignors.values())
        self.taken_as = NO_GENERATION
        """The generation in which partitions were assigned last; also once it is lost."""
        self._membership = membership
        self._topics = topics
        self._assignors = assignors
        self._request_rejoin = request_rejoin
        self._lock, self._wake_thread, self._log = parts.lock, parts.wake_thread, parts.log
        self._subscriptions, self._exchange, self._auto_commit = parts.subscriptions, parts.exchange, parts.auto_commit
        self._rack = parts.config.client_rack or None

    def look(self) -> None:
        """What is under way is waited for, also where the generation is over by now."""

    def proceed(self, now: float) -> None:
        """Go on with the rebalance that is under way, as far as it goes."""
        with self._lock:
            assigned = self._membership.take_assigned()
        if assigned is not None:
            self._on_assigned(assigned, now)
        with self._lock:
            must_prepare = self._membership.must_prepare
        if not self._exchange.waits and must_prepare and not self._topics.awaits_pattern():
            self._prepare(now)

    def wait_span(self, now: float) -> float:
        """Seconds until there is something to do that nobody tells of."""
        return FOREVER

    def restart(self) -> None:
        """Join again: an exception has ended a step half done."""
        self._request_rejoin("an exception ended a poll in the middle of a rebalance")

    def reset(self) -> None:
        self.taken_as = NO_GENERATION

    def _prepare(self, now: float) -> None:
        """Before a rebalance: commit, and then give up and join."""
        generation = self._membership.generation
        offsets = self._exchange.consumed()
        if not offsets or generation.is_none:
            self._give_up_and_join()
        else:
            self._exchange.commit_first(self._to_give_up(generation), offsets, now, self._give_up_and_join)

    def _to_give_up(self, generation: Generation) -> list[TopicPartition]:
        """What must be given up before a rebalance."""
        owned = self._subscriptions.assigned()
        if self.protocol is RebalanceProtocol.EAGER or generation.is_none:
            return list(owned)
        return [tp for tp in owned if tp.topic not in self._subscriptions.topics]

    def _give_up_and_join(self) -> None:
        generation = self._membership.generation  # read once: the heartbeat's thread may lose it meanwhile
        gone = self._to_give_up(generation)
        self._exchange.give_up(gone, lost=generation.is_none, then=partial(self._join, generation))

    def _join(self, generation: Generation) -> None:
        topics = self._subscriptions.topics
        self._topics.joined()
        owned = tuple(self._subscriptions.assigned())
        protocols = []
        for name, assignor in self._assignors.items():
            subscription = Subscription(
                topics=tuple(sorted(topics)),
                user_data=assignor.subscription_user_data(topics),
                owned_partitions=owned,
                generation_id=generation.generation_id,
                rack_id=self._rack,
            )
            protocols.append(JoinGroupRequestProtocol(name, encode_subscription(subscription)))
        with self._lock:
            self._membership.join(protocols, generation)
        self._wake_thread()

    def _on_assigned(self, assigned: Assigned, now: float) -> None:
        """After a rebalance: give up what went to others, once its offsets are committed, and begin with what came."""
        self.taken_as = assigned.generation
        if assigned.counts is not None:
            self._topics.led(assigned.counts, now)
        self._auto_commit.later(now)
        given = list(decode_assignment(assigned.data).partitions)
        strangers = [tp for tp in given if not self._topics.wants(tp.topic)]
        if strangers:
            self._log.warning(
                "the group gave us %s, but we subscribe to %s by now: joining again",
                listed(given),
                sorted(self._subscriptions.topics),
            )
            self._request_rejoin(f"{listed(given)} is not what we subscribe to by now")
            return
        self._log.info("Updating assignment with\n%s", compared(given, self._subscriptions.assigned()))
        gone = [tp for tp in self._subscriptions.assigned() if tp not in set(given)]
        offsets = self._exchange.consumed(gone)
        then = partial(self._finish, assigned, given)
        if gone and offsets:
            self._exchange.commit_first(gone, offsets, now, then)
        else:
            then()

    def _finish(self, assigned: Assigned, given: list[TopicPartition]) -> None:
        if self._membership.generation != assigned.generation:
            return  # the generation was over while offsets were committed; the next rebalance sees to it
        owned = set(self._subscriptions.assigned())
        gone = sorted(owned.difference(given))
        added = sorted(set(given).difference(owned))
        assignor = self._assignors[assigned.generation.protocol_name or ""]
        assignment = decode_assignment(assigned.data)

        def begin() -> None:
            if gone:
                self._request_rejoin(f"{listed(gone)} are given up, for others to take")
            self._log.info("given: %s", listed(given))
            assignor.on_assignment(assignment, assigned.generation.generation_id)
            self._exchange.assign(given, added, nothing)

        self._exchange.give_up(gone, lost=False, then=begin)
