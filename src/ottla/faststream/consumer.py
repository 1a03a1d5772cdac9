"""Ottla's consumer with the methods that faststream calls on aiokafka's.

    aio.Consumer.poll ──► buffer ──► getone, getmany ──► faststream ──► the function ──► commit, seek

A task polls all the time, so a slow function does not delay rebalances and never exceeds `max.poll.interval.ms`. It pauses the
partitions while `max_poll_records` records are buffered. What is committed is the position of the last record that was
returned, never that of a buffered one.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from typing import Any

from aiokafka import ConsumerRecord as DriverRecord
from aiokafka import TopicPartition as DriverPartition
from aiokafka.errors import ConsumerStoppedError, IllegalOperation

from ottla.aio.consumer import Consumer
from ottla.client.consumer import RebalanceListener
from ottla.errors import OttlaError, WakeupError
from ottla.faststream.client_settings import consumer_option, consumer_settings
from ottla.faststream.errors import driver_errors, to_driver_error
from ottla.model import OffsetAndMetadata, TopicPartition

POLL_SECONDS = 1.0
START_SECONDS = 30.0
"""The maximum time that `start` waits for the first assignment."""
REFRESH_SECONDS = 300.0
"""The interval at which a consumer without a group looks for new partitions; it is `POLL_SECONDS` until all topics exist."""


class Subscription:
    """Topics or a pattern, and the listener; read by faststream's log lines under the names of aiokafka."""

    def __init__(self, topics: Iterable[str], pattern: str | None, listener: Any) -> None:
        self.topics = frozenset(topics)
        self.pattern = None if pattern is None else re.compile(pattern)
        self.listener = listener


class DriverConsumer(RebalanceListener):
    """Receives records. Create it with the arguments of `AIOKafkaConsumer`, and `settings` of Ottla."""

    def __init__(self, *, settings: dict[str, Any] | None = None, **arguments: Any) -> None:
        self._group_id: str | None = arguments.get("group_id")
        self._auto_commit_seconds: float | None = None
        if arguments.get("enable_auto_commit") and self._group_id is not None:
            self._auto_commit_seconds = consumer_option(arguments, "auto_commit_interval_ms", 5000) / 1000
        self._limit = consumer_option(arguments, "max_poll_records", 500)
        self._consumer = Consumer(**consumer_settings(arguments, settings or {}))
        self._subscription: Subscription | None = None
        self._buffer: deque[DriverRecord[Any, Any]] = deque()
        self._positions: dict[TopicPartition, OffsetAndMetadata] = {}
        """The offset after the last record that was returned, of each assigned partition."""
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self._paused: set[TopicPartition] = set()
        """The partitions that the user has paused."""
        self._is_full = False
        self._changed = asyncio.Event()
        """Set when a waiting `getone` or `getmany` may return."""
        self._assigned = asyncio.Event()
        self._error: Exception | None = None
        self._error_taken = asyncio.Event()
        self._is_stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._refresh_at = 0.0

    @property
    def _coordinator(self) -> Any:
        """The object with the `member_id`. The name is aiokafka's; faststream's log lines read it."""
        return self._consumer.group_metadata()

    def subscribe(self, topics: Iterable[str] = (), pattern: str | None = None, listener: Any = None) -> None:
        """Subscribe to topics, or to those that match a pattern. Without a group, all of their partitions are assigned."""
        self._subscription = Subscription(topics, pattern, listener)
        if self._group_id is not None:
            self._consumer.subscribe(self._subscription.pattern or self._subscription.topics, self)

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Assign partitions without a subscription."""
        self._consumer.assign([TopicPartition(*each) for each in partitions])

    async def start(self) -> None:
        """Join the group, and return when the position of each assigned partition is known.

        So every record that is sent afterwards is received, also with `auto_offset_reset="latest"`.
        """
        with driver_errors():
            if self._subscription is not None and self._group_id is None:
                await self._assign_all()
            self._tasks = [asyncio.create_task(self._run())]
            if self._auto_commit_seconds is not None:
                self._tasks.append(asyncio.create_task(self._commit_periodically(self._auto_commit_seconds)))
            with suppress(TimeoutError):
                async with asyncio.timeout(START_SECONDS):
                    if self._subscription is not None and self._group_id is not None:
                        await self._assigned.wait()
                    for each in self._consumer.assignment():
                        await self._consumer.position(each)

    async def stop(self) -> None:
        """Commit if that is automatic, leave the group, and close the connections. Waiting calls end with an error."""
        self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._changed.set()
        if self._auto_commit_seconds is not None:
            await self._maybe_commit(self._positions)
        await self._consumer.close()

    async def getone(self) -> DriverRecord[Any, Any]:
        """Return the next record. Waits without end."""
        while (record := self._take()) is None:
            await self._changed.wait()
        return record

    async def getmany(
        self, *, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[DriverPartition, list[DriverRecord[Any, Any]]]:
        """Return what is buffered, or else the first records that arrive within the time, by partition."""
        found: dict[DriverPartition, list[DriverRecord[Any, Any]]] = {}
        limit = self._limit if max_records is None else max_records
        record = self._take()
        if record is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_ms / 1000):
                    record = await self.getone()
        count = 0
        while record is not None:
            found.setdefault(DriverPartition(record.topic, record.partition), []).append(record)
            count += 1
            record = self._take() if count < limit else None
        return found

    async def __aiter__(self) -> AsyncIterator[DriverRecord[Any, Any]]:
        """Yield all records until the consumer is stopped."""
        with suppress(ConsumerStoppedError):
            while True:
                yield await self.getone()

    async def commit(self, offsets: Mapping[Any, Any] | None = None) -> None:
        """Commit offsets, by default the positions after the returned records."""
        if self._group_id is None:
            raise IllegalOperation("commit() requires a group: set group_id")
        wanted = self._positions if offsets is None else {TopicPartition(*tp): at for tp, at in offsets.items()}
        with driver_errors():
            await self._commit({tp: as_commit(at) for tp, at in wanted.items()})

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        """Continue at an offset. Buffered records of the partition are dropped."""
        tp = TopicPartition(*partition)
        with driver_errors():
            self._consumer.seek(tp, offset)
        self._drop_buffered({tp})
        self._positions[tp] = OffsetAndMetadata(offset)

    async def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Continue at the first records of these partitions, or of all."""
        chosen = self._choose(partitions)
        self._forget(chosen)
        self._consumer.seek_to_beginning(*chosen)

    async def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Continue after the last records of these partitions, or of all."""
        chosen = self._choose(partitions)
        self._forget(chosen)
        self._consumer.seek_to_end(*chosen)

    async def position(self, partition: tuple[str, int]) -> int:
        """Return the offset of the next record that is returned."""
        tp = TopicPartition(*partition)
        for record in self._buffer:
            if (record.topic, record.partition) == tp:
                return int(record.offset)
        with driver_errors():
            return await self._consumer.position(tp)

    async def committed(self, partition: tuple[str, int]) -> int | None:
        """Return the committed offset; None if there is none."""
        tp = TopicPartition(*partition)
        with driver_errors():
            found = (await self._consumer.committed([tp]))[tp]
        return None if found is None else found.offset

    async def topics(self) -> set[str]:
        """Return the names of all topics."""
        with driver_errors():
            return await self._consumer.topics()

    async def beginning_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[DriverPartition, int]:
        """Return the first offset of each partition."""
        with driver_errors():
            found = await self._consumer.beginning_offsets([TopicPartition(*each) for each in partitions])
        return {DriverPartition(*tp): offset for tp, offset in found.items()}

    async def end_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[DriverPartition, int]:
        """Return the offset after the last record of each partition."""
        with driver_errors():
            found = await self._consumer.end_offsets([TopicPartition(*each) for each in partitions])
        return {DriverPartition(*tp): offset for tp, offset in found.items()}

    def assignment(self) -> set[DriverPartition]:
        """Return the assigned partitions."""
        return {DriverPartition(*each) for each in self._consumer.assignment()}

    def subscription(self) -> frozenset[str]:
        """Return the topics that are subscribed by name."""
        return frozenset() if self._subscription is None else self._subscription.topics

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Return no more records of these partitions."""
        chosen = {TopicPartition(*each) for each in partitions}
        self._paused |= chosen
        self._consumer.pause(*chosen)

    def resume(self, *partitions: tuple[str, int]) -> None:
        """Return records of these partitions again."""
        chosen = {TopicPartition(*each) for each in partitions}
        self._paused -= chosen
        if not self._is_full:
            self._consumer.resume(*chosen)
        self._changed.set()

    def paused(self) -> set[DriverPartition]:
        """Return the partitions that `pause` has paused."""
        return {DriverPartition(*each) for each in self._paused}

    async def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Handle newly assigned partitions."""
        self._is_full = False
        await self._call_listener("on_partitions_assigned", partitions)
        self._assigned.set()

    async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Drop what is buffered of revoked partitions, and commit if that is automatic."""
        self._drop_buffered(set(partitions))
        await self._call_listener("on_partitions_revoked", partitions)
        if self._auto_commit_seconds is not None:
            await self._maybe_commit({tp: at for tp, at in self._positions.items() if tp in partitions})
        self._forget(partitions)

    async def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Drop what is buffered of lost partitions."""
        self._forget(partitions)
        await self._call_listener("on_partitions_revoked", partitions)

    async def _call_listener(self, method: str, partitions: list[TopicPartition]) -> None:
        listener = None if self._subscription is None else self._subscription.listener
        if listener is not None:
            outcome = getattr(listener, method)({DriverPartition(*each) for each in partitions})
            if hasattr(outcome, "__await__"):
                await outcome

    async def _run(self) -> None:
        """Poll until the task is cancelled. After an error, wait until it was raised to the caller."""
        while True:
            try:
                await self._poll()
            except WakeupError:
                continue
            except Exception as error:  # also of a listener
                self._error = to_driver_error(error) if isinstance(error, OttlaError) else error
                self._error_taken.clear()
                self._changed.set()
                self._assigned.set()  # `start` does not wait for an assignment that has failed
                await self._error_taken.wait()

    async def _poll(self) -> None:
        if self._subscription is not None and self._group_id is None and time.monotonic() >= self._refresh_at:
            await self._assign_all()
        if self._group_id is None and not self._consumer.assignment():
            await asyncio.sleep(POLL_SECONDS)
            return
        records = await self._consumer.poll(POLL_SECONDS)
        if records:
            self._buffer.extend(map(as_driver_record, records))
            self._changed.set()
        if len(self._buffer) >= self._limit and not self._is_full:
            self._is_full = True
            self._consumer.pause(*self._consumer.assignment())

    async def _assign_all(self) -> None:
        """Assign all partitions of the subscribed topics."""
        assert self._subscription is not None
        topics: Iterable[str] = self._subscription.topics
        pattern = self._subscription.pattern
        if pattern is not None:
            topics = [each for each in await self._consumer.topics() if pattern.match(each)]
        found = {topic: await self._consumer.partitions_for(topic) for topic in topics}
        mine = {TopicPartition(each.topic, each.partition) for infos in found.values() for each in infos}
        if mine - self._consumer.assignment():
            self._consumer.assign(mine)
        is_complete = all(found.values()) and pattern is None
        self._refresh_at = time.monotonic() + (REFRESH_SECONDS if is_complete else POLL_SECONDS)

    def _take(self) -> DriverRecord[Any, Any] | None:
        """Return a buffered record, which is returned to the caller; None if there is none. Raises the error of a poll."""
        if self._is_stopped:
            raise ConsumerStoppedError
        if self._error is not None:
            error, self._error = self._error, None
            self._error_taken.set()
            raise error
        for _ in range(len(self._buffer)):
            record = self._buffer.popleft()
            tp = TopicPartition(record.topic, record.partition)
            if tp in self._paused:
                self._buffer.append(record)
                continue
            self._positions[tp] = OffsetAndMetadata(record.offset + 1)
            if self._is_full and len(self._buffer) <= self._limit // 2:
                self._is_full = False
                self._consumer.resume(*(self._consumer.assignment() - self._paused))
                self._consumer.wakeup()
            return record
        self._changed.clear()
        return None

    async def _commit_periodically(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._maybe_commit(self._positions)

    async def _maybe_commit(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit positions that were not committed yet. An error only means that records are repeated."""
        with suppress(OttlaError):
            await self._commit({tp: at for tp, at in positions.items() if self._committed.get(tp) != at})

    async def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        while offsets:
            try:
                await self._consumer.commit(offsets)
            except WakeupError:  # meant for the poll
                continue
            self._committed.update(offsets)
            return

    def _choose(self, partitions: Iterable[tuple[str, int]]) -> set[TopicPartition]:
        return {TopicPartition(*each) for each in partitions} or self._consumer.assignment()

    def _drop_buffered(self, partitions: set[TopicPartition]) -> None:
        kept = [each for each in self._buffer if TopicPartition(each.topic, each.partition) not in partitions]
        self._buffer = deque(kept)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop what is buffered, and the positions."""
        chosen = set(partitions)
        self._drop_buffered(chosen)
        for each in chosen:
            self._positions.pop(each, None)
            self._committed.pop(each, None)
        self._paused -= chosen


def as_commit(offset: Any) -> OffsetAndMetadata:
    """Return an offset in a form that Ottla commits: a number, or a pair of offset and metadata."""
    if isinstance(offset, OffsetAndMetadata):
        return offset
    return OffsetAndMetadata(offset) if isinstance(offset, int) else OffsetAndMetadata(offset[0], offset[1])


def as_driver_record(record: Any) -> DriverRecord[Any, Any]:
    """Return the record in the class that functions of faststream's users expect."""
    return DriverRecord(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=record.timestamp,
        timestamp_type=int(record.timestamp_type),
        key=record.key,
        value=record.value,
        checksum=None,
        serialized_key_size=record.serialized_key_size,
        serialized_value_size=record.serialized_value_size,
        headers=tuple((name, content or b"") for name, content in record.headers),
    )
