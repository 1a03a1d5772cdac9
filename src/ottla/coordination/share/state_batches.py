"""The persisted form of record states: ranges of offsets with one state and one delivery count.

The leader of a partition sends changed ranges to the share coordinator, which merges them into the ranges that it has. Where two ranges
overlap, the higher delivery count wins, then the higher state: a record is never delivered fewer times, and its state only advances within
one delivery. So a repeated or delayed range changes nothing. Apache Kafka's PersisterStateBatchCombiner has the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class PersisterStateBatch(NamedTuple):
    """The records from `first_offset` to `last_offset`, both included."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


def combine_state_batches(
    current: Sequence[PersisterStateBatch], changes: Iterable[PersisterStateBatch], start_offset: int = -1
) -> tuple[PersisterStateBatch, ...]:
    """Return both as sorted batches without an overlap, without offsets before `start_offset` (-1: no start offset is known).

    Adjacent batches of the same state and count become one.
    """
    batches = sorted(
        PersisterStateBatch(max(batch.first_offset, start_offset), *batch[1:])
        for batch in (*current, *changes)
        if batch.last_offset >= start_offset
    )
    if len(batches) < 2:
        # The usual case: a member acknowledges all that it has acquired.
        return tuple(batch for batch in batches if batch.first_offset <= batch.last_offset)
    combined: list[PersisterStateBatch] = []
    # The batches that cover the present position: the winner first.
    covering: list[tuple[int, int, int]] = []
    index, position = 0, 0
    while index < len(batches) or covering:
        if not covering:
            position = max(position, batches[index].first_offset)
        while index < len(batches) and batches[index].first_offset <= position:
            batch = batches[index]
            heappush(covering, (-batch.delivery_count, -batch.state, batch.last_offset))
            index += 1
        while covering and covering[0][2] < position:
            heappop(covering)
        if not covering:
            continue
        count, state, last_offset = -covering[0][0], -covering[0][1], covering[0][2]
        if index < len(batches):
            last_offset = min(last_offset, batches[index].first_offset - 1)
        append_state_batch(combined, PersisterStateBatch(position, last_offset, state, count))
        position = last_offset + 1
    return tuple(combined)


def append_state_batch(batches: list[PersisterStateBatch], batch: PersisterStateBatch) -> None:
    """Append a batch that starts after the last one; extend the last one if it is adjacent and has the same state and count."""
    if batches and batches[-1].last_offset + 1 == batch.first_offset and batches[-1][2:] == batch[2:]:
        batches[-1] = PersisterStateBatch(batches[-1].first_offset, *batch[1:])
    else:
        batches.append(batch)
