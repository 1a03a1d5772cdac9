"""Samples keys or values of the topics, to infer their schema."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.spark.options import SourceOptions
from ottla.spark.ranges.offset_reader import OffsetReader
from ottla.spark.ranges.plan import ranges
from ottla.spark.source.range_reader import read_raw


def some_of(options: SourceOptions, column: str) -> Iterator[bytes | None]:
    """Yield the column's values in the first `inferRecords` records of each partition."""
    with OffsetReader(options) as kafka:
        tps = kafka.partitions()
        first, last = kafka.earliest(tps), kafka.latest(tps)
    few = {tp: min(last[tp], first[tp] + options.infer_records) for tp in tps}
    for part in ranges(first, few):
        for batch in read_raw(options, part):
            yield from batch.column(column).to_pylist()
