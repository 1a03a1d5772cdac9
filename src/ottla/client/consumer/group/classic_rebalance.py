"""A rebalance of the classic protocol in the user's thread.

The member revokes partitions, joins, and receives the assignment. Each step continues where the last one ended, in the
same call of `poll` or a later one:

    change ─► commit ─► revoke ─► JoinGroup … SyncGroup ─► commit removed partitions ─► revoke them ─► assign

With eager assignors every member revokes all partitions before JoinGroup, so that no partition is read while it moves.
With cooperative assignors (KIP-429) a member continues to read its partitions, and lists them in JoinGroup. A partition
that should move takes two rebalances. In the first one the leader assigns it to no member; its owner commits, revokes
it and requests the second rebalance. In the second one the leader assigns it to its new owner. If a member's generation
is no longer valid when it joins, its partitions are lost, and it does not list them.

Offsets are committed before a partition is revoked, with the generation in which its records were read; the coordinator
would reject the commit in the next generation. Therefore `commit_first` precedes `join`. Records of partitions being
revoked are no longer returned, so the commit includes everything that the user has received.

Corresponds to onJoinPrepare and onJoinComplete of Java's ConsumerCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ottla.client.consumer.assignors.assignor import Assignor, RebalanceProtocol, Subscription
from ottla.client.consumer.assignors.choice import common_protocol
from ottla.client.consumer.assignors.wire import decode_assignment, encode_subscription
from ottla.client.consumer.coordinator.generation import NO_GENERATION, Generation
from ottla.client.consumer.group.membership.classic_member import AssignedPartitions
from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.partition_exchange import describe_change, do_nothing, format_partitions
from ottla.client.consumer.group.parts import GroupParts
from ottla.client.consumer.group.topic_watch import TopicWatch
from ottla.model import FOREVER, TopicPartition
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol


class ClassicRebalance:
    """The steps in the user's thread between two generations."""

    def __init__(
        self,
        parts: GroupParts,
        membership: ClassicMembership,
        topics: TopicWatch,
        assignors: Mapping[str, Assignor],
        request_rejoin: Callable[[str], None],
    ) -> None:
        self.protocol = common_protocol(assignors.values())
        self.assigned_generation = NO_GENERATION
        """The generation of the last assignment; kept after the generation is lost."""
        self._membership = membership
        self._topics = topics
        self._assignors = assignors
        self._request_rejoin = request_rejoin
        self._lock, self._wake_thread, self._log = parts.lock, parts.wake_thread, parts.log
        self._subscriptions, self._exchange, self._auto_commit = parts.subscriptions, parts.exchange, parts.auto_commit
        self._rack = parts.config.client_rack or None

    def drop_obsolete_wait(self) -> None:
        """Do nothing: a pending commit or callback is awaited even if the generation has ended."""

    def proceed(self, now: float) -> None:
        """Continue the rebalance in progress as far as possible."""
        with self._lock:
            assigned = self._membership.take_assigned()
        if assigned is not None:
            self._on_assigned(assigned, now)
        with self._lock:
            must_prepare = self._membership.should_prepare
        if not self._exchange.is_waiting and must_prepare and not self._topics.is_awaiting_pattern():
            self._prepare(now)

    def wait_span(self, now: float) -> float:
        """Return infinity: other threads wake the user's thread for every step."""
        return FOREVER

    def restart(self) -> None:
        """Join again after an exception has interrupted a step."""
        self._request_rejoin("an exception ended a poll in the middle of a rebalance")

    def reset(self) -> None:
        self.assigned_generation = NO_GENERATION

    def _prepare(self, now: float) -> None:
        """Commit, then revoke and join."""
        generation = self._membership.generation
        offsets = self._exchange.consumed()
        if not offsets or generation.is_none:
            self._revoke_and_join()
        else:
            self._exchange.commit_first(self._partitions_to_revoke(generation), offsets, now, self._revoke_and_join)

    def _partitions_to_revoke(self, generation: Generation) -> list[TopicPartition]:
        """Return the partitions to revoke before a rebalance."""
        owned = self._subscriptions.assigned()
        if self.protocol is RebalanceProtocol.EAGER or generation.is_none:
            return list(owned)
        return [tp for tp in owned if tp.topic not in self._subscriptions.topics]

    def _revoke_and_join(self) -> None:
        generation = self._membership.generation  # read once, because the heartbeat thread may change it meanwhile
        removed = self._partitions_to_revoke(generation)
        self._exchange.revoke(removed, lost=generation.is_none, then=partial(self._join, generation))

    def _join(self, generation: Generation) -> None:
        topics = self._subscriptions.topics
        self._topics.record_join()
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

    def _on_assigned(self, assigned: AssignedPartitions, now: float) -> None:
        """Handle an assignment: commit and revoke removed partitions, then start with the new ones."""
        self.assigned_generation = assigned.generation
        if assigned.counts is not None:
            self._topics.record_assignment(assigned.counts, now)
        self._auto_commit.schedule_next(now)
        assigned_partitions = list(decode_assignment(assigned.data).partitions)
        unexpected = [tp for tp in assigned_partitions if not self._topics.is_subscribed(tp.topic)]
        if unexpected:
            self._log.warning(
                "assignment does not match the subscription; joining again assigned=%s subscribed=%s",
                format_partitions(assigned_partitions),
                sorted(self._subscriptions.topics),
            )
            self._request_rejoin(
                f"the assignment {format_partitions(assigned_partitions)} does not match the subscription"
            )
            return
        self._log.info(
            "Updating assignment with\n%s", describe_change(assigned_partitions, self._subscriptions.assigned())
        )
        removed = [tp for tp in self._subscriptions.assigned() if tp not in set(assigned_partitions)]
        offsets = self._exchange.consumed(removed)
        then = partial(self._finish, assigned, assigned_partitions)
        if removed and offsets:
            self._exchange.commit_first(removed, offsets, now, then)
        else:
            then()

    def _finish(self, assigned: AssignedPartitions, assigned_partitions: list[TopicPartition]) -> None:
        if self._membership.generation != assigned.generation:
            return  # the generation ended during the commit; the next rebalance handles it
        owned = set(self._subscriptions.assigned())
        removed = sorted(owned.difference(assigned_partitions))
        added = sorted(set(assigned_partitions).difference(owned))
        assignor = self._assignors[assigned.generation.protocol_name or ""]
        assignment = decode_assignment(assigned.data)

        def begin() -> None:
            if removed:
                self._request_rejoin(f"{format_partitions(removed)} were revoked for other members")
            self._log.info("Assignment complete partitions=%s", format_partitions(assigned_partitions))
            assignor.on_assignment(assignment, assigned.generation.generation_id)
            self._exchange.assign(assigned_partitions, added, do_nothing)

        self._exchange.revoke(removed, lost=False, then=begin)
