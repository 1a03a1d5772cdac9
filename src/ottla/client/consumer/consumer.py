"""The consumer: what users call.

One thread uses it; everything happens in its calls, but for the heartbeats of a group's member. Only `wakeup` may come
from another thread.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.client.arguments import (
    checked_offsets,
    checked_partition,
    checked_partitions,
    checked_pattern,
    checked_timeout,
    checked_topic,
    checked_topics,
    checked_whole,
)
from ottla.client.client_id import consumer_client_id
from ottla.client.consumer.config import read_consumer_settings
from ottla.client.consumer.consumer_coordinator import ConsumerCoordinator
from ottla.client.consumer.events import Polled
from ottla.client.consumer.generation import ConsumerGroupMetadata
from ottla.client.consumer.offset_commits import CommitCallback
from ottla.client.consumer.parts import assemble
from ottla.client.consumer.rebalance_listener import Callback, RebalanceListener, listener_of
from ottla.client.consumer.records import ConsumerRecords, RecordSlice
from ottla.client.consumer.single_thread import SingleThread
from ottla.client.consumer.snapshot import ConsumerSnapshot, take_snapshot
from ottla.client.consumer.subscription_state import SubscriptionType
from ottla.client.deadline import Deadline
from ottla.clock import SystemClock
from ottla.errors import ErrorCode, IllegalStateError, InvalidGroupIdError, KafkaTimeoutError, OffsetOutOfRangeError
from ottla.model import EARLIEST, LATEST, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition
from ottla.trace import CAPACITY, Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.records.columns import Columns

T = TypeVar("T")
LOG = logging.getLogger(__name__)
FOREVER = float("inf")
CLOSE_SECONDS = 30.0
"""How long `close` may take unless it is told."""
INTERRUPTED_SECONDS = 0.8
"""The same after Ctrl-C."""
NO_GROUP = (
    "group.id is not set: {} needs the name of a consumer group; set it, or use assign() and keep offsets yourself"
)


class Consumer:
    """Reads records, as records or as Arrow columns: of topics shared with a group, or of assigned partitions.

    Settings come as Kafka's dotted names, as keywords, or both:
    `Consumer({"bootstrap.servers": "127.0.0.1:9092"}, auto_offset_reset="earliest")`. Close it, or use it in a `with`
    statement.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        self.config = read_consumer_settings(config, keywords)
        self.client_id = self.config.client_id or consumer_client_id(
            self.config.group_id, self.config.group_instance_id
        )
        self._clock = SystemClock()
        self._closed = False
        self._guard = SingleThread("consumer")
        self._api_timeout = self.config.default_api_timeout_ms / 1000
        self._parts = parts = assemble(self.config, self.client_id, self._clock)
        self._events, self._metadata, self._subscriptions = parts.events, parts.metadata, parts.subscriptions
        self._client, self._fetcher, self._offset_fetcher = parts.client, parts.fetcher, parts.offset_fetcher
        self._topics, self._coordinator = parts.topics, parts.coordinator
        self._waiting_since: float | None = None
        self._seen_version = 0

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without sharing; those that stay assigned keep their positions."""
        with self._open():
            wanted = checked_partitions(partitions)
            self._subscriptions.become(SubscriptionType.PARTITIONS)
            self._fetcher.forget(set(self._subscriptions.assigned()).difference(wanted))
            self._subscriptions.assign(wanted)
            self._metadata.want_only({tp.topic for tp in wanted}, self._clock.monotonic())

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | Any = None,
        *,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Share these topics with the other members of the group; partitions come with the next calls of `poll`.

        `topics` is a list of names, or a compiled pattern of which every whole name it matches is meant, also of topics
        that are made later. The listener, an object or functions, hears of partitions that come and go.
        """
        with self._open():
            coordinator = self._group("subscribe()")
            heard = listener_of(listener, (on_assigned, on_revoked, on_lost))
            if isinstance(topics, re.Pattern):
                self._subscriptions.subscribe_pattern(checked_pattern(topics))
            elif not (names := checked_topics(topics)):
                self.unsubscribe()
                return
            else:
                self._subscriptions.subscribe(names)
            coordinator.listener = heard
            coordinator.subscription_changed()

    def subscription(self) -> set[str]:
        """The topics subscribed to; of a pattern, those it matches as far as is known."""
        return set(self._subscriptions.topics)

    def unsubscribe(self) -> None:
        """Give all partitions up, and leave the group."""
        with self._open():
            if self._coordinator is not None and self._subscriptions.by_group:
                self._coordinator.leave()
            self._fetcher.forget(list(self._subscriptions.assigned()))
            self._subscriptions.unsubscribe()
            self._metadata.want_only((), self._clock.monotonic())

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return set(self._subscriptions.assigned())

    def poll(self, timeout: float = 1.0) -> ConsumerRecords:
        """Up to `max.poll.records` records: what is buffered, else the first that arrives within `timeout` seconds.

        The next fetches are on their way before this returns. Empty at the timeout. A subscriber's membership is kept
        up here: the first calls join the group, and listeners are called.
        """
        with self._open():
            return ConsumerRecords(self._poll_for(timeout, self._collect_records))

    def poll_arrow(
        self, timeout: float = 1.0, max_bytes: int | None = None, *, include_headers: bool = False
    ) -> pa.Table:
        """Everything that is buffered, else the first that arrives, as an Arrow table with a chunk per partition.

        `max_bytes` bounds it by bytes as fetched, of which at least one partition's share is returned. Columns: key,
        value, topic, partition, offset, timestamp, timestamp_type, and headers if they are asked for.
        """
        from ottla.records import arrow

        with self._open():
            chunks = self.poll_columns(timeout, max_bytes, include_headers=include_headers)
            return arrow.to_table(chunks, with_headers=include_headers)

    def poll_columns(
        self, timeout: float = 1.0, max_bytes: int | None = None, *, include_headers: bool = False
    ) -> list[tuple[TopicPartition, Columns]]:
        """As `poll_arrow`, in our own columns and without Arrow."""
        with self._open():
            collect = self._fetcher.collect_columns
            return self._poll_for(timeout, lambda: collect(max_bytes, with_headers=include_headers))

    def __iter__(self) -> Iterator[Any]:
        """All records from here on, without end; the loop ends when the consumer is closed inside it."""
        while not self._closed:
            yield from self.poll()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        if isinstance(offset, int) and offset < 0:
            raise ValueError(f"offset = {offset}: must not be negative; use seek_to_beginning() or seek_to_end()")
        offset = checked_whole("offset", offset, "the offset of a record")
        with self._open():
            self._subscriptions.seek(checked_partition(partition), offset)

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
        with self._open():
            for tp, end in ends.items():
                self._subscriptions.state(checked_partition(tp)).end = end

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset that is read next; looks it up when it is not known yet."""
        with self._open():
            state = self._subscriptions.state(checked_partition(partition))
            deadline = self._clock.monotonic() + self._patience(timeout)
            while state.position is None:
                span = self._ensure_positions()
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    self._offset_fetcher.raise_unknown([checked_partition(partition)])
                    raise self._late(f"the position of {TopicPartition(*partition)} was not found", timeout)
                self._client.poll(min(left, span, self._subscriptions.next_retry(self._clock.monotonic())))
            return state.position

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`; what is buffered is kept."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        self._set_paused(partitions, False)

    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        return {tp for tp in self._subscriptions.assigned() if self._subscriptions.state(tp).paused}

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Offsets between the position and the end as last heard of; None before anything was heard."""
        state = self._subscriptions.state(checked_partition(partition))
        if state.readable_to is None or state.position is None:
            return None
        return max(0, state.readable_to - state.position)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return self._offsets_at(EARLIEST, partitions, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition."""
        return self._offsets_at(LATEST, partitions, timeout)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time in milliseconds; None where there is none."""
        with self._open():
            asked = {
                checked_partition(tp): checked_whole(f"the time for {tp}", timestamp, "milliseconds since the epoch")
                for tp, timestamp in timestamps.items()
            }
            found = self._offset_fetcher.fetch_offsets(asked, self._patience(timeout))
            return {tp: found[tp] if found[tp].offset >= 0 else None for tp in asked}

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """The topic's partitions with their leaders and replicas; empty when there is no such topic."""
        with self._open():
            info = self._topics.topics([checked_topic(topic)], self._patience(timeout)).get(topic)
            return [] if info is None else list(info.partitions)

    def topics(self, timeout: float | None = None) -> set[str]:
        """The names of all topics this client may see."""
        with self._open():
            return set(self._topics.topics(None, self._patience(timeout)))

    def wakeup(self) -> None:
        """Have the running or the next blocking call raise WakeupError; may be called from any thread."""
        self._client.wakeup()

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit these offsets, the next ones to read, or else all positions; returns when the coordinator has them.

        Tries again what may succeed later, up to `timeout` seconds. CommitFailedError: the group has given this
        member's partitions to others.
        """
        with self._open():
            coordinator = self._group("commit()")
            coordinator.commits.commit(self._to_commit(offsets), self._patience(timeout))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """The same without waiting; a later call of this consumer calls `callback(offsets, error)`, error may be None.

        Nothing is tried again: a later commit may have overtaken this one.
        """
        with self._open():
            coordinator = self._group("commit_async()")
            wanted = self._to_commit(offsets)
            future = coordinator.commits.commit_async(wanted)
            if callback is not None:
                future.add_done_callback(lambda done: callback(wanted, done.exception(0)))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for each partition; None where it has nothing."""
        with self._open():
            coordinator = self._group("committed()")
            asked = checked_partitions(partitions)
            found = coordinator.committed.fetch(asked, self._patience(timeout))
            return {tp: found.get(tp) for tp in asked}

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The place of this member in its group, for a producer that commits offsets in its transactions."""
        with self._open():
            return self._group("group_metadata()").group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the group share its partitions out anew, in the next calls of `poll`."""
        with self._open():
            coordinator = self._group("enforce_rebalance()")
            if not self._subscriptions.by_group:
                raise IllegalStateError("enforce_rebalance() needs a subscription; call subscribe() first")
            coordinator.request_rejoin(reason or "rebalance enforced by user")

    def trace(self, capacity: int = CAPACITY) -> Trace:
        """What happens in here from now on, typed as in `ottla.client.consumer.events`; at any time, from any thread."""
        return self._events.trace(capacity)

    def snapshot(self) -> ConsumerSnapshot:
        """All parts of this consumer and what is in them; at any time, from any thread."""
        return take_snapshot(self.client_id, self._parts, self._clock.monotonic())

    def close(self, timeout: float | None = None) -> None:
        """Commit if that is automatic, leave the group and close all connections, within `timeout` seconds.

        30 unless told, less than one after Ctrl-C. May be called again.
        """
        with self._guard:
            if self._closed:
                return
            if timeout is None:
                timeout = INTERRUPTED_SECONDS if self._guard.interrupted else CLOSE_SECONDS
            try:
                if self._coordinator is not None:
                    self._coordinator.close(Deadline.after(timeout, self._clock.monotonic()))
            finally:
                self._closed = True
                self._client.close()

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> SingleThread:
        """The guard of a method that a closed consumer does not have."""
        if self._closed:
            raise IllegalStateError("the consumer is closed; make a new one")
        return self._guard

    def _poll_for(self, timeout: float, collect: Callable[[], list[T]]) -> list[T]:
        """What `collect` finds, polling the network for it as long as it finds nothing and there is time."""
        if self._subscriptions.type is SubscriptionType.NONE:
            raise IllegalStateError("nothing is assigned to this consumer; call subscribe() or assign() first")
        deadline = self._clock.monotonic() + checked_timeout(timeout)
        if self._events.active:
            self._tell_poll()
        late = False
        while True:
            self._client.maybe_trigger_wakeup()
            span = self._keep_up()
            found = collect()
            if found or late:
                self._waiting_since = None if found else self._waiting_since
                return found
            span = min(span, self._ensure_positions())
            self._fetcher.send_fetches()
            now = self._clock.monotonic()
            self._give_up_without_a_broker(now)
            self._client.poll(min(deadline - now, span, self._subscriptions.next_retry(now)))
            late = self._clock.monotonic() >= deadline

    def _tell_poll(self) -> None:
        if self._coordinator is not None:
            gap = self._coordinator.heartbeat.poll_gap(self._clock.monotonic())
            self._events.tell(Polled(gap * 1000 if gap < FOREVER else 0.0))

    def _collect_records(self) -> list[RecordSlice]:
        slices = self._fetcher.collect_fetch(self.config.max_poll_records)
        if slices and self._fetcher.send_fetches():
            self._client.transmit_sends()
        return slices

    def _keep_up(self) -> float:
        """Do what membership and news of the cluster ask for; returns the seconds after which to do so again."""
        if self._metadata.version != self._seen_version:
            self._seen_version = self._metadata.version
            self._notice_new_topics()
        coordinator = self._coordinator
        if coordinator is None:
            return FOREVER
        now = self._clock.monotonic()
        coordinator.poll(now)
        return coordinator.wait_span(now)

    def _notice_new_topics(self) -> None:
        begun = self._subscriptions.notice_new_topics(self._metadata.cluster)
        if begun:
            told = ", ".join(map(str, begun))
            LOG.warning(
                "[%s] %s: the topic was deleted and made anew; starting by auto.offset.reset", self.client_id, told
            )
            self._fetcher.forget(begun)

    def _ensure_positions(self) -> float:
        """Have the missing positions looked up; returns the seconds after which to look again.

        Raises when there is no committed offset and `auto.offset.reset` is none.
        """
        span = FOREVER if self._coordinator is None else self._coordinator.committed.refresh()
        lost = self._subscriptions.lost()
        if lost:
            raise OffsetOutOfRangeError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"no position for {', '.join(map(str, lost))}, and auto.offset.reset = none: call seek() first",
            )
        self._offset_fetcher.reset_positions()
        return span

    def _give_up_without_a_broker(self, now: float) -> None:
        """A broker that was never there is an error in the end, not an endless silence."""
        if self._metadata.version:
            return
        self._waiting_since = self._waiting_since or now
        if now - self._waiting_since >= self._api_timeout:
            raise self._client.client.unavailable(self._api_timeout * 1000, "default.api.timeout.ms")

    def _seek_to(self, timestamp: int, partitions: Iterable[TopicPartition]) -> None:
        with self._open():
            for tp in partitions or list(self._subscriptions.assigned()):
                self._subscriptions.request_reset(checked_partition(tp), timestamp)

    def _set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self._open():
            for tp in partitions:
                self._subscriptions.state(checked_partition(tp)).paused = paused

    def _offsets_at(
        self, timestamp: int, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> dict[TopicPartition, int]:
        with self._open():
            asked = dict.fromkeys(checked_partitions(partitions), timestamp)
            found = self._offset_fetcher.fetch_offsets(asked, self._patience(timeout))
            return {tp: found[tp].offset for tp in asked}

    def _to_commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return {tp: OffsetAndMetadata(at) for tp, at in self._subscriptions.consumed().items()}
        return checked_offsets(offsets)

    def _group(self, what: str) -> ConsumerCoordinator:
        if self._coordinator is None:
            raise InvalidGroupIdError(ErrorCode.INVALID_GROUP_ID, NO_GROUP.format(what))
        return self._coordinator

    def _patience(self, timeout: float | None) -> float:
        return self._api_timeout if timeout is None else timeout

    def _late(self, what: str, timeout: float | None) -> KafkaTimeoutError:
        span = self._patience(timeout)
        if not self._metadata.version:
            return self._client.client.unavailable(span * 1000, "default.api.timeout.ms, or the call's own timeout")
        return KafkaTimeoutError(f"{what} within {span:g} s: {self._client.client.trouble()}")
