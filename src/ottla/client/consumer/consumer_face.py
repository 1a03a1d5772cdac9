"""What both faces of a consumer have, the one whose calls block and the one whose calls are awaited.

Nothing here waits for the network: what is asked for is done by the next calls that do.
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
from ottla.client.consumer.farewells import Farewells
from ottla.client.consumer.group.rebalance_listener import RebalanceListener
from ottla.client.consumer.offset_queries import OffsetQueries
from ottla.client.consumer.offsets.commits import CommitCallback
from ottla.client.consumer.reading import Reading
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

Topics = Iterable[str] | re.Pattern[str] | SubscriptionPattern
"""Names, or a pattern of names: Python's, matched here, or RE2's, matched by the broker."""
Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]
PlainSetting = str | int | float | Sequence[object] | None
"""What stands in a dict of settings that has no deserializers in it: then keys and values are bytes."""


class ConsumerFace(Generic[K, V]):
    """Assignment, positions, pauses, and what is waiting."""

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        self._core = ConsumerCore(config, keywords)
        self._reading = Reading(self._core)
        self._queries = OffsetQueries(self._core)
        self.config = self._core.config
        self.client_id = self._core.client_id
        self._core.on_closed = Farewells(self, self._core).detach
        if self.config.enable_metrics_push:
            self._core.client.client.telemetry.begin(partial(metrics_of, self._core), self._core.labels)
        if folder := os.environ.get("OTTLA_TRACE"):
            self._let_others_look(folder)

    def _let_others_look(self, folder: str) -> None:
        """Listen in `folder` until this is closed or dropped."""
        from ottla.tracing.trace_socket import maybe_listen

        core, client_id = self._core, self.client_id

        def snapshot() -> ConsumerSnapshot:  # holds the core and not this face, which may be dropped
            return take_snapshot(client_id, core.parts, core.clock.monotonic())

        listening = maybe_listen("consumer", client_id, core.events, snapshot, folder)
        if listening is not None:
            core.on_closed = in_turn(core.on_closed, listening.close)
            weakref.finalize(self, listening.end)

    def __repr__(self) -> str:
        facts = [] if self.config.group_id is None else [f"group_id={self.config.group_id!r}"]
        assigned = len(list(self._core.subscriptions.assigned()))
        return describe_client(self, self._core.closed, *facts, f"{assigned} partitions assigned")

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without sharing; those that stay assigned keep their positions."""
        core = self._core
        with core.open():
            wanted = checked_partitions(partitions)
            core.subscriptions.become(SubscriptionType.PARTITIONS)
            core.subscriptions.take_back()
            core.fetcher.clear_buffered(set(core.subscriptions.assigned()).difference(wanted))
            core.subscriptions.assign(wanted)
            core.metadata.want_only({tp.topic for tp in wanted}, core.clock.monotonic())

    def subscription(self) -> set[str]:
        """The topics subscribed to; of a pattern, those it matches as far as is known."""
        subscriptions = self._core.subscriptions
        if subscriptions.broker_pattern is not None:  # the broker tells what it finds by assigning it
            return {tp.topic for tp in subscriptions.assigned()}
        return set(subscriptions.topics)

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return set(self._core.subscriptions.assigned())

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read on from `offset`.

        With the leader's epoch that an OffsetAndMetadata has, it is first made sure that the log still is what it was
        then (KIP-320).
        """
        whole, epoch = (offset.offset, offset.leader_epoch) if isinstance(offset, OffsetAndMetadata) else (offset, -1)
        if isinstance(whole, int) and whole < 0:
            raise ValueError(f"offset = {whole}: must not be negative; use seek_to_beginning() or seek_to_end()")
        whole = checked_whole("offset", whole, "the offset of a record")
        with self._core.open():
            tp = checked_partition(partition)
            self._core.subscriptions.state(tp)
            self._core.subscriptions.take_back()
            self._core.subscriptions.seek(tp, whole, epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on from the first offset of these partitions, or of all; looked up when it is needed."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read on from the end of these partitions, or of all; looked up when it is needed."""
        self._seek_to(LATEST, partitions)

    def bound(self, ends: Mapping[TopicPartition, int | None]) -> None:
        """Read these partitions up to an offset, itself excluded; None takes the bound away.

        `position` then stops at the bound, also when there is no record just below it.
        """
        with self._core.open():
            wanted = [
                (self._core.subscriptions.state(checked_partition(tp)), maybe_end(tp, end))
                for tp, end in checked_dict("ends", ends, "{TopicPartition('flights', 0): 42}").items()
            ]
            for state, end in wanted:
                state.end = end

    def topic_id(self, topic: str) -> UUID:
        """What tells the topic from another of its name, as last heard of; all zeros before, and of old brokers."""
        return self._core.metadata.cluster.topic_id(checked_topic(topic))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; what is buffered is kept."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        self._set_paused(partitions, False)

    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        subscriptions = self._core.subscriptions
        return {tp for tp in subscriptions.assigned() if subscriptions.state(tp).paused}

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Offsets between the position and the end as last heard of; None before anything was heard."""
        tp = checked_partition(partition)
        state, position = self._core.subscriptions.state(tp), self._core.subscriptions.next_offset(tp)
        if state.readable_to is None or position is None:
            return None
        return max(0, state.readable_to - position)

    def trace(self, capacity: int = CAPACITY) -> Trace:
        """What happens in here from now on, typed as in `ottla.client.consumer.events`; at any time, from any thread."""
        return self._core.events.trace(capacity)

    def snapshot(self) -> ConsumerSnapshot:
        """All parts of this consumer and what is in them; at any time, from any thread."""
        return take_snapshot(self.client_id, self._core.parts, self._core.clock.monotonic())

    def metrics(self) -> ClientMetrics:
        """What is counted and measured in here, by the names of Java's clients; at any time, from any thread."""
        return metrics_of(self._core)

    @property
    def buffered_bytes(self) -> int:
        """Bytes of records, as fetched, that have arrived and were not handed out yet."""
        return self._core.fetcher.buffered_bytes

    @property
    def memory_limit_bytes(self) -> int:
        """About the most that `buffered_bytes` may be: `fetch.max.bytes` for each broker that is read from."""
        return self._core.fetcher.memory_limit_bytes

    def wakeup(self) -> None:
        """Have the running or the next call that waits raise WakeupError; may be called from any thread."""
        self._core.client.wakeup()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The place of this member in its group, for a producer that commits offsets in its transactions."""
        with self._core.open():
            return self._core.group("group_metadata()").group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the group share its partitions out anew, in the next calls of `poll`.

        With `group.protocol = consumer` the coordinator alone decides that: this only warns, as in Java.
        """
        with self._core.open():
            coordinator = self._core.group("enforce_rebalance()")
            if reason is not None:
                checked_text("reason", reason, "a partition lags")
            if not self._core.subscriptions.by_group:
                raise IllegalStateError("enforce_rebalance() needs a subscription; call subscribe() first")
            coordinator.request_rejoin(reason or "rebalance enforced by user")

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> Future[None]:
        """Commit without waiting; a later call of this consumer calls `callback(offsets, error)`, error may be None.

        Nothing is tried again: a later commit may have overtaken this one.
        """
        with self._core.open():
            coordinator = self._core.group("commit_async()")
            wanted = self._to_commit(offsets)
            checked_function("callback", callback, "(offsets, error)")
            future = coordinator.commits.commit_async(wanted)
            if callback is not None:
                future.add_done_callback(lambda done: callback(wanted, done.exception(0)))
            return future

    def _shown(self, slices: list[RecordSlice]) -> ConsumerRecords[K, V]:
        """What is handed out of them: what the interceptors leave."""
        records: ConsumerRecords[K, V] = ConsumerRecords(slices)
        return self._core.interceptors.on_consume(records) if slices and self._core.interceptors else records

    def _subscribe(self, topics: Topics, listener: RebalanceListener) -> bool:
        """Want these topics; False when there are none."""
        coordinator = self._core.group("subscribe()")
        subscriptions = self._core.subscriptions
        if isinstance(topics, SubscriptionPattern):
            if self.config.group_protocol != "consumer":
                raise IllegalStateError("a SubscriptionPattern needs group.protocol=consumer; hand over a re.Pattern")
            subscriptions.subscribe_broker_pattern(checked_broker_pattern(topics.pattern))
        elif isinstance(topics, re.Pattern):
            subscriptions.subscribe_pattern(checked_pattern(topics))
        elif not (names := checked_subscription(topics)):
            return False
        else:
            subscriptions.subscribe(names)
        coordinator.listener = listener
        coordinator.subscription_changed()
        return True

    def _commit(self, offsets: Offsets | None, timeout: float | None) -> Steps[None]:
        coordinator = self._core.group("commit()")
        steps = coordinator.commits.commit(self._to_commit(offsets), self._core.patience(timeout))
        return self._core.calls.timed("commit-sync", steps)

    def _to_commit(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        subscriptions = self._core.subscriptions
        wanted = subscriptions.consumed() if offsets is None else checked_offsets(offsets)
        subscriptions.mark_processed(wanted)
        return wanted

    def _seek_to(self, timestamp: int, partitions: Iterable[TopicPartition]) -> None:
        subscriptions = self._core.subscriptions
        with self._core.open():
            subscriptions.take_back()
            for tp in list(map(checked_partition, partitions)) or list(subscriptions.assigned()):
                subscriptions.request_reset(tp, timestamp)

    def _set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self._core.open():
            for state in [self._core.subscriptions.state(checked_partition(tp)) for tp in partitions]:
                state.paused = paused


def metrics_of(core: ConsumerCore, *_: object) -> ClientMetrics:
    """The numbers of a consumer, which knows nothing of who asks."""
    from ottla.client.consumer.metrics import take_metrics

    return take_metrics(core)


def maybe_end(tp: Any, end: Any) -> int | None:
    """The offset before which reading ends, if there is one."""
    return None if end is None else checked_whole(f"the end of {tp}", end, "an offset", LAST_OFFSET)


def in_turn(*functions: Callable[[], None]) -> Callable[[], None]:
    """One function that calls them all."""

    def call_all() -> None:
        for function in functions:
            function()

    return call_all
