"""The segments of one log, ordered by offset, and searches in them by offset and by time.

The list belongs to the log's thread. The invariant: `bases` are the base offsets of `segments`, and increase.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from ottla.model import INT64_MAX, FileSlice, OffsetAndTimestamp
from ottla.storage.files.storage_error import storage_error
from ottla.storage.segments.retention import SegmentAge
from ottla.storage.segments.segment import Segment

READER_LOCK = Lock()
"""Held by readers in other threads than the log's.

It prevents compaction from replacing segments while a reader is between finding a segment and opening its file. There is one lock
for all logs, because both are rare and short.
"""


class SegmentList:
    """The segments of a log. The last one is active: only it is appended to."""

    __slots__ = ("bases", "directory", "epochs", "segments", "unnoted")

    def __init__(self, directory: Path, epochs: Callable[[], Sequence[tuple[int, int]]] = tuple) -> None:
        self.epochs = epochs
        """Returns the leader epochs with their start offsets."""
        self.directory = directory
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        """Base offsets of the segments, for bisection."""
        self.unnoted: deque[Segment] = deque()
        """Segments without a valid row in `segment-succession`; the next flush writes it."""

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def add(self, segment: Segment) -> None:
        """Put a segment behind all others."""
        if self.segments:
            self.segments[-1].next_base = segment.base_offset
            self.unnoted.append(self.segments[-1])
        segment.epochs = self.epochs
        self.segments.append(segment)
        self.bases.append(segment.base_offset)

    def remove_first(self) -> Segment:
        del self.bases[0]
        return self.segments.pop(0)

    def remove_from(self, number: int) -> list[Segment]:
        """Remove a segment and all later ones from the list, and return them."""
        removed = self.segments[number:]
        del self.segments[number:], self.bases[number:]
        return removed

    def replace(self, bases: Sequence[int], segment: Segment) -> list[Segment]:
        """Replace the segments with these base offsets by `segment`, and return them. They are adjacent and not active."""
        first = self.bases.index(bases[0])
        stop = first + len(bases)
        assert self.bases[first:stop] == list(bases)
        assert stop < len(self.bases), "the active segment is not replaced"
        replaced = self.segments[first:stop]
        segment.next_base, segment.epochs = self.bases[stop], self.epochs
        with READER_LOCK:
            self.segments[first:stop] = [segment]
            self.bases[first:stop] = [segment.base_offset]
        return replaced

    def is_known_to_end(self, number: int) -> bool:
        """Return True if `segment-succession` has the next segment as the successor of this one: offsets between the two were compacted away."""
        segment = self.segments[number]
        return not segment.ranges.missing and all(each is not segment for each in self.unnoted)

    def skip_succession(self, number: int) -> None:
        """Record no successor for a segment with a lost end, so that later starts detect the lost end, too."""
        torn = self.segments[number]
        self.unnoted = deque(each for each in self.unnoted if each is not torn)

    def number_of(self, offset: int) -> int:
        """Return the number of the segment that holds `offset`; 0 if the offset is before all segments."""
        return max(bisect_right(self.bases, offset) - 1, 0)

    def ages(self, end_offset: int) -> Iterator[SegmentAge]:
        """Yield the segments for retention, oldest first.

        A segment may have no records after compaction. Only an active segment without records is left out.
        """
        full = self.segments if self.segments[-1].size else self.segments[:-1]
        for segment, next_offset in zip(full, [*self.bases[1:], end_offset], strict=False):
            yield SegmentAge(segment.size, segment.age_timestamp(), next_offset)

    def slice(self, offset: int, max_bytes: int, *, min_one: bool, end: int | None) -> tuple[FileSlice, int] | None:
        """Return whole batches of one segment from `offset` on, and the segment's number; None if `max_bytes` is too small, or at the end.

        `end` is the offset up to which batches may be returned; None is the end of the log.
        """
        try:
            # More than one turn only where offsets are missing between segments.
            for number in range(self.number_of(offset), len(self.segments)):
                piece = self.segments[number].read(offset, max_bytes, min_one=min_one, end=end)
                if piece is not None:
                    return (piece, number) if len(piece) else None
        except OSError as error:
            raise storage_error(f"cannot read {self.directory} at offset {offset}", error) from error
        return None

    @contextmanager
    def distrust_from(self, offset: int, end_offset: int) -> Iterator[None]:
        """Verify also the batches that were appended in this run, from the segment with `offset` on, while the context is open."""
        active = self.segments[-1]
        active.next_base = end_offset
        for segment in self.segments[self.number_of(offset) :]:
            segment.distrust()
        try:
            yield
        finally:
            if not active.is_damaged:  # otherwise the next append starts another segment
                active.next_base = INT64_MAX

    def has_no_aborted_from(self, number: int) -> bool:
        """Return True if it is known without reading a file that no aborted transaction ends in segment `number` or later."""
        return number + 1 == len(self.segments) and self.segments[-1].indexes.has_no_aborted_transactions

    def offset_above(self, number: int, piece: FileSlice) -> int | None:
        """Return an offset above all batches of a piece of segment `number`; None if the index has none."""
        return self.segments[number].offset_above(piece.position + piece.size)

    def offset_for_timestamp(self, timestamp: int, start_offset: int) -> OffsetAndTimestamp | None:
        """Return the first record, by offset from `start_offset` on, with a timestamp of at least `timestamp` (ms)."""
        try:
            for segment in self.segments[self.number_of(start_offset) :]:
                if segment.largest_timestamp() >= timestamp:
                    found = segment.find_timestamp(timestamp, start_offset)
                    if found is not None:
                        return found
        except OSError as error:
            raise storage_error(f"cannot search {self.directory} for a timestamp", error) from error
        return None

    def max_timestamp(self) -> OffsetAndTimestamp | None:
        """Return the first record with the largest timestamp of all; None if there is no record."""
        try:
            segment = max(self.segments, key=Segment.largest_timestamp)
            return segment.find_largest_timestamp() if segment.size else None
        except OSError as error:
            raise storage_error(f"cannot search {self.directory} for its largest timestamp", error) from error
