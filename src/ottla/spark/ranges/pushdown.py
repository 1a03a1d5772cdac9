"""Filters on topic, partition, offset and timestamp, which limit the offsets that are read.

Pure. Filters on topics, partitions and offsets are applied exactly, so Spark need not apply them again. A filter on
timestamps only moves the start: producers set timestamps, so a record after the first one that is late enough may be
earlier again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from ottla.model import TopicPartition
from ottla.spark.ranges.plan import OffsetRange


@dataclass(frozen=True)
class PushedFilter:
    """The limits from a query's filters; None is no limit."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start: int = 0
    end: int | None = None
    """The end offset, exclusive."""
    since_ms: int | None = None
    """The timestamp of the earliest record, in ms since the epoch."""

    def has(self, tp: TopicPartition) -> bool:
        """Return True if records of a partition are needed."""
        named = self.topics is None or tp.topic in self.topics
        return named and (self.partitions is None or tp.partition in self.partitions)

    def within(self, part: OffsetRange, starts: Mapping[TopicPartition, int]) -> OffsetRange:
        """Return the needed part of a range; `starts` has the first offsets with the earliest timestamp."""
        end = part.end if self.end is None else min(part.end, self.end)
        start = max(part.start, self.start, starts.get(part.tp, 0))
        return replace(part, start=min(start, max(end, part.start)), end=max(end, part.start))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALWAYS = {"topic", "partition", "offset", "timestamp", "timestampType"}
"""Columns that are never null."""


def push(filters: Iterable[Filter]) -> tuple[PushedFilter, list[Filter]]:
    """Return the limits of all filters, and the filters that Spark must apply itself."""
    wanted, left = PushedFilter(), []
    for one in filters:
        narrower = narrow_filter(wanted, one)
        if narrower is not None:
            wanted = narrower
        if narrower is None or (filter_column(one) == "timestamp" and not isinstance(one, IsNotNull)):
            left.append(one)
    return wanted, left


def narrow_filter(wanted: PushedFilter, one: Filter) -> PushedFilter | None:
    """Return `wanted` limited by a filter; None if the filter is not supported."""
    name = filter_column(one)
    if isinstance(one, IsNotNull):
        return wanted if name in ALWAYS else None
    narrow = RULES.get((name, type(one)))
    value: Any = getattr(one, "value", None)
    return None if narrow is None or value is None else narrow(wanted, value)


def filter_column(one: Filter) -> str:
    """Return the column of a filter; an empty name if it is nested in another column."""
    path: tuple[str, ...] = getattr(one, "attribute", ())
    return path[0] if len(path) == 1 else ""


def intersect_sets(have: Collection[Any] | None, more: Iterable[Any]) -> frozenset[Any]:
    return frozenset(more) if have is None else frozenset(have) & frozenset(more)


def from_offset(wanted: PushedFilter, offset: int) -> PushedFilter:
    return replace(wanted, start=max(wanted.start, offset))


def to_offset(wanted: PushedFilter, offset: int) -> PushedFilter:
    return replace(wanted, end=offset if wanted.end is None else min(wanted.end, offset))


def limit_time(wanted: PushedFilter, moment: datetime) -> PushedFilter:
    """Limit by a timestamp; Kafka's are whole milliseconds, so fractions are rounded up."""
    ms = -((EPOCH - moment) // timedelta(milliseconds=1))
    return replace(wanted, since_ms=ms if wanted.since_ms is None else max(wanted.since_ms, ms))


def limit_topics(wanted: PushedFilter, names: Iterable[str]) -> PushedFilter:
    return replace(wanted, topics=intersect_sets(wanted.topics, names))


def limit_partitions(wanted: PushedFilter, numbers: Iterable[int]) -> PushedFilter:
    return replace(wanted, partitions=intersect_sets(wanted.partitions, numbers))


Rule = Callable[[PushedFilter, Any], PushedFilter]
RULES: dict[tuple[str, type[Filter]], Rule] = {
    ("topic", EqualTo): lambda wanted, name: limit_topics(wanted, [name]),
    ("topic", In): limit_topics,
    ("partition", EqualTo): lambda wanted, number: limit_partitions(wanted, [number]),
    ("partition", In): limit_partitions,
    ("offset", EqualTo): lambda wanted, offset: to_offset(from_offset(wanted, offset), offset + 1),
    ("offset", GreaterThanOrEqual): from_offset,
    ("offset", GreaterThan): lambda wanted, offset: from_offset(wanted, offset + 1),
    ("offset", LessThan): to_offset,
    ("offset", LessThanOrEqual): lambda wanted, offset: to_offset(wanted, offset + 1),
    ("timestamp", EqualTo): limit_time,
    ("timestamp", GreaterThanOrEqual): limit_time,
    ("timestamp", GreaterThan): limit_time,
}
"""The limit of each filter, by column and comparison."""
