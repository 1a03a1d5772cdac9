"""Compaction of a log: the last record of each key stays, at its offset.

    read_keys ──► for each group of segments: write ──► (the log uses the result) ──► take_place

The work takes long and belongs into another thread than the log's; only the exchange of segments in the log runs in the log's
thread. Memory is bounded by the key map, two blocks and the largest batch: more keys than fit need several passes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from ottla.errors import CorruptRecordError
from ottla.model import Buffer
from ottla.records.batch import HEADER_BYTES, BatchHeader, parse_header, verify
from ottla.records.compression import decompress
from ottla.storage.batches.scan import ScanWindow, read_header
from ottla.storage.cleaning.batch_cleaner import BatchCleaner
from ottla.storage.cleaning.cleaned_transactions import CleanedTransactions
from ottla.storage.cleaning.cleaning_plan import CleaningPlan, Extent, group_extents
from ottla.storage.cleaning.key_map import KeyMap
from ottla.storage.files.open_file import OpenFile
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_state import AbortedTxn, LastRecord
from ottla.storage.segments import swap
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.succession import row_of, write_rows

READ_BLOCK = 1 << 18
WRITE_BLOCK = 1 << 20
PIECE_BYTES = 1 << 16
"""The amount of work between two calls of `breathe`: 0.1 to 0.2 ms, during which other threads wait for the interpreter."""
BATCH_COST = 4096
"""A batch is as much work as so many bytes, however small it is."""


class CleanedTransactionState(Struct, frozen=True):
    """The transactions and producers of the log at the start of a compaction."""

    aborted: Sequence[AbortedTxn] = ()
    """All that are in the transaction indexes, in order."""
    producers: Mapping[int, LastRecord] = field(default_factory=dict)


class Cleaner:
    """One pass over a log. It changes files only; the owner changes the log."""

    def __init__(
        self,
        directory: Path,
        extents: Sequence[Extent],
        plan: CleaningPlan,
        config: LogConfig,
        *,
        keys: KeyMap,
        now_ms: int,
        transactions: CleanedTransactionState | None = None,
        breathe: Callable[[int], None] = lambda size: None,
    ) -> None:
        """`extents` are the segments below the plan's upper bound.

        `breathe` is called after each piece of work, with its size in bytes, and may wait, or raise to stop the
        compaction.
        """
        self.directory = directory
        self.extents = extents
        self.plan = plan
        self.keys = keys
        self.offered: Segment | None = None
        self.exchange: swap.SegmentSwap | None = None
        """The exchange of the offered segment that is not complete yet."""
        self.bytes_read = 0
        self.bytes_written = 0
        self._config = config
        self._breathe = breathe
        known = transactions or CleanedTransactionState()
        self._aborted = known.aborted
        self._transactions = CleanedTransactions(known.aborted)
        self._batches = BatchCleaner(
            keys,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            upper_bound=plan.upper_bound,
            transactions=self._transactions,
            producers=known.producers,
        )

    @property
    def end_offset(self) -> int:
        """The offset below which every superseded record is gone after this pass."""
        return self.keys.end_offset

    def read_keys(self) -> None:
        """Fill the map from the first offset that was not cleaned, as far as it has room."""
        transactions = CleanedTransactions(self._aborted)
        self.keys.end_offset = self.plan.first_dirty
        for extent in self.extents:
            if extent.next_offset <= self.plan.first_dirty:
                continue
            for header, data in self._batches_of(extent):
                if not self._record_keys(header, data, transactions):
                    return
            self.keys.end_offset = max(self.keys.end_offset, extent.next_offset)

    def groups(self) -> list[list[Extent]]:
        """Return the segments to rewrite; those of a group become one."""
        return group_extents([extent for extent in self.extents if extent.base_offset < self.end_offset], self._config)

    def write(self, group: Sequence[Extent]) -> None:
        """Make the compacted segment of a group, whole on the disk and `offered` to take its place."""
        first = group[0].base_offset
        segment = Segment.create(self.directory, first, self._config.index_interval_bytes, swap.CLEANED)
        del self._transactions.kept[:]
        for headers, data in self._gather_batches(group):
            segment.append(memoryview(data), headers)
            self.bytes_written += len(data)
        for aborted in self._transactions.kept:
            segment.transactions.append(aborted)
        segment.seal()
        segment.flush()
        self._preserve_age(segment, group[-1])
        write_rows(self.directory, [row_of(segment.path, group[-1].next_offset)])  # before its sources are deleted
        swap.mark_complete(segment)
        self.offered = segment

    def replace_segments(self, group: Sequence[Extent]) -> None:
        """Delete the files of a group and give the new ones their names; the log knows of it already."""
        assert self.offered is not None
        self.exchange = swap.SegmentSwap(self.offered, [extent.base_offset for extent in group])
        self.exchange.carry_through()
        self.exchange = self.offered = None

    def _record_keys(self, header: BatchHeader, data: memoryview, transactions: CleanedTransactions) -> bool:
        discarded = transactions.should_discard(header, data)
        if header.next_offset <= self.plan.first_dirty:
            return True
        if header.count and not header.is_control and not discarded:
            records = decompress(header.codec, data[HEADER_BYTES:])
            if not self.keys.add_keys(records, header.count, header.base_offset, self.plan.first_dirty):
                return False
        self.keys.end_offset = header.next_offset
        return True

    def _gather_batches(self, group: Sequence[Extent]) -> Iterator[tuple[list[BatchHeader], Buffer]]:
        """Yield the remaining batches of a group, in pieces large enough for a write."""
        headers: list[BatchHeader] = []
        parts: list[Buffer] = []
        size = 0
        for extent in group:
            for header, data in self._batches_of(extent):
                kept = self._batches.clean(header, data)
                if kept is None:
                    continue
                headers.append(header if kept is data else parse_header(kept))
                parts.append(kept)
                size += len(kept)
                if size >= WRITE_BLOCK:
                    yield headers, b"".join(parts)
                    headers, parts, size = [], [], 0
        if parts:
            yield headers, b"".join(parts)

    def _batches_of(self, extent: Extent) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Header and bytes of each batch of a segment; CorruptRecordError names the file where one is damaged."""
        path = self.directory / f"{extent.base_offset:020d}.log"
        window = ScanWindow(OpenFile(path), extent.size, READ_BLOCK)
        position = worked = 0
        try:
            while position < extent.size:
                header = read_header(window, position, extent.size)
                data = window.view(position, header.size_bytes)
                verify(data, 0, header)
                yield header, data
                position += header.size_bytes
                self.bytes_read += header.size_bytes
                worked += header.size_bytes + BATCH_COST
                if worked >= PIECE_BYTES:
                    self._breathe(worked)
                    worked = 0
        except CorruptRecordError as error:
            raise CorruptRecordError(f"{path}, position {position}: {error}") from error
        self._breathe(worked)

    def _preserve_age(self, segment: Segment, last: Extent) -> None:
        """Keep the age of a segment: without timestamps it is as old as its file."""
        written = (self.directory / f"{last.base_offset:020d}.log").stat()
        os.utime(segment.path, ns=(written.st_atime_ns, written.st_mtime_ns))
