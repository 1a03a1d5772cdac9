"""Compare aborted transactions and leader epochs next to a log with its batches.

Only existing batches count: compaction and retention may have removed the batches of an entry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.records.control import ControlType
from ottla.records.end_marker import decode_end_marker
from ottla.storage.batches.walk import StoredBatch
from ottla.storage.inspection.fault import FileFault
from ottla.storage.inspection.state_files import ABORTED, ABORTED_REMEDY, read_aborted


class Seen(NamedTuple):
    """A batch, as far as it matters to transactions."""

    base_offset: int
    last_offset: int
    producer_id: int
    is_control: bool
    aborts: bool | None
    """True for the marker of an abort; None if that is no longer known."""


class Producers:
    """The batches of a partition by their producers, in the order of their offsets."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._seen: list[Seen] = []

    def add(self, batch: StoredBatch) -> None:
        """Note one; those without a producer are as one, as long as there is no gap."""
        header = batch.header
        last = self._seen[-1] if self._seen else None
        if (
            last is not None
            and header.producer_id == last.producer_id == -1
            and header.base_offset == last.last_offset + 1
        ):
            self._seen[-1] = last._replace(last_offset=header.last_offset)
            return
        self._bases.append(header.base_offset)
        self._seen.append(
            Seen(header.base_offset, header.last_offset, header.producer_id, header.is_control, is_abort_marker(batch))
        )

    def find_producer_batch(self, offset: int) -> Seen | None:
        """Return the batch that an offset lies in."""
        number = bisect_right(self._bases, offset) - 1
        found = self._seen[number] if number >= 0 else None
        return found if found is not None and offset <= found.last_offset else None


def is_abort_marker(batch: StoredBatch) -> bool | None:
    """Return True for the marker of an abort; None if compaction has emptied it."""
    if not batch.header.is_control:
        return False
    try:
        marker = decode_end_marker(bytes(batch.data), 0, batch.header)
    except CorruptRecordError:
        return None
    return None if marker is None else marker.type is ControlType.ABORT


def check_aborted(path: Path, producers: Producers) -> Iterator[FileFault]:
    """Each aborted transaction of a `.txnindex` ends with a marker of its producer, and begins with a batch of it."""
    for number, row in enumerate(read_aborted(path)):
        id_, first, last = row["producerId"], row["firstOffset"], row["lastOffset"]
        end, begin = producers.find_producer_batch(last), producers.find_producer_batch(first)
        reason = ""
        if end is not None and (end.producer_id != id_ or end.aborts is False):
            reason = f"offset {last} is not where a transaction of producer {id_} was aborted"
        elif first < 0 or (begin is not None and (begin.producer_id != id_ or begin.is_control)):
            reason = f"offset {first} is not a record of producer {id_}"
        elif begin is not None and begin.base_offset != first:
            reason = f"no batch begins at offset {first}"
        if reason:
            yield FileFault(path, f"{reason}; {ABORTED_REMEDY}", number * ABORTED.size, first, ABORTED.size)
