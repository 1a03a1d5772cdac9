"""The source of streaming queries: the offsets of each micro-batch.

The reader lives in one Python process of the driver for as long as a query runs. `ranges/plan.py` makes the decisions,
and `OffsetReader` reads the available offsets. A batch that Spark runs again must read the same records. Spark's
`MicroBatchExecution` writes the end offset to its offset log before it runs the batch, and calls `partitions(start,
end)` again after a restart. So everything that determines the tasks of a batch (start offsets of new partitions, the
plan, topic ids) is part of its end offset.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.clock import Clock, SystemClock
from ottla.model import TopicPartition
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.failure import without_traceback
from ottla.spark.options import SourceOptions
from ottla.spark.ranges.bounds import delay_ms, start_of_stream
from ottla.spark.ranges.offset_reader import OffsetReader, report_losses, report_unsubscribed
from ottla.spark.ranges.offsets import Offsets, SplitLimits, StreamOffset, read_checkpointed
from ottla.spark.ranges.plan import (
    describe_losses,
    describe_recreated_topics,
    find_recreated_topics,
    ranges,
    rate_limited,
    should_hold_back,
    split,
)
from ottla.spark.ranges.progress import GroupProgress
from ottla.spark.source.idle import IdleWait
from ottla.spark.source.range_reader import read_partition

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offsets and tasks of a streaming query."""

    def __init__(
        self,
        options: SourceOptions,
        decoding: Decoding,
        open_kafka: Callable[[SourceOptions], OffsetReader] = OffsetReader,
        clock: Clock | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options, self.decoding = options, decoding
        self.start = start_of_stream(options)
        self.plan = SplitLimits(options.min_partitions, options.max_records_per_partition)
        self._open_kafka = open_kafka
        self._clock = clock or SystemClock()
        self._kafka: OffsetReader | None = None
        self._initial: StreamOffset | None = None
        self._target: Offsets | None = None
        self._latest: Offsets | None = None
        self._last_batch: float | None = None
        self.idle = IdleWait(delay_ms(options.idle_wait, "idleWait") / 1000, self._clock, pause)
        self.progress = GroupProgress(options, lambda offsets: self.kafka.publish(offsets))

    @property
    def kafka(self) -> OffsetReader:
        """Open the connection on first use, because Spark pickles readers to tasks that only read."""
        if self._kafka is None:
            self._kafka = self._open_kafka(self.options)
        return self._kafka

    def initialOffset(self) -> dict[str, Any]:
        """Return the start of a new query; the same in each call."""
        with without_traceback():
            if self._initial is None:
                found = self.kafka.resolve(self.start, self.kafka.partitions())
                self._initial = StreamOffset(found, initial=True)
            return self._initial.to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Read only the records that exist now, and end the query after them."""
        with without_traceback():
            self._target = self.kafka.latest(self.kafka.partitions(may_be_gone=True))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next micro-batch; `start` if there is nothing to read."""
        with without_traceback():
            before = read_checkpointed(start)
            # Spark calls this for the next batch when the previous one is committed, so offsets before `start` were processed.
            self.progress.publish(before)
            end = self.next_end(before, limit)
            if end is None and self.is_idle(before) and self.idle.wait(lambda: self.available(before) != self._latest):
                end = self.next_end(before, limit)
            if end is None:
                return start
            self.idle.found()
            return end.to_dict()

    def is_idle(self, before: StreamOffset) -> bool:
        """Return True if all available records were read, and more may arrive."""
        return self._target is None and before.offsets == self._latest

    def next_end(self, before: StreamOffset, limit: ReadLimit) -> StreamOffset | None:
        """Return the end of the batch after `before`; None if there should be no batch."""
        latest = self.available(before)
        ids = self.kafka.topic_ids({tp.topic for tp in latest})
        again = find_recreated_topics(before.ids, ids)
        report_losses(describe_recreated_topics(again, before.offsets), self.options.fail_on_data_loss)
        read = {tp: offset for tp, offset in before.offsets.items() if not self.kafka.is_excluded(tp)}
        known = {tp: offset for tp, offset in read.items() if tp.topic not in again}
        strange = {tp: known.pop(tp) for tp in sorted(known) if tp not in latest and not self.kafka.is_selected(tp)}
        report_unsubscribed(strange, self.options.fail_on_data_loss)
        new = self.kafka.earliest([tp for tp in latest if tp not in known])
        report_losses(describe_losses(known, latest, new), self.options.fail_on_data_loss)
        begin = {tp: ({**known, **new})[tp] for tp in latest}
        self._latest = latest
        end = begin if self.should_wait(begin, latest, limit) else self.limit_end(begin, latest, limit)
        if before.initial:
            # The first batch stores the start, even if it is empty. Otherwise a query that starts at the latest offset
            # and restarts before any record arrives would start at another offset.
            return StreamOffset(end, start=begin, plan=self.plan, ids=ids)
        if end == before.offsets and not again:
            return None
        self._last_batch = self._clock.monotonic()
        return StreamOffset(end, start=new, plan=self.plan, ids=ids)

    def available(self, before: StreamOffset) -> dict[TopicPartition, int]:
        """Return the offsets up to which the query may read now."""
        if self._target is None:
            return dict(self.kafka.latest(self.kafka.partitions(may_be_gone=True)))
        if before.initial:  # "latest" was resolved after the target was set, and may be ahead of it
            self._target = {tp: max(end, before.offsets.get(tp, 0)) for tp, end in self._target.items()}
        return dict(self._target)

    def should_wait(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> bool:
        """Return True if `minOffsetsPerTrigger` delays this batch; never if the trigger reads all available records."""
        least = self.options.min_offsets_per_trigger
        if least is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        now = self._clock.monotonic()
        if self._last_batch is None:
            self._last_batch = now
        return should_hold_back(
            begin, latest, least, (now - self._last_batch) * 1000, delay_ms(self.options.max_trigger_delay)
        )

    def limit_end(self, begin: Offsets, latest: Offsets, limit: ReadLimit) -> Offsets:
        """Return the end that the trigger's limit allows."""
        return rate_limited(begin, latest, limit.max_rows) if isinstance(limit, ReadMaxRows) else latest

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._latest is None else StreamOffset(self._latest).to_dict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch. They depend only on its offsets, so that a repeated batch has the same tasks."""
        with without_traceback():
            until = read_checkpointed(end)
            begin = until.begin(read_checkpointed(start))
            return [InputPartition(part) for part in split(ranges(begin, until.offsets, until.ids), until.plan)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self.options, self.decoding, partition)

    def stop(self) -> None:
        """Close the driver's connection; Spark calls this when the query ends."""
        if self._kafka is not None:
            self._kafka.close()
            self._kafka = None
