"""The consumer: what users call.

One thread uses it; everything happens in its calls. Only `wakeup` may come from another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ottla.client.arguments import checked_partition, checked_partitions, checked_topic, checked_whole
from ottla.client.backoff import ExponentialBackoff
from ottla.client.bootstrap import bootstrap_nodes
from ottla.client.client_id import next_client_id
from ottla.client.consumer.config import read_consumer_settings
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.fetcher import Fetcher
from ottla.client.consumer.offset_fetcher import OffsetFetcher
from ottla.client.consumer.records import ConsumerRecords, RecordSlice
from ottla.client.consumer.single_thread import SingleThread
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.consumer.topic_metadata_fetcher import TopicMetadataFetcher
from ottla.client.metadata import Metadata
from ottla.client.network_client import MAX_FRAME_BYTES, NetworkClient
from ottla.clock import SystemClock
from ottla.errors import ErrorCode, IllegalStateError, KafkaTimeoutError, NotYetError, OffsetOutOfRangeError
from ottla.model import EARLIEST, LATEST, OffsetAndTimestamp, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.records.columns import Columns

T = TypeVar("T")
RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}
GROUPS_NOT_YET = "consumer groups are not there yet: use assign() with the partitions to read"
COMMITS_NOT_YET = "commits are not there yet: keep offsets yourself and seek() to them"


class Consumer:
    """Reads records of assigned partitions, as records or as Arrow columns.

    Settings come as Kafka's dotted names, as keywords, or both:
    `Consumer({"bootstrap.servers": "127.0.0.1:9092"}, auto_offset_reset="earliest")`. Close it, or use it in a `with`
    statement.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        self.config = read_consumer_settings(config, keywords)
        group = self.config.group_id
        self.client_id = self.config.client_id or next_client_id(f"consumer-{group}" if group else "consumer")
        self._clock = SystemClock()
        self._closed = False
        self._guard = SingleThread("consumer")
        self._api_timeout = self.config.default_api_timeout_ms / 1000
        random = Random()
        backoff = ExponentialBackoff(self.config.retry_backoff_ms, self.config.retry_backoff_max_ms, random)
        self._metadata = Metadata(
            bootstrap_nodes(self.config.bootstrap_servers),
            max_age_ms=self.config.metadata_max_age_ms,
            backoff=backoff,
            allow_auto_topic_creation=self.config.allow_auto_create_topics,
        )
        network = NetworkClient(
            self.config,
            self._metadata,
            client_id=self.client_id,
            max_in_flight=100,
            max_frame_bytes=min(2**31 - 1, max(MAX_FRAME_BYTES, 2 * self.config.fetch_max_bytes)),
            clock=self._clock,
            random=random,
        )
        timeout_ms = self.config.request_timeout_ms
        self._subscriptions = SubscriptionState(RESETS[self.config.auto_offset_reset])
        self._client = ConsumerNetworkClient(network, request_timeout_ms=timeout_ms)
        self._fetcher = Fetcher(self.config, self._client, self._subscriptions, backoff)
        self._offset_fetcher = OffsetFetcher(
            self._client,
            self._subscriptions,
            backoff,
            request_timeout_ms=timeout_ms,
            isolation_level=self.config.isolation_number,
        )
        self._topics = TopicMetadataFetcher(
            self._client, backoff, allow_auto_topic_creation=self.config.allow_auto_create_topics
        )
        self._waiting_since: float | None = None

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions; those that stay assigned keep their positions."""
        with self._open():
            wanted = checked_partitions(partitions)
            self._fetcher.forget(set(self._subscriptions.assigned()).difference(wanted))
            self._subscriptions.assign(wanted)
            self._metadata.want_only({tp.topic for tp in wanted}, self._clock.monotonic())

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return set(self._subscriptions.assigned())

    def poll(self, timeout: float = 1.0) -> ConsumerRecords:
        """Up to `max.poll.records` records: what is buffered, else the first that arrives within `timeout` seconds.

        The next fetches are on their way before this returns. Empty at the timeout.
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
                self._ensure_positions()
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    self._offset_fetcher.raise_unknown([checked_partition(partition)])
                    raise self._late(f"the position of {TopicPartition(*partition)} was not found", timeout)
                self._client.poll(min(left, self._subscriptions.next_retry(self._clock.monotonic())))
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

    def close(self, timeout: float | None = None) -> None:
        """Close all connections, which takes no time as long as there is no group to leave. May be called again."""
        with self._guard:
            self._closed = True
            self._client.close()

    def subscribe(self, *_: Any, **__: Any) -> NoReturn:
        """Not there yet: groups come later."""
        raise NotYetError(f"subscribe: {GROUPS_NOT_YET}")

    def unsubscribe(self) -> None:
        """Give up all partitions."""
        self.assign(())

    def commit(self, *_: Any, **__: Any) -> NoReturn:
        """Not there yet: commits come with groups."""
        raise NotYetError(f"commit: {COMMITS_NOT_YET}")

    def commit_async(self, *_: Any, **__: Any) -> NoReturn:
        """Not there yet: commits come with groups."""
        raise NotYetError(f"commit_async: {COMMITS_NOT_YET}")

    def committed(self, *_: Any, **__: Any) -> NoReturn:
        """Not there yet: commits come with groups."""
        raise NotYetError(f"committed: {COMMITS_NOT_YET}")

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
        if not self._subscriptions.assigned():
            raise IllegalStateError("nothing is assigned to this consumer; call assign() first")
        deadline = self._clock.monotonic() + timeout
        late = False
        while True:
            self._client.maybe_trigger_wakeup()
            found = collect()
            if found or late:
                self._waiting_since = None if found else self._waiting_since
                return found
            self._ensure_positions()
            self._fetcher.send_fetches()
            now = self._clock.monotonic()
            self._give_up_without_a_broker(now)
            self._client.poll(min(deadline - now, self._subscriptions.next_retry(now)))
            late = self._clock.monotonic() >= deadline

    def _collect_records(self) -> list[RecordSlice]:
        slices = self._fetcher.collect_fetch(self.config.max_poll_records)
        if slices and self._fetcher.send_fetches():
            self._client.transmit_sends()
        return slices

    def _ensure_positions(self) -> None:
        """Have the missing positions looked up; raises when `auto.offset.reset` is none."""
        lost = self._subscriptions.lost()
        if lost:
            raise OffsetOutOfRangeError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"no position for {', '.join(map(str, lost))}, and auto.offset.reset = none: call seek() first",
            )
        self._offset_fetcher.reset_positions()

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

    def _patience(self, timeout: float | None) -> float:
        return self._api_timeout if timeout is None else timeout

    def _late(self, what: str, timeout: float | None) -> KafkaTimeoutError:
        span = self._patience(timeout)
        if not self._metadata.version:
            return self._client.client.unavailable(span * 1000, "default.api.timeout.ms, or the call's own timeout")
        return KafkaTimeoutError(f"{what} within {span:g} s: {self._client.client.trouble()}")
