"""The acknowledgements of records of a share group, and their form in requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

from ottla.model import TopicPartition
from ottla.protocol.messages.share_fetch import AcknowledgementBatch

GAP = 0
"""The type of an offset that was acquired and has no record, such as that of a control record."""
LONG_RUN = 10
"""From so many offsets of one type on, a batch of their own is smaller than one type for each of them."""


class AcknowledgeType(IntEnum):
    """The result of processing a record (KIP-932; RENEW: KIP-1222)."""

    ACCEPT = 1
    """Processed. The record is not delivered again."""
    RELEASE = 2
    """Not processed. The record is delivered again, to any member, until its delivery limit is reached."""
    REJECT = 3
    """Cannot be processed. The record is not delivered again."""
    RENEW = 4
    """Still in progress. The acquisition lock starts again, and the record must be acknowledged again."""


class ShareTopicPartition(NamedTuple):
    """A partition of a subscribed topic, with the id of the topic."""

    topic_id: UUID
    topic: str
    partition: int

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class UniformTypes(Mapping[int, int]):
    """One type, other than RENEW, for disjoint ranges of offsets: the acknowledgements of a program that accepts all."""

    __slots__ = ("kind", "ranges")

    def __init__(self, ranges: Sequence[range], kind: int) -> None:
        assert kind != AcknowledgeType.RENEW
        self.ranges = ranges
        self.kind = kind

    def __getitem__(self, offset: int) -> int:
        if any(offset in each for each in self.ranges):
            return self.kind
        raise KeyError(offset)

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self.ranges)

    def __len__(self) -> int:
        return sum(map(len, self.ranges))


class Acknowledgements(NamedTuple):
    """Acknowledged offsets of one partition, for the broker that delivered them."""

    node_id: int
    partition: ShareTopicPartition
    types: Mapping[int, int]
    """The type of each offset: an AcknowledgeType, or GAP."""
    deadline: float
    """Retriable errors are retried until this time."""
    commit: Any = None
    """The call that waits for the result, if there is one."""

    @property
    def renewals(self) -> set[int]:
        """The offsets of which the lock is renewed."""
        types = self.types
        if isinstance(types, UniformTypes) or AcknowledgeType.RENEW not in types.values():
            return set()
        return {offset for offset, kind in types.items() if kind == AcknowledgeType.RENEW}


class AcknowledgeResult(NamedTuple):
    """The result of acknowledgements."""

    sent: Acknowledgements
    error: Exception | None


def merge_batches(acknowledged: Sequence[Mapping[int, int]]) -> list[AcknowledgementBatch]:
    """Return the batches for all acknowledgements of one partition. For an offset that occurs twice, the later type counts."""
    uniform = [each for each in acknowledged if isinstance(each, UniformTypes)]
    kinds = {each.kind for each in uniform}
    if len(uniform) == len(acknowledged) and len(kinds) == 1:
        joined = join_ranges([one for each in uniform for one in each.ranges])
        if joined is not None:
            return [AcknowledgementBatch(each.start, each.stop - 1, [*kinds]) for each in joined]
    merged: dict[int, int] = {}
    for types in acknowledged:
        merged.update(types)
    return build_batches(merged)


def join_ranges(ranges: Sequence[range]) -> list[range] | None:
    """Return the ranges in ascending order, adjacent ones as one; None if some overlap."""
    joined: list[range] = []
    for each in sorted(ranges, key=lambda each: each.start):
        if joined and each.start < joined[-1].stop:
            return None
        if joined and each.start == joined[-1].stop:
            joined[-1] = range(joined[-1].start, each.stop)
        else:
            joined.append(each)
    return joined


def build_batches(types: Mapping[int, int]) -> list[AcknowledgementBatch]:
    """Return batches of consecutive offsets in ascending order, with one type for all or one for each offset."""
    batches: list[AcknowledgementBatch] = []
    mixed: list[tuple[int, int, int]] = []
    for run in split_runs(types):
        first, last, _ = run
        if mixed and mixed[-1][1] + 1 != first:
            batches.append(join_runs(mixed))
            mixed = []
        if last - first + 1 < LONG_RUN:
            mixed.append(run)
            continue
        if mixed:
            batches.append(join_runs(mixed))
            mixed = []
        batches.append(join_runs([run]))
    if mixed:
        batches.append(join_runs(mixed))
    return batches


def split_runs(types: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield the first offset, the last offset and the type of each run of consecutive offsets with the same type."""
    first = last = kind = None
    for offset in sorted(types):
        if last is None or offset != last + 1 or types[offset] != kind:
            if first is not None and last is not None and kind is not None:
                yield first, last, kind
            first, kind = offset, types[offset]
        last = offset
    if first is not None and last is not None and kind is not None:
        yield first, last, kind


def join_runs(runs: list[tuple[int, int, int]]) -> AcknowledgementBatch:
    """Return one batch of runs without gaps between them."""
    first, last = runs[0][0], runs[-1][1]
    if len(runs) == 1:
        return AcknowledgementBatch(first, last, [runs[0][2]])
    kinds = [kind for start, stop, kind in runs for _ in range(stop - start + 1)]
    return AcknowledgementBatch(first, last, kinds)
