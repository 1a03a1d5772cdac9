"""The common part of the blocking and the asyncio consumer.

Nothing here waits for the network: changes take effect in the next calls that do.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic
from uuid import UUID

from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.consumer.group.rebalance_listener import RebalanceListener
from ottla.client.consumer.leave_on_exit import LeaveOnExit
from ottla.client.consumer.offset_queries import OffsetQueries
from ottla.client.consumer.offsets.commits import CommitCallback
from ottla.client.consumer.reading import RecordReader
from ottla.client.consumer.records import ConsumerRecords, RecordSlice
from ottla.client.consumer.snapshot import ConsumerSnapshot, take_snapshot
from ottla.client.consumer.subscription_pattern import SubscriptionPattern
from ottla.client.consumer.subscription_state import SubscriptionType
from ottla.client.consumer.typed_record import K, V
from ottla.client.interface.arguments import (
    LAST_OFFSET,
    checked_broker_pattern,
    checked_dict,
    checked_function,
    checked_offsets,
    checked_partition,
    checked_partitions,
    checked_pattern,
    checked_subscription,
    checked_text,
    checked_topic,
    checked_whole,
)
from ottla.client.interface.identity import describe_client
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import IllegalStateError
from ottla.model import EARLIEST, LATEST, OffsetAndMetadata, TopicPartition
from ottla.trace import CAPACITY, Trace

if TYPE_CHECKING:
    from ottla.client.metrics.client_metrics import ClientMetrics
    from ottla.records.columns import Columns

Topics = Iterable[str] | re.Pattern[str] | SubscriptionPattern
"""Topic names, or a pattern: a Python pattern is matched here, an RE2 pattern by the broker."""
Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]
PlainSetting = str | int | float | Sequence[object] | None
"""A value in a settings dict without deserializers; keys and values are then bytes."""


class ConsumerFace(Generic[K, V]):
    """Assignment, positions, pausing, metrics and tracing."""

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        self._core = ConsumerCore(config, keywords)
        self._reading = RecordReader(self._core)
        self._queries = OffsetQueries(self._core)
        self.config = self._core.config
        self.client_id = self._core.client_id
        self._core.on_closed = LeaveOnExit(self, self._core).detach
        if self.config.enable_metrics_push:
            self._core.client.client.telemetry.enable(partial(metrics_of, self._core), self._core.labels)
        if folder := os.environ.get("OTTLA_TRACE"):
            self._open_tracing_socket(folder)

    def _open_tracing_socket(self, folder: str) -> None:
        """Open the tracing socket in `folder` until this consumer is closed or garbage collected."""
        from ottla.tracing.trace_socket import maybe_listen

        core, client_id = self._core, self.client_id

        def snapshot() -> ConsumerSnapshot:  # holds the core only, so that this object can be garbage collected
            return take_snapshot(client_id, core.parts, core.clock.monotonic())

        socket = maybe_listen("consumer", client_id, core.events, snapshot, folder)
        if socket is not None:
            core.on_closed = call_in_order(core.on_closed, socket.close)
            weakref.finalize(self, socket.end)

    def __repr__(self) -> str:
        facts = [] if self.config.group_id is None else [f"group_id={self.config.group_id!r}"]
        assigned = len(list(self._core.subscriptions.assigned()))
        return describe_client(self, self._core.closed, *facts, f"{assigned} partitions assigned")

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group. Partitions that stay assigned keep their positions."""
        core = self._core
        with core.open():
            wanted = checked_partitions(partitions)
            core.subscriptions.set_type(SubscriptionType.PARTITIONS)
            core.subscriptions.rewind_unyielded()
            core.fetcher.clear_buffered(set(core.subscriptions.assigned()).difference(wanted))
            core.subscriptions.assign(wanted)
            core.metadata.track_only({tp.topic for tp in wanted}, core.clock.monotonic())

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern, the known topics that it matches."""
        subscriptions = self._core.subscriptions
        if subscriptions.broker_pattern is not None:  # known only through the assignment
            return {tp.topic for tp in subscriptions.assigned()}
        return set(subscriptions.topics)

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions."""
        return set(self._core.subscriptions.assigned())

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue reading at `offset`.

        If an OffsetAndMetadata has a leader epoch, the log is first checked for truncation (KIP-320).
        """
        whole, epoch = (offset.offset, offset.leader_epoch) if isinstance(offset, OffsetAndMetadata) else (offset, -1)
        if isinstance(whole, int) and whole < 0:
            raise ValueError(f"offset = {whole}: must not be negative; use seek_to_beginning() or seek_to_end()")
        whole = checked_whole("offset", whole, "the offset of a record")
        with self._core.open():
            tp = checked_partition(partition)
            self._core.subscriptions.state(tp)
            self._core.subscriptions.rewind_unyielded()
            self._core.subscriptions.seek(tp, whole, epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first offset of these partitions, or of all. The offset is looked up when needed."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue at the end of these partitions, or of all. The offset is looked up when needed."""
        self._seek_to(LATEST, partitions)

    def bound(self, ends: Mapping[TopicPartition, int | None]) -> None:
        """Read these partitions up to an offset, which is excluded; None removes the bound.

        `position` then stops at the bound, even if no record precedes it directly.
        """
        with self._core.open():
            wanted = [
                (self._core.subscriptions.state(checked_partition(tp)), check_end(tp, end))
                for tp, end in checked_dict("ends", ends, "{TopicPartition('flights', 0): 42}").items()
            ]
            for state, end in wanted:
                state.end = end

    def _begin_columns(
        self,
        timeout: float,
        max_bytes: int | None,
        include_headers: bool,
        only: tuple[str, ...] | None,
        needs_headers: bool,
    ) -> Steps[list[tuple[TopicPartition, Columns]]]:
        """Begin a poll of columns. Headers are read if they are asked for, or if values are decoded with them."""
        self._core.subscriptions.begin_poll()
        with_headers = needs_headers or (include_headers if only is None else "headers" in only)
        return self._reading.columns(timeout, max_bytes, with_headers=with_headers, only=only)

    def topic_id(self, topic: str) -> UUID:
        """Return the last known id of a topic, which distinguishes it from a recreated one; zero if unknown or not supported by the broker."""
        return self._core.metadata.cluster.topic_id(checked_topic(topic))

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop returning records of these partitions until `resume`. Buffered data is kept."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        self._set_paused(partitions, False)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        subscriptions = self._core.subscriptions
        return {tp for tp in subscriptions.assigned() if subscriptions.state(tp).is_paused}

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the offsets between the position and the last known end; None if the end is unknown."""
        tp = checked_partition(partition)
        state, position = self._core.subscriptions.state(tp), self._core.subscriptions.next_offset(tp)
        if state.readable_to is None or position is None:
            return None
        return max(0, state.readable_to - position)

    def trace(self, capacity: int = CAPACITY) -> Trace:
        """Return a trace of the events from now on, typed as in `ottla.client.consumer.events`.

        May be called at any time from any thread.
        """
        return self._core.events.trace(capacity)

    def snapshot(self) -> ConsumerSnapshot:
        """Return the state of all components. May be called at any time from any thread."""
        return take_snapshot(self.client_id, self._core.parts, self._core.clock.monotonic())

    def metrics(self) -> ClientMetrics:
        """Return the metrics of this client, with the names of the Java clients.

        May be called at any time from any thread.
        """
        return metrics_of(self._core)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of fetched record data that is not returned yet."""
        return self._core.fetcher.buffered_bytes

    @property
    def memory_limit_bytes(self) -> int:
        """The approximate limit of `buffered_bytes`: `fetch.max.bytes` per broker."""
        return self._core.fetcher.memory_limit_bytes

    def wakeup(self) -> None:
        """Make the running or the next waiting call raise WakeupError. May be called from any thread."""
        self._core.client.wakeup()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata, for a producer that commits offsets in its transactions."""
        with self._core.open():
            return self._core.require_group("group_metadata()").group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Request a rebalance, which runs in the next calls of `poll`.

        With `group.protocol = consumer` only the coordinator decides on rebalances; this call then only logs a warning,
        as in Java.
        """
        with self._core.open():
            coordinator = self._core.require_group("enforce_rebalance()")
            if reason is not None:
                checked_text("reason", reason, "a partition lags")
            if not self._core.subscriptions.is_group_managed:
                raise IllegalStateError("enforce_rebalance() needs a subscription; call subscribe() first")
            coordinator.request_rejoin(reason or "rebalance enforced by user")

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> Future[None]:
        """Commit without waiting.

        A later call of this consumer calls `callback(offsets, error)`; error is None on success.

        The commit is not retried, because a later commit may have overtaken it.
        """
        with self._core.open():
            coordinator = self._core.require_group("commit_async()")
            wanted = self._to_commit(offsets)
            checked_function("callback", callback, "(offsets, error)")
            future = coordinator.commits.commit_async(wanted)
            if callback is not None:
                future.add_done_callback(lambda done: callback(wanted, done.exception(0)))
            return future

    def _intercept(self, slices: list[RecordSlice]) -> ConsumerRecords[K, V]:
        """Return the records after the interceptors have processed them."""
        records: ConsumerRecords[K, V] = ConsumerRecords(slices)
        return self._core.interceptors.on_consume(records) if slices and self._core.interceptors else records

    def _subscribe(self, topics: Topics, listener: RebalanceListener) -> bool:
        """Subscribe to these topics. Return False if there are none."""
        coordinator = self._core.require_group("subscribe()")
        subscriptions = self._core.subscriptions
        if isinstance(topics, SubscriptionPattern):
            if self.config.group_protocol != "consumer":
                raise IllegalStateError("a SubscriptionPattern needs group.protocol=consumer; use a re.Pattern")
            subscriptions.subscribe_broker_pattern(checked_broker_pattern(topics.pattern))
        elif isinstance(topics, re.Pattern):
            subscriptions.subscribe_pattern(checked_pattern(topics))
        elif not (names := checked_subscription(topics)):
            return False
        else:
            subscriptions.subscribe(names)
        coordinator.listener = listener
        coordinator.handle_subscription_change()
        return True

    def _commit(self, offsets: Offsets | None, timeout: float | None) -> Steps[None]:
        coordinator = self._core.require_group("commit()")
        steps = coordinator.commits.commit(self._to_commit(offsets), self._core.timeout_seconds(timeout))
        return self._core.calls.time_steps("commit-sync", steps)

    def _to_commit(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        subscriptions = self._core.subscriptions
        wanted = subscriptions.consumed_offsets() if offsets is None else checked_offsets(offsets)
        subscriptions.mark_processed(wanted)
        return wanted

    def _seek_to(self, timestamp: int, partitions: Iterable[TopicPartition]) -> None:
        subscriptions = self._core.subscriptions
        with self._core.open():
            subscriptions.rewind_unyielded()
            for tp in list(map(checked_partition, partitions)) or list(subscriptions.assigned()):
                subscriptions.request_reset(tp, timestamp)

    def _set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self._core.open():
            for state in [self._core.subscriptions.state(checked_partition(tp)) for tp in partitions]:
                state.is_paused = paused


def metrics_of(core: ConsumerCore, *_: object) -> ClientMetrics:
    """Return the metrics of a consumer. Holds no reference to the consumer object, so that it can be garbage collected."""
    from ottla.client.consumer.metrics import take_metrics

    return take_metrics(core)


def check_end(tp: Any, end: Any) -> int | None:
    """Return the exclusive end offset, or None for no bound."""
    return None if end is None else checked_whole(f"the end of {tp}", end, "an offset", LAST_OFFSET)


def call_in_order(*functions: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls all these functions in order."""

    def call_all() -> None:
        for function in functions:
            function()

    return call_all
