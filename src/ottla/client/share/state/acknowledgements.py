"""The acknowledgements of records of a share group, and their form in requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
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


class AcknowledgeResult(NamedTuple):
    """The result of acknowledgements."""

    sent: Acknowledgements
    error: Exception | None


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
