"""Plans the offsets of a batch and its tasks: pure calculations on offsets.

The rules are those of the official connector (`KafkaMicroBatchStream`, `KafkaOffsetRangeCalculator`), so a query that
is moved here has the same batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ottla.model import TopicPartition
from ottla.spark.ranges.offsets import Offsets, SplitLimits


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of one partition that one task reads; `end` is exclusive."""

    tp: TopicPartition
    start: int
    end: int
    topic_id: str = field(default="", compare=False)
    """The id of the topic; empty if it is not known."""

    @property
    def size(self) -> int:
        return self.end - self.start


def rate_limited(begin: Offsets, end: Offsets, limit: int) -> dict[TopicPartition, int]:
    """Return end offsets about `limit` ahead in total, divided in proportion to each partition's available offsets.

    Every partition with available offsets advances by at least one, so that none starves.
    """
    sizes = {tp: end[tp] - begin[tp] for tp in end if tp in begin and end[tp] > begin[tp]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {tp: begin[tp] + share_of_limit(sizes[tp], limit, total) if tp in sizes else end[tp] for tp in end}


def share_of_limit(size: int, limit: int, total: int) -> int:
    """Return a partition's share of the limit: rounded down, but at least 1."""
    return min(size, max(1, limit * size // total))


def should_hold_back(begin: Offsets, end: Offsets, least: int, waited_ms: float, most_ms: float) -> bool:
    """Return True if a micro-batch should wait: there are too few offsets, and it has not waited long."""
    offered = sum(max(0, end[tp] - begin.get(tp, 0)) for tp in end)
    return offered < least and waited_ms < most_ms


def ranges(begin: Offsets, end: Offsets, ids: Mapping[str, str] | None = None) -> list[OffsetRange]:
    """Return a range for each partition with offsets to read; `ids` has the ids of topics, if known."""
    known = ids or {}
    wanted = [tp for tp in sorted(end) if end[tp] > begin.get(tp, end[tp])]
    return [OffsetRange(tp, begin[tp], end[tp], known.get(tp.topic, "")) for tp in wanted]


def find_backwards(begin: Offsets, end: Offsets, earliest: Offsets, latest: Offsets) -> list[OffsetRange]:
    """Return the ranges that end before they start.

    Ranges that start at the first record or end at the last one are excluded: their other end does not exist any more
    or not yet, which `out_of_reach` reports.
    """
    wrong = [tp for tp in sorted(end) if begin[tp] > end[tp]]
    return [OffsetRange(tp, begin[tp], end[tp]) for tp in wrong if begin[tp] != earliest[tp] and end[tp] != latest[tp]]


def out_of_reach(begin: Offsets, end: Offsets, earliest: Offsets, latest: Offsets) -> list[str]:
    """Return the bounds of a batch that are outside of the available offsets, in one sentence for each bound."""
    tps = sorted(end)
    return [
        *(f"{tp} starts at offset {earliest[tp]}, after offset {begin[tp]}" for tp in tps if begin[tp] < earliest[tp]),
        *(f"{tp} starts at offset {earliest[tp]}, after offset {end[tp]}" for tp in tps if end[tp] < earliest[tp]),
        *(f"{tp} ends at offset {latest[tp]}, before offset {begin[tp]}" for tp in tps if begin[tp] > latest[tp]),
        *(f"{tp} ends at offset {latest[tp]}, before offset {end[tp]}" for tp in tps if end[tp] > latest[tp]),
    ]


def split(parts: Iterable[OffsetRange], plan: SplitLimits) -> list[OffsetRange]:
    """Return `parts` split into tasks: first by the maximum size, then by the minimum number of tasks."""
    pieces = list(parts)
    if plan.max_records_per_partition is not None:
        most = plan.max_records_per_partition
        pieces = [piece for part in pieces for piece in split_range(part, math.ceil(part.size / most))]
    if plan.min_partitions is not None and len(pieces) < plan.min_partitions:
        total = sum(piece.size for piece in pieces)
        pieces = [
            p for part in pieces for p in split_range(part, max(1, round(plan.min_partitions * part.size / total)))
        ]
    return pieces


def split_range(part: OffsetRange, count: int) -> list[OffsetRange]:
    """Return `part` in `count` pieces of nearly equal size; none is empty."""
    count = min(count, part.size)
    edges = [part.start + part.size * i // count for i in range(count + 1)]
    return [replace(part, start=edges[i], end=edges[i + 1]) for i in range(count)]


def find_recreated_topics(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Return the topics that were deleted and created again since the query read them."""
    return {topic for topic, identity in before.items() if now.get(topic, identity) != identity}


def describe_recreated_topics(topics: Iterable[str], begin: Offsets) -> list[str]:
    """Return a sentence for each topic that was created again."""
    had = {topic: ", ".join(f"{begin[tp]} of {tp}" for tp in sorted(begin) if tp.topic == topic) for topic in topics}
    return [
        f"topic {topic} was deleted and created again; the query had read up to offset {had[topic]}"
        for topic in sorted(had)
    ]


def describe_losses(begin: Offsets, end: Offsets, earliest_of_new: Offsets) -> list[str]:
    """Return a sentence for each partition with records that the query has not read and that do not exist any more."""
    gone = [tp for tp in sorted(begin) if tp not in end]
    shrunk = [tp for tp in sorted(end) if end[tp] < begin.get(tp, 0)]
    late = [tp for tp in sorted(earliest_of_new) if earliest_of_new[tp] > 0]
    return [
        *(f"partition {tp} does not exist any more, and the query had read it up to offset {begin[tp]}" for tp in gone),
        *(f"partition {tp} ends at offset {end[tp]}, before offset {begin[tp]}, which is next" for tp in shrunk),
        *(
            f"new partition {tp} starts at offset {earliest_of_new[tp]}: earlier records do not exist any more"
            for tp in late
        ),
    ]
