"""What a micro-batch or a batch reads, and in which tasks: pure planning over offsets.

The rules are the official connector's, so that a query moved here reads in the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ottla.model import TopicPartition
from ottla.spark.ranges.offsets import Offsets, Plan


@dataclass(frozen=True)
class OffsetRange:
    """Offsets of one partition that one task reads; `end` is not read."""

    tp: TopicPartition
    start: int
    end: int
    topic_id: str = field(default="", compare=False)
    """Of the topic that the offsets are of; empty where that is not known."""

    @property
    def size(self) -> int:
        return self.end - self.start


def rate_limited(begin: Offsets, end: Offsets, limit: int) -> dict[TopicPartition, int]:
    """An end at most about `limit` offsets ahead, shared out by what each partition has to offer.

    Every partition with anything to offer moves by at least one, so that none starves.
    """
    sizes = {tp: end[tp] - begin[tp] for tp in end if tp in begin and end[tp] > begin[tp]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {tp: begin[tp] + share(sizes[tp], limit, total) if tp in sizes else end[tp] for tp in end}


def share(size: int, limit: int, total: int) -> int:
    """A partition's part of the limit: rounded down, but never to nothing."""
    return min(size, max(1, limit * size // total))


def held_back(begin: Offsets, end: Offsets, least: int, waited_ms: float, most_ms: float) -> bool:
    """Whether a micro-batch should wait for more: too few offsets are there, and it has not waited long."""
    offered = sum(max(0, end[tp] - begin.get(tp, 0)) for tp in end)
    return offered < least and waited_ms < most_ms


def ranges(begin: Offsets, end: Offsets, ids: Mapping[str, str] | None = None) -> list[OffsetRange]:
    """One range for each partition that has something to read; `ids` are those of the topics, where they are known."""
    known = ids or {}
    wanted = [tp for tp in sorted(end) if end[tp] > begin.get(tp, end[tp])]
    return [OffsetRange(tp, begin[tp], end[tp], known.get(tp.topic, "")) for tp in wanted]


def backwards(begin: Offsets, end: Offsets, earliest: Offsets, latest: Offsets) -> list[OffsetRange]:
    """The ranges that end before they start.

    Not those that start with the first record there is, for what they ask for is gone, nor those that end with the last,
    for where they start nothing ever was: `out_of_reach` tells of both.
    """
    wrong = [tp for tp in sorted(end) if begin[tp] > end[tp]]
    return [OffsetRange(tp, begin[tp], end[tp]) for tp in wrong if begin[tp] != earliest[tp] and end[tp] != latest[tp]]


def out_of_reach(begin: Offsets, end: Offsets, earliest: Offsets, latest: Offsets) -> list[str]:
    """What of a batch's ranges is not there, one sentence for each edge of a partition."""
    tps = sorted(end)
    return [
        *(f"{tp} starts at offset {earliest[tp]}, after offset {begin[tp]}" for tp in tps if begin[tp] < earliest[tp]),
        *(f"{tp} starts at offset {earliest[tp]}, after offset {end[tp]}" for tp in tps if end[tp] < earliest[tp]),
        *(f"{tp} ends at offset {latest[tp]}, before offset {begin[tp]}" for tp in tps if begin[tp] > latest[tp]),
        *(f"{tp} ends at offset {latest[tp]}, before offset {end[tp]}" for tp in tps if end[tp] > latest[tp]),
    ]


def split(parts: Iterable[OffsetRange], plan: Plan) -> list[OffsetRange]:
    """`parts` cut into tasks: first so that none is too large, then until there are enough."""
    pieces = list(parts)
    if plan.max_records_per_partition is not None:
        most = plan.max_records_per_partition
        pieces = [piece for part in pieces for piece in cut(part, math.ceil(part.size / most))]
    if plan.min_partitions is not None and len(pieces) < plan.min_partitions:
        total = sum(piece.size for piece in pieces)
        pieces = [p for part in pieces for p in cut(part, max(1, round(plan.min_partitions * part.size / total)))]
    return pieces


def cut(part: OffsetRange, count: int) -> list[OffsetRange]:
    """`part` in `count` pieces as equal as can be; none is empty."""
    count = min(count, part.size)
    edges = [part.start + part.size * i // count for i in range(count + 1)]
    return [replace(part, start=edges[i], end=edges[i + 1]) for i in range(count)]


def made_again(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """Topics that are others than those of their names that the query read."""
    return {topic for topic, identity in before.items() if now.get(topic, identity) != identity}


def replaced(topics: Iterable[str], begin: Offsets) -> list[str]:
    """One sentence for each topic that was made again."""
    had = {topic: ", ".join(f"{begin[tp]} of {tp}" for tp in sorted(begin) if tp.topic == topic) for topic in topics}
    return [
        f"topic {topic} was deleted and made again; the query had read up to offset {had[topic]}"
        for topic in sorted(had)
    ]


def losses(begin: Offsets, end: Offsets, earliest_of_new: Offsets) -> list[str]:
    """What is gone that the query has not read, one sentence for each partition."""
    gone = [tp for tp in sorted(begin) if tp not in end]
    shrunk = [tp for tp in sorted(end) if end[tp] < begin.get(tp, 0)]
    late = [tp for tp in sorted(earliest_of_new) if earliest_of_new[tp] > 0]
    return [
        *(f"partition {tp} is gone, and the query had read it up to offset {begin[tp]}" for tp in gone),
        *(f"partition {tp} ends at offset {end[tp]}, before offset {begin[tp]}, which is next" for tp in shrunk),
        *(f"new partition {tp} starts at offset {earliest_of_new[tp]}: the records before it are gone" for tp in late),
    ]
