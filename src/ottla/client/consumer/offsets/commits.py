"""Commits of offsets to the group's coordinator.

Everything happens in the thread of the user: requests leave and answers arrive while it polls or waits here.

A commit is made as somebody: member and generation (or epoch) travel with it, and the coordinator refuses those of
another time, so that who has lost a partition cannot move its offset back. Of commits in passing they are noted when
the user calls, not when the request leaves. Commits of one consumer reach the coordinator in the order they were
made: a waited one first waits for those in passing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.consumer.coordinator.refusals import REMEDIES
from ottla.client.consumer.events import Committed
from ottla.client.metadata.cluster import NO_ID
from ottla.client.metrics.sensor import Sensor
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import (
    CommitFailedError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    error_for,
)
from ottla.model import FOREVER, Node, OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.trace import EventStream

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], Any]
LAST_VERSION_WITH_NAMES = 9
REBALANCED = (
    "the offsets were not committed: the group rebalanced meanwhile, and others may have the partitions. Where records "
    "take longer than max.poll.interval.ms, raise it or lower max.poll.records"
)
NOT_A_MEMBER = (
    "the offsets were not committed: this consumer is no member of its group any more, which has put it out; "
    "the next poll() joins again"
)
REBALANCING = (
    "the offsets were not committed: the group is rebalancing. Call poll() until that is over, and commit what is "
    "still yours"
)
OUT = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND})
LOST_COORDINATOR = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
AGAIN = frozenset(
    {
        *LOST_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.STALE_MEMBER_EPOCH,  # the member has come to another since, and commits in that
    }
)


class OffsetCommits:
    """Commits that wait for the coordinator to be found, and those under way."""

    def __init__(
        self,
        config: ConsumerConfig,
        client: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        backoff: ExponentialBackoff,
        group_metadata: Callable[[], ConsumerGroupMetadata],
        held: Callable[[], Collection[TopicPartition]],
        events: EventStream,
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self._unfinished: set[Future[None]] = set()
        """Asynchronous commits without an outcome so far."""
        self.on_committed: Callable[[dict[TopicPartition, OffsetAndMetadata]], None] | None = None
        """Called with what the coordinator has taken."""
        self._config = config
        self._client = client
        self._clock = client.client.clock
        self._finder = finder
        self._backoff = backoff
        self._group_metadata = group_metadata
        self._held = held
        self._events = events
        self.latency = Sensor()
        """Seconds of each commit that was answered."""
        self._log = log
        self._waiting: list[tuple[ConsumerGroupMetadata, dict[TopicPartition, OffsetAndMetadata], Future[None]]] = []
        """As whom, what, and who wants to know. Who is that of the call: by the time the coordinator is found
        the partitions may be somebody else's, and the commit must fail."""

    def commit(self, offsets: Offsets, timeout: float) -> Steps[None]:
        """Commit and wait for the coordinator's word; tries again what may succeed later, up to `timeout` seconds."""
        deadline = Deadline.after(timeout, self._clock.monotonic())
        attempts, refused = 0, None
        held = offsets.keys() & set(self._held())
        yield from self.await_pending(deadline)
        while offsets:
            node = yield from self._finder.await_node(deadline, "the offsets were not committed", refused)
            future = self._send(node, self._group_metadata(), offsets)
            if not (yield from self._client.until(future.done, deadline.at)):
                raise self._finder.late(deadline, "the offsets were not committed", refused)
            error = future.exception(0)
            if error is None:
                return
            if not may_succeed_later(error):
                raise error
            refused = error if is_answer(error) else refused
            attempts += 1
            yield from self._pause(attempts, deadline)
            if not held <= set(self._held()):  # another task has polled meanwhile
                raise CommitFailedError(ErrorCode.REBALANCE_IN_PROGRESS, REBALANCED)

    def commit_async(self, offsets: Offsets) -> Future[None]:
        """Commit in passing; the future is completed while the user polls, commits or closes."""
        future: Future[None] = Future()
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        try:
            self._waiting.append((self._group_metadata(), dict(offsets), future))
        except KafkaError as error:
            future.set_exception(error)
        self.send_waiting()
        return future

    def send_waiting(self) -> float:
        """Send what waited for the coordinator; returns the seconds after which to try again."""
        if not self._waiting:
            return FOREVER
        now = self._clock.monotonic()
        node = self._finder.node
        if node is None:
            return self._finder.ensure(now)
        waiting, self._waiting = self._waiting, []
        for member, offsets, future in waiting:
            self._send(node, member, offsets).add_done_callback(partial(settle, future))
        return FOREVER

    def await_pending(self, deadline: Deadline) -> Steps[bool]:
        """Wait for the outcome of all asynchronous commits; False when `deadline` comes first."""
        while self.pending:
            wait = self.send_waiting()
            now = self._clock.monotonic()
            if now >= deadline.at:
                return False
            yield min(wait, deadline.at - now)
        return True

    @property
    def pending(self) -> int:
        """The number of asynchronous commits without an outcome so far."""
        return len(self._unfinished)

    def reset(self, error: Exception) -> None:
        """Fail the commits under way, whose answers may never be handled."""
        self._waiting = []
        for future in list(self._unfinished):
            future.set_exception(error)
        self._unfinished.clear()

    def give_up(self, error: Exception) -> None:
        """Nothing of what still waits will be sent."""
        waiting, self._waiting = self._waiting, []
        for *_, future in waiting:
            future.set_exception(error)

    def _send(self, node: Node, member: ConsumerGroupMetadata, offsets: Offsets) -> Future[None]:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for tp, offset in offsets.items():
            part = OffsetCommitRequestPartition(tp.partition, offset.offset, offset.leader_epoch, offset.metadata)
            topics.setdefault(tp.topic, []).append(part)
        ids = self._ids(topics)
        request = OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            topics=[
                OffsetCommitRequestTopic(name=name, topic_id=ids.get(name, NO_ID), partitions=parts)
                for name, parts in topics.items()
            ],
        )
        done: Future[None] = Future()
        if self._events.active:
            done.add_done_callback(partial(self._tell_outcome, offsets))
        if self.on_committed is not None:
            done.add_done_callback(partial(self._tell_committed, offsets))
        sent = self._client.send(node, request, max_version=None if ids else LAST_VERSION_WITH_NAMES)
        names, asked = {topic_id: name for name, topic_id in ids.items()}, self._clock.monotonic()
        sent.add_done_callback(partial(self._handle, done, names, asked))
        self._client.transmit_sends()
        return done

    def _ids(self, topics: Iterable[str]) -> dict[str, UUID]:
        """The ids of these topics, with which a commit cannot go to another topic of the same name; nothing without all.

        Only of members by KIP-848, as in Java: a classic one may commit for a topic that is made anew.
        """
        if self._config.group_protocol != "consumer":
            return {}
        cluster = self._client.metadata.cluster
        ids = {name: cluster.topic_id(name) for name in topics}
        return {} if NO_ID in ids.values() else ids

    def _handle(
        self, done: Future[None], names: Mapping[UUID, str], asked: float, sent: Future[ClientResponse]
    ) -> None:
        error = sent.exception(0)
        if error is not None:
            self._finder.mark_unknown(error)
            done.set_exception(error)
            return
        self.latency.record(self._clock.monotonic() - asked)
        for topic in sent.result(0).message.topics:
            for part in topic.partitions:
                if part.error_code:
                    tp = TopicPartition(topic.name or names.get(topic.topic_id, ""), part.partition_index)
                    self._log.debug("commit of %s: %d", tp, part.error_code)
                    done.set_exception(self._failure(part.error_code, tp))
                    return
        done.set_result(None)

    def _failure(self, code: int, tp: TopicPartition) -> Exception:
        if code in LOST_COORDINATOR:
            self._finder.mark_unknown(ErrorCode(code).name)
        if code in OUT:
            return CommitFailedError(code, REBALANCED)
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            return RebalanceInProgressError(code, REBALANCING)
        remedy = REMEDIES.get(code)
        return error_for(code, remedy(self._config) if remedy else f"the offset of {tp} was not committed")

    def _pause(self, attempts: int, deadline: Deadline) -> Steps[None]:
        return self._client.pause(min(deadline.at, self._clock.monotonic() + self._backoff.span(attempts)))

    def _tell_outcome(self, offsets: Offsets, done: Future[None]) -> None:
        error = done.exception(0)
        committed = {tp: offset.offset for tp, offset in offsets.items()}
        self._events.tell(Committed(committed, "" if error is None else str(error)))

    def _tell_committed(self, offsets: Offsets, done: Future[None]) -> None:
        if self.on_committed is not None and done.exception(0) is None:
            self.on_committed(dict(offsets))


def may_succeed_later(error: Exception) -> bool:
    """Whether a commit that failed so is to be tried again by itself."""
    if isinstance(error, KafkaError):
        return error.code in AGAIN or error.code == ErrorCode.NETWORK_EXCEPTION or error.retriable
    return isinstance(error, KafkaTimeoutError)


def is_answer(error: Exception) -> bool:
    """Whether a coordinator said so itself."""
    return isinstance(error, KafkaError) and error.code != ErrorCode.NETWORK_EXCEPTION


def settle(future: Future[None], done: Future[None]) -> None:
    error = done.exception(0)
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
