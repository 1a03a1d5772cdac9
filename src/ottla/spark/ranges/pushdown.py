"""Predicates on topic, partition, offset and timestamp, which say which offsets need not be read at all.

Pure. What is said of topics, partitions and offsets is kept exactly, and Spark need not look again. Of times only where
reading may begin can be said: a record after the first that is late enough may be earlier again, as producers set times.
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
    """What a query can use, as far as its predicates say; None is no limit."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start: int = 0
    end: int | None = None
    """The offset before which it ends."""
    since_ms: int | None = None
    """The time of its earliest record, in ms since the epoch."""

    def has(self, tp: TopicPartition) -> bool:
        """Whether anything of a partition is wanted."""
        named = self.topics is None or tp.topic in self.topics
        return named and (self.partitions is None or tp.partition in self.partitions)

    def within(self, part: OffsetRange, starts: Mapping[TopicPartition, int]) -> OffsetRange:
        """What of a range is wanted; `starts` is where the earliest time begins."""
        end = part.end if self.end is None else min(part.end, self.end)
        start = max(part.start, self.start, starts.get(part.tp, 0))
        return replace(part, start=min(start, max(end, part.start)), end=max(end, part.start))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALWAYS = {"topic", "partition", "offset", "timestamp", "timestampType"}
"""Columns that are never null."""


def push(filters: Iterable[Filter]) -> tuple[PushedFilter, list[Filter]]:
    """What all filters together leave, and those that Spark has to apply itself."""
    wanted, left = PushedFilter(), []
    for one in filters:
        narrower = narrowed(wanted, one)
        if narrower is not None:
            wanted = narrower
        if narrower is None or (column(one) == "timestamp" and not isinstance(one, IsNotNull)):
            left.append(one)
    return wanted, left


def narrowed(wanted: PushedFilter, one: Filter) -> PushedFilter | None:
    """`wanted` within a filter; None if the filter is none of ours."""
    name = column(one)
    if isinstance(one, IsNotNull):
        return wanted if name in ALWAYS else None
    narrow = RULES.get((name, type(one)))
    value: Any = getattr(one, "value", None)
    return None if narrow is None or value is None else narrow(wanted, value)


def column(one: Filter) -> str:
    """The name of the column that a filter is about, as Spark writes it; none if it is within another."""
    path: tuple[str, ...] = getattr(one, "attribute", ())
    return path[0] if len(path) == 1 else ""


def both(have: Collection[Any] | None, more: Iterable[Any]) -> frozenset[Any]:
    return frozenset(more) if have is None else frozenset(have) & frozenset(more)


def from_offset(wanted: PushedFilter, offset: int) -> PushedFilter:
    return replace(wanted, start=max(wanted.start, offset))


def to_offset(wanted: PushedFilter, offset: int) -> PushedFilter:
    return replace(wanted, end=offset if wanted.end is None else min(wanted.end, offset))


def since(wanted: PushedFilter, moment: datetime) -> PushedFilter:
    """From a time on; Kafka's are whole milliseconds, so a fraction of one is rounded up."""
    ms = -((EPOCH - moment) // timedelta(milliseconds=1))
    return replace(wanted, since_ms=ms if wanted.since_ms is None else max(wanted.since_ms, ms))


def topics(wanted: PushedFilter, names: Iterable[str]) -> PushedFilter:
    return replace(wanted, topics=both(wanted.topics, names))


def partitions(wanted: PushedFilter, numbers: Iterable[int]) -> PushedFilter:
    return replace(wanted, partitions=both(wanted.partitions, numbers))


Rule = Callable[[PushedFilter, Any], PushedFilter]
RULES: dict[tuple[str, type[Filter]], Rule] = {
    ("topic", EqualTo): lambda wanted, name: topics(wanted, [name]),
    ("topic", In): topics,
    ("partition", EqualTo): lambda wanted, number: partitions(wanted, [number]),
    ("partition", In): partitions,
    ("offset", EqualTo): lambda wanted, offset: to_offset(from_offset(wanted, offset), offset + 1),
    ("offset", GreaterThanOrEqual): from_offset,
    ("offset", GreaterThan): lambda wanted, offset: from_offset(wanted, offset + 1),
    ("offset", LessThan): to_offset,
    ("offset", LessThanOrEqual): lambda wanted, offset: to_offset(wanted, offset + 1),
    ("timestamp", EqualTo): since,
    ("timestamp", GreaterThanOrEqual): since,
    ("timestamp", GreaterThan): since,
}
"""By column and comparison, what a filter leaves of what is wanted."""
