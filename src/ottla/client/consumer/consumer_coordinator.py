"""A consumer's part in its group, as seen by the user's thread.

Gives partitions up before a rebalance and takes them after it, calls the listener, commits. What is said to the
coordinator for membership the heartbeat's thread says. The two share a `Membership` under the one lock here, which is
held for decisions only: never while anything is sent, received, waited for, logged, or called that is not ours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from ottla.client.backoff import ExponentialBackoff
from ottla.client.cluster import Cluster
from ottla.client.consumer import events
from ottla.client.consumer.assignor_choice import common_protocol
from ottla.client.consumer.assignors.assignor import Assignor, RebalanceProtocol, Subscription
from ottla.client.consumer.assignors.wire import decode_assignment, encode_subscription
from ottla.client.consumer.auto_commit import AutoCommit
from ottla.client.consumer.committed_offsets import CommittedOffsets
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator_finder import CoordinatorFinder
from ottla.client.consumer.generation import NO_GENERATION, ConsumerGroupMetadata, Generation
from ottla.client.consumer.group_leader import GroupLeader
from ottla.client.consumer.group_log import group_log
from ottla.client.consumer.handover import Handover
from ottla.client.consumer.heartbeat import Heartbeat
from ottla.client.consumer.heartbeat_thread import HeartbeatThread
from ottla.client.consumer.membership import Assigned, Membership, MemberState
from ottla.client.consumer.offset_commits import (
    NOT_A_MEMBER,
    REBALANCING,
    OffsetCommits,
)
from ottla.client.consumer.rebalance_listener import Callback, RebalanceListener
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.consumer.topic_watch import TopicWatch
from ottla.client.deadline import Deadline
from ottla.client.future import Future
from ottla.client.steps import Steps
from ottla.errors import (
    CommitFailedError,
    ErrorCode,
    IllegalStateError,
    OttlaError,
    RebalanceInProgressError,
)
from ottla.model import Node, OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol
from ottla.trace import EventStream

FOREVER = float("inf")
LOST = (
    "Giving away all assigned partitions as lost since generation/memberID has been reset, "
    "indicating that consumer is in old state or no longer part of the group"
)
CLOSING = "the consumer is being closed"
UNSUBSCRIBED = "the consumer unsubscribed from all topics"
TOPICS_PATIENCE = 5.0
"""Seconds that a leader waits to hear of topics that only other members want."""


class ConsumerCoordinator:
    """Membership and commits of one consumer."""

    def __init__(
        self,
        config: ConsumerConfig,
        client_id: str,
        client: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        assignors: Mapping[str, Assignor],
        backoff: ExponentialBackoff,
        make_client: Callable[[], ConsumerNetworkClient],
        stream: EventStream,
        make_thread: Callable[..., HeartbeatThread] = HeartbeatThread,
    ) -> None:
        self.log = group_log(config, client_id)
        self.assignors = assignors
        self.protocol = common_protocol(assignors.values())
        self.listener: RebalanceListener = RebalanceListener()
        self._config = config
        self._client = client
        self._clock = client.client.clock
        self._metadata = client.metadata
        self._subscriptions = subscriptions
        self._backoff = backoff
        self._make_client = make_client
        self._make_thread = make_thread
        self._events = stream
        self._finder = CoordinatorFinder(client, config, backoff, self.log)
        self.commits = OffsetCommits(config, client, self._finder, backoff, self._place, stream, self.log)
        self.committed = CommittedOffsets(config, client, self._finder, subscriptions, backoff, self.log)
        self._auto_commit = AutoCommit(config, self.commits, self._clock, self.log)
        self._lock = threading.Lock()
        self.heartbeat = Heartbeat(
            interval_ms=config.heartbeat_interval_ms,
            session_timeout_ms=config.session_timeout_ms,
            max_poll_interval_ms=config.max_poll_interval_ms,
        )
        self._membership = Membership(config, self.heartbeat, backoff)
        self._thread: HeartbeatThread | None = None
        self._taken_as = NO_GENERATION
        self._disowned = False
        self._handover: Handover | None = None
        self._send_wait = 0.0
        self._topics = TopicWatch(
            subscriptions, self._metadata, self.request_rejoin, exclude_internal=config.exclude_internal_topics
        )
        self._complain_of_rare_heartbeats()

    @property
    def state(self) -> MemberState:
        """Where this member is on its way into the group."""
        return self._membership.state

    @property
    def node(self) -> Node | None:
        """The group's coordinator, as far as this thread knows."""
        return self._finder.node

    @property
    def heartbeat_thread(self) -> HeartbeatThread | None:
        """The thread that speaks to the coordinator; None before the first `poll` of a subscriber."""
        return self._thread

    def poll(self, now: float) -> None:
        """Do what is due. Blocks only where the listener does; raises what the user must hear."""
        if self._disowned:
            raise IllegalStateError("this client belongs to the process that forked this one; make a new one here")
        self._send_wait = self.commits.send_waiting()
        if self._subscriptions.by_group:
            self._topics.look()
            with self._lock:
                self._membership.heartbeat.poll(now)
                self._membership.subscribe()
                failure = self._membership.take_failure()
            self._finder.adopt(self._ensure_thread().finder.node)
            if failure is not None:
                raise failure
            self._rebalance(now)
        if self._handover is None and self._auto_commit.enabled:
            self._auto_commit.maybe_commit(now, self._consumed_by_member)

    def wait_span(self, now: float) -> float:
        """Seconds after which `poll` has something to do, unless the heartbeat's thread wakes the user's before."""
        spans = [self._send_wait, self._auto_commit.wait(now), self._config.max_poll_interval_ms / 3000]
        if self._handover is not None:
            spans.append(self._handover.deadline - now)
        return max(0.0, min(spans))

    def subscription_changed(self) -> None:
        """The user wants something else: the group is told at the next `poll`."""
        self._topics.changed(self._clock.monotonic())

    def request_rejoin(self, reason: str, *, resubscribed: bool = False) -> None:
        """Have the group rebalance."""
        with self._lock:
            self._membership.request_rejoin(reason, resubscribed=resubscribed)
        self._wake_thread()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The place in which this member was given its partitions; also once it is lost: nobody else read in it."""
        place = self._taken_as
        return ConsumerGroupMetadata(
            self._config.group_id or "", place.generation_id, place.member_id, self._config.group_instance_id
        )

    @property
    def listening(self) -> bool:
        """Whether a coroutine of the listener is under way."""
        return self._handover is not None and self._handover.listening

    def leave(self, reason: str = UNSUBSCRIBED, until: float = FOREVER) -> Steps[None]:
        """Give everything up and leave the group; the others hear of it while this goes on."""
        self._topics.forget()
        try:
            yield from self._hear_out(until)
            self._handover = None
            if self._subscriptions.by_group:
                lost = self._membership.generation.is_none
                self._give_up(list(self._subscriptions.assigned()), lost=lost, then=nothing)
                yield from self._hear_out(until)
        finally:
            self._handover = None
            self._taken_as = NO_GENERATION
            with self._lock:
                self._membership.leave(reason, self._clock.monotonic(), silently=self._stays_silent(reason))
                self._membership.unsubscribe()
            self._wake_thread()

    def close(self, deadline: Deadline) -> Steps[None]:
        """Commit what is to be committed, leave, and end the thread, by the deadline."""
        if self._disowned:
            return
        try:
            yield from self._commit_finally(deadline)
        finally:
            try:
                if self._subscriptions.by_group:
                    yield from self.leave(CLOSING, deadline.at)
            finally:
                yield from self._end_thread(deadline)

    def disown(self) -> None:
        """In a child that was forked: the membership is the parent's, and so may be whoever held the lock."""
        self._disowned = True
        self._lock = threading.Lock()
        self._thread = None

    def _complain_of_rare_heartbeats(self) -> None:
        config = self._config
        if config.heartbeat_interval_ms * 3 > config.session_timeout_ms:
            self.log.warning(
                "heartbeat.interval.ms = %d is more than a third of session.timeout.ms = %d: two lost heartbeats cost "
                "this member its partitions; lower it, or raise the session's",
                config.heartbeat_interval_ms,
                config.session_timeout_ms,
            )

    # Rebalances.

    def _rebalance(self, now: float) -> None:
        """Go on with the rebalance that is under way, as far as it goes."""
        while self._handover is not None:
            if not self._handover.due(now):
                return
            handover, self._handover = self._handover, None
            handover.then()
        with self._lock:
            assigned = self._membership.take_assigned()
        if assigned is not None:
            self._take(assigned, now)
        with self._lock:
            must_prepare = self._membership.must_prepare
        if self._handover is None and must_prepare and not self._topics.awaits_pattern():
            self._prepare(now)

    def _prepare(self, now: float) -> None:
        """Before a rebalance: commit, and then give up and join."""
        generation = self._membership.generation
        offsets = self._consumed()
        if not self._auto_commit.enabled or not offsets or generation.is_none:
            self._give_up_and_join()
        else:
            self._hand_over(self._to_give_up(generation), offsets, now, self._give_up_and_join)

    def _hand_over(
        self,
        gone: Iterable[TopicPartition],
        offsets: dict[TopicPartition, OffsetAndMetadata],
        now: float,
        then: Callable[[], None],
    ) -> None:
        self._subscriptions.hold_back(gone)
        commit = self._auto_commit.commit(offsets)
        self._handover = Handover(commit, then, now + self._config.max_poll_interval_ms / 1000)
        if commit.done():
            self._handover = None
            then()

    def _to_give_up(self, generation: Generation) -> list[TopicPartition]:
        """What must be given up before a rebalance."""
        owned = self._subscriptions.assigned()
        if self.protocol is RebalanceProtocol.EAGER or generation.is_none:
            return list(owned)
        return [tp for tp in owned if tp.topic not in self._subscriptions.topics]

    def _give_up_and_join(self) -> None:
        generation = self._membership.generation  # read once: the heartbeat's thread may lose it meanwhile
        self._give_up(self._to_give_up(generation), lost=generation.is_none, then=partial(self._join, generation))

    def _give_up(self, gone: list[TopicPartition], *, lost: bool, then: Callable[[], None]) -> None:
        """Tell the listener, have them no more, whatever it does, and go on."""

        def go_on() -> None:
            self._subscriptions.assign([tp for tp in self._subscriptions.assigned() if tp not in set(gone)])
            then()

        if not gone:
            go_on()
        elif lost:
            self.log.info(LOST)
            self.log.info("Lost previously assigned partitions %s", listed(gone))
            self._events.tell(events.Lost(tuple(sorted(gone))))
            self._tell(self.listener.on_partitions_lost, gone, go_on)
        else:
            self.log.info("Revoke previously assigned partitions %s", listed(gone))
            self._events.tell(events.Revoked(tuple(sorted(gone))))
            self._tell(self.listener.on_partitions_revoked, gone, go_on)

    def _tell(self, told: Callback, partitions: Iterable[TopicPartition], then: Callable[[], None]) -> None:
        """Call the listener, and go on when it has ended, whatever it did: later, where it began a coroutine."""
        outcome: Any = None
        try:
            outcome = told(sorted(partitions))
        finally:
            if not isinstance(outcome, Future):
                then()
        if isinstance(outcome, Future):
            self._handover = Handover(outcome, partial(go_on_after, outcome, then), listening=True)

    def _hear_out(self, until: float) -> Steps[None]:
        """Wait for a coroutine of the listener."""
        while (handover := self._handover) is not None and handover.listening:
            if not (yield from self._client.until(handover.waits_for.done, until)):
                return
            self._handover = None
            handover.then()

    def _join(self, generation: Generation) -> None:
        topics = self._subscriptions.topics
        self._topics.joined()
        owned = tuple(self._subscriptions.assigned())
        protocols = []
        for name, assignor in self.assignors.items():
            subscription = Subscription(
                topics=tuple(sorted(topics)),
                user_data=assignor.subscription_user_data(topics),
                owned_partitions=owned,
                generation_id=generation.generation_id,
                rack_id=self._config.client_rack or None,
            )
            protocols.append(JoinGroupRequestProtocol(name, encode_subscription(subscription)))
        with self._lock:
            self._membership.join(protocols, generation)
        self._wake_thread()

    def _take(self, assigned: Assigned, now: float) -> None:
        """After a rebalance: give up what went to others, once its offsets are committed, and begin with what came."""
        self._taken_as = assigned.generation
        if assigned.counts is not None:
            self._topics.led(assigned.counts, now)
        self._auto_commit.later(now)
        given = list(decode_assignment(assigned.data).partitions)
        strangers = [tp for tp in given if not self._topics.wants(tp.topic)]
        if strangers:
            self.log.warning(
                "We received an assignment %s that doesn't match our current subscription %s; it is likely that the "
                "subscription has changed since we joined the group, will re-join with current subscription",
                listed(given),
                sorted(self._subscriptions.topics),
            )
            self.request_rejoin(f"received assignment {listed(given)} that doesn't match the current subscription")
            return
        self._tell_assignment(given)
        gone = [tp for tp in self._subscriptions.assigned() if tp not in set(given)]
        offsets = self._consumed(gone)
        then = partial(self._finish, assigned, given)
        if gone and offsets and self._auto_commit.enabled:
            self._hand_over(gone, offsets, now, then)
        else:
            then()

    def _finish(self, assigned: Assigned, given: list[TopicPartition]) -> None:
        if self._membership.generation != assigned.generation:
            return  # the place was lost while offsets were committed; the next rebalance sees to it
        owned = set(self._subscriptions.assigned())
        gone = sorted(owned.difference(given))
        added = sorted(set(given).difference(owned))
        assignor = self.assignors[assigned.generation.protocol_name or ""]
        assignment = decode_assignment(assigned.data)

        def begin() -> None:
            if gone:
                self.request_rejoin(
                    f"need to revoke partitions {listed(gone)} as indicated by the current assignment and re-join"
                )
            self.log.info("Notifying assignor about the new Assignment(partitions=%s)", listed(given))
            assignor.on_assignment(assignment, assigned.generation.generation_id)
            self._subscriptions.assign(given)
            self.log.info("Adding newly assigned partitions: %s", ", ".join(map(str, added)))
            self._events.tell(events.Assigned(tuple(sorted(given)), tuple(added)))
            self._tell(self.listener.on_partitions_assigned, added, nothing)

        self._give_up(gone, lost=False, then=begin)

    def _tell_assignment(self, given: list[TopicPartition]) -> None:
        owned = set(self._subscriptions.assigned())
        self.log.info(
            "Updating assignment with\n"
            "\tAssigned partitions:                       %s\n"
            "\tCurrent owned partitions:                  %s\n"
            "\tAdded partitions (assigned - owned):       %s\n"
            "\tRevoked partitions (owned - assigned):     %s",
            listed(given),
            listed(owned),
            listed(set(given) - owned),
            listed(owned.difference(given)),
        )

    def _cluster_of(self, topics: Collection[str]) -> Cluster:
        """For the leader, in the heartbeat's thread: the cluster with these topics, as far as there are such."""
        cluster = self._metadata.cluster  # a snapshot, replaced as a whole
        if all(topic in cluster.topics for topic in topics):
            return cluster
        thread = self._thread
        assert thread is not None
        return thread.cluster_of(topics, TOPICS_PATIENCE)

    # The thread.

    def _ensure_thread(self) -> HeartbeatThread:
        if self._thread is not None and self._thread.is_alive():
            return self._thread
        client = self._make_client()
        finder = CoordinatorFinder(client, self._config, self._backoff, self.log)
        leader = GroupLeader(self.assignors, self.protocol, self._cluster_of, self.log)
        self._thread = self._make_thread(
            f"kafka-coordinator-heartbeat-thread | {self._config.group_id}",
            self._membership,
            self._lock,
            client,
            finder,
            leader.lead,
            self._client.client.wakeup,
            self._events,
            self.log,
        )
        self._thread.start()
        return self._thread

    def _wake_thread(self) -> None:
        if self._thread is not None:
            self._thread.wakeup()

    def _end_thread(self, deadline: Deadline) -> Steps[None]:
        with self._lock:
            self._membership.closing = True
        thread = self._thread
        if thread is None or not thread.is_alive():
            return
        thread.wakeup()
        while not thread.ended and (left := deadline.at - self._clock.monotonic()) > 0:
            try:
                yield left
            except OttlaError:  # the user's connections are in trouble, which is of no importance any more
                self._metadata.fatal = None
        if thread.ended:
            thread.join()

    def _stays_silent(self, reason: str) -> bool:
        return reason == CLOSING and not self._config.internal_leave_group_on_close

    # Commits.

    def _place(self) -> ConsumerGroupMetadata:
        """As whom to commit; raises when this is no member who may."""
        if not self._subscriptions.by_group:
            return ConsumerGroupMetadata(self._config.group_id or "")
        with self._lock:
            state, generation = self._membership.state, self._membership.generation
        if state is not MemberState.STABLE:
            if state is not MemberState.UNJOINED:
                raise RebalanceInProgressError(ErrorCode.REBALANCE_IN_PROGRESS, REBALANCING)
            raise CommitFailedError(ErrorCode.UNKNOWN_MEMBER_ID, NOT_A_MEMBER)
        return ConsumerGroupMetadata(
            self._config.group_id or "",
            generation.generation_id,
            generation.member_id,
            self._config.group_instance_id,
        )

    def _consumed(self, among: Collection[TopicPartition] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        consumed = self._subscriptions.consumed()
        return {tp: at for tp, at in consumed.items() if among is None or tp in among}

    def _consumed_by_member(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What may be committed now: a subscriber commits only as a member in good standing."""
        if self._subscriptions.by_group and self._membership.state is not MemberState.STABLE:
            return {}
        return self._consumed()

    def _commit_finally(self, deadline: Deadline) -> Steps[None]:
        left = deadline.at - self._clock.monotonic()
        offsets = self._consumed_by_member() if self._auto_commit.enabled else {}
        yield from self._auto_commit.commit_finally(offsets, left / 2)
        self.commits.give_up(IllegalStateError("the consumer was closed before the offsets could be committed"))


def go_on_after(outcome: Future[None], then: Callable[[], None]) -> None:
    """Go on, and then raise what the listener has raised."""
    then()
    error = outcome.exception(0)
    if error is not None:
        raise error


def nothing() -> None:
    """Where nothing is to be done."""


def listed(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as Kafka's logs show them."""
    return f"[{', '.join(map(str, sorted(partitions)))}]"
