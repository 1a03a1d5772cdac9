"""The source of batch queries: a range of offsets, fixed when the query is planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from ottla.errors import ConfigError
from ottla.model import TopicPartition
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.failure import without_traceback
from ottla.spark.options import SourceOptions
from ottla.spark.ranges.bounds import end_of_batch, start_of_batch
from ottla.spark.ranges.offset_reader import OffsetReader, report_losses
from ottla.spark.ranges.offsets import SplitLimits
from ottla.spark.ranges.plan import OffsetRange, find_backwards, out_of_reach, ranges, split
from ottla.spark.ranges.pushdown import PushedFilter, push
from ottla.spark.source.range_reader import read_partition

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """The offsets and tasks of a batch query."""

    def __init__(self, options: SourceOptions, decoding: Decoding) -> None:
        self.options, self.decoding = options, decoding
        self.start, self.end = start_of_batch(options), end_of_batch(options)
        self.wanted = PushedFilter()

    def partitions(self) -> Sequence[InputPartition]:
        with without_traceback(), OffsetReader(self.options) as kafka:
            parts = self.plan(kafka)
        plan = SplitLimits(self.options.min_partitions, self.options.max_records_per_partition)
        return [InputPartition(part) for part in split(parts, plan)]

    def plan(self, kafka: OffsetReader) -> list[OffsetRange]:
        """Return the ranges to read, within the available offsets."""
        tps = kafka.partitions()
        begin, end = kafka.resolve(self.start, tps), kafka.resolve(self.end, tps, is_end=True)
        earliest, latest = kafka.earliest(tps), kafka.latest(tps)
        self.check_order(find_backwards(begin, end, earliest, latest))
        report_losses(out_of_reach(begin, end, earliest, latest), self.options.fail_on_data_loss)
        there = ranges({tp: max(begin[tp], earliest[tp]) for tp in tps}, {tp: min(end[tp], latest[tp]) for tp in tps})
        return self.apply_filter(kafka, [part for part in there if self.wanted.has(part.tp)])

    def check_order(self, wrong: list[OffsetRange]) -> None:
        """Raise ConfigError for a range that ends before it starts."""
        for tp, start, end in ((part.tp, part.start, part.end) for part in wrong):
            raise ConfigError(
                f"{tp} would be read from offset {start} ({self.start.option}) to offset {end} ({self.end.option}), "
                "which is before it; correct one of them"
            )

    def apply_filter(self, kafka: OffsetReader, parts: list[OffsetRange]) -> list[OffsetRange]:
        """Return the ranges limited by filters."""
        starts: dict[TopicPartition, int] = {}
        if self.wanted.since_ms is not None:
            starts = kafka.first_since(self.wanted.since_ms, [part.tp for part in parts])
        wanted = [self.wanted.within(part, starts) for part in parts]
        return [part for part in wanted if part.size]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self.options, self.decoding, partition)


class FilteringBatchReader(BatchReader):
    """Reads less: Spark passes its filters.

    Spark rejects such a reader if filter pushdown is disabled (see `has_filter_pushdown`).
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Limit the ranges by the filters; return those that Spark must apply itself."""
        self.wanted, left = push(filters)
        return left
