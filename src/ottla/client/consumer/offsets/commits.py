"""Commit offsets to the group coordinator (OffsetCommit).

Everything runs in the user's thread: requests are sent and responses handled while the user polls or waits here.

A commit contains the member id and the generation (or member epoch). The coordinator rejects commits of earlier
generations, so a member that has lost a partition cannot move its offset back. The generation of an asynchronous commit
is read when the user calls `commit_async`, even if the request is sent later. Commits of one consumer reach the
coordinator in the order of the calls: a synchronous commit first waits for the asynchronous ones.

Corresponds to the commit methods of Java's ConsumerCoordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.coordinator_errors import REMEDIES
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.consumer.events import Committed
from ottla.client.metadata.metadata_snapshot import NO_ID
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
REBALANCED_TEXT = (
    "the offsets were not committed: the group has rebalanced, and other members may own the partitions. If processing "
    "takes longer than max.poll.interval.ms, raise it or lower max.poll.records"
)
NOT_A_MEMBER_TEXT = (
    "the offsets were not committed: this consumer was removed from its group; the next poll() joins again"
)
REBALANCING_TEXT = (
    "the offsets were not committed: the group is rebalancing. Call poll() until the rebalance ends, then commit for the "
    "partitions that are still assigned"
)
MEMBERSHIP_LOST = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND})
LOST_COORDINATOR = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
RETRIABLE_ERRORS = frozenset(
    {
        *LOST_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.STALE_MEMBER_EPOCH,  # the member has a newer epoch meanwhile, and retries with that
    }
)


class OffsetCommits:
    """Commits that wait for the coordinator lookup, and commits in flight."""

    def __init__(
        self,
        config: ConsumerConfig,
        client: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        backoff: ExponentialBackoff,
        group_metadata: Callable[[], ConsumerGroupMetadata],
        owned: Callable[[], Collection[TopicPartition]],
        events: EventStream,
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self._unfinished: set[Future[None]] = set()
        """Asynchronous commits without a result so far."""
        self.on_committed: Callable[[dict[TopicPartition, OffsetAndMetadata]], None] | None = None
        """Called with the offsets that the coordinator has stored."""
        self._config = config
        self._client = client
        self._clock = client.client.clock
        self._finder = finder
        self._backoff = backoff
        self._group_metadata = group_metadata
        self._owned = owned
        self._events = events
        self.latency = Sensor()
        """Seconds of each commit with a response."""
        self._log = log
        self._waiting: list[tuple[ConsumerGroupMetadata, dict[TopicPartition, OffsetAndMetadata], Future[None]]] = []
        """The member, the offsets and the future of each waiting commit.

        The member is read when the user calls `commit_async`. If the partitions are reassigned before the coordinator
        is found, the coordinator rejects the commit.
        """

    def commit(self, offsets: Offsets, timeout: float) -> Steps[None]:
        """Commit and wait for the response. Retriable errors are retried for up to `timeout` seconds."""
        deadline = Deadline.after(timeout, self._clock.monotonic())
        attempts, last_error = 0, None
        owned = offsets.keys() & set(self._owned())
        yield from self.await_pending(deadline)
        while offsets:
            node = yield from self._finder.await_node(deadline, "the offsets were not committed", last_error)
            future = self._send(node, self._group_metadata(), offsets)
            if not (yield from self._client.wait_until(future.done, deadline.at)):
                raise self._finder.timeout_error(deadline, "the offsets were not committed", last_error)
            error = future.exception(0)
            if error is None:
                return
            if not is_retriable(error):
                raise error
            last_error = error if is_broker_error(error) else last_error
            attempts += 1
            yield from self._pause(attempts, deadline)
            if not owned <= set(self._owned()):  # another task has polled meanwhile and partitions were revoked
                raise CommitFailedError(ErrorCode.REBALANCE_IN_PROGRESS, REBALANCED_TEXT)

    def commit_async(self, offsets: Offsets) -> Future[None]:
        """Commit without waiting. The future is completed while the user polls, commits or closes."""
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
        """Send the commits that waited for the coordinator. Return the seconds until the next call."""
        if not self._waiting:
            return FOREVER
        now = self._clock.monotonic()
        node = self._finder.node
        if node is None:
            return self._finder.ensure_lookup(now)
        waiting, self._waiting = self._waiting, []
        for member, offsets, future in waiting:
            self._send(node, member, offsets).add_done_callback(partial(copy_result, future))
        return FOREVER

    def await_pending(self, deadline: Deadline) -> Steps[bool]:
        """Wait for the results of all asynchronous commits. Return False if the deadline passes first."""
        while self.pending:
            wait = self.send_waiting()
            now = self._clock.monotonic()
            if now >= deadline.at:
                return False
            yield min(wait, deadline.at - now)
        return True

    @property
    def pending(self) -> int:
        """The number of asynchronous commits without a result so far."""
        return len(self._unfinished)

    def reset(self, error: Exception) -> None:
        """Fail the commits in flight; their responses may never be handled."""
        self._waiting = []
        for future in list(self._unfinished):
            future.set_exception(error)
        self._unfinished.clear()

    def fail_unsent(self, error: Exception) -> None:
        """Fail the commits that were not sent."""
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
            done.add_done_callback(partial(self._publish_result, offsets))
        if self.on_committed is not None:
            done.add_done_callback(partial(self._report_committed, offsets))
        sent = self._client.send(node, request, max_version=None if ids else LAST_VERSION_WITH_NAMES)
        names, requested = {topic_id: name for name, topic_id in ids.items()}, self._clock.monotonic()
        sent.add_done_callback(partial(self._handle, done, names, requested))
        self._client.transmit_sends()
        return done

    def _ids(self, topics: Iterable[str]) -> dict[str, UUID]:
        """Return the ids of these topics, or an empty dict unless all are known.

        With an id, a commit cannot apply to a recreated topic.

        Only for KIP-848 members, as in Java: a classic member may commit for a recreated topic.
        """
        if self._config.group_protocol != "consumer":
            return {}
        cluster = self._client.metadata.cluster
        ids = {name: cluster.topic_id(name) for name in topics}
        return {} if NO_ID in ids.values() else ids

    def _handle(
        self, done: Future[None], names: Mapping[UUID, str], requested: float, sent: Future[ClientResponse]
    ) -> None:
        error = sent.exception(0)
        if error is not None:
            self._finder.mark_unknown(error)
            done.set_exception(error)
            return
        self.latency.record(self._clock.monotonic() - requested)
        for topic in sent.result(0).message.topics:
            for part in topic.partitions:
                if part.error_code:
                    tp = TopicPartition(topic.name or names.get(topic.topic_id, ""), part.partition_index)
                    self._log.debug("offset commit failed partition=%s error_code=%d", tp, part.error_code)
                    done.set_exception(self._failure(part.error_code, tp))
                    return
        done.set_result(None)

    def _failure(self, code: int, tp: TopicPartition) -> Exception:
        if code in LOST_COORDINATOR:
            self._finder.mark_unknown(ErrorCode(code).name)
        if code in MEMBERSHIP_LOST:
            return CommitFailedError(code, REBALANCED_TEXT)
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            return RebalanceInProgressError(code, REBALANCING_TEXT)
        remedy = REMEDIES.get(code)
        return error_for(code, remedy(self._config) if remedy else f"the offset of {tp} was not committed")

    def _pause(self, attempts: int, deadline: Deadline) -> Steps[None]:
        return self._client.wait_for_time(min(deadline.at, self._clock.monotonic() + self._backoff.span(attempts)))

    def _publish_result(self, offsets: Offsets, done: Future[None]) -> None:
        error = done.exception(0)
        committed = {tp: offset.offset for tp, offset in offsets.items()}
        self._events.publish(Committed(committed, "" if error is None else str(error)))

    def _report_committed(self, offsets: Offsets, done: Future[None]) -> None:
        if self.on_committed is not None and done.exception(0) is None:
            self.on_committed(dict(offsets))


def is_retriable(error: Exception) -> bool:
    """Return True if a failed commit is retried automatically."""
    if isinstance(error, KafkaError):
        return error.code in RETRIABLE_ERRORS or error.code == ErrorCode.NETWORK_EXCEPTION or error.retriable
    return isinstance(error, KafkaTimeoutError)


def is_broker_error(error: Exception) -> bool:
    """Return True if the error was returned by a coordinator, in contrast to a lost connection."""
    return isinstance(error, KafkaError) and error.code != ErrorCode.NETWORK_EXCEPTION


def copy_result(future: Future[None], done: Future[None]) -> None:
    error = done.exception(0)
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
