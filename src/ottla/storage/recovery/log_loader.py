"""Load the end of a log when it is opened: index its last batches again, and truncate an incomplete last batch.

    epochs ──► producers up to the unsure segment ──► that segment, and each later one ──► the log's end

The unsure segment is the one that holds the recovery point: it is the first that may be incomplete on the disk.

1. The leader epochs are loaded, because batches are compared with them.
2. The latest producer snapshot at or below the recovery point is loaded. The batches between it and the unsure segment are replayed by their
   headers.
3. The unsure segment is rewound to its last index entry below the recovery point. The batches before that entry were forced to the disk and
   are trusted.
4. Each batch after that entry is checked by its CRC, and added to the index, the epochs and the producers, in this order. So all of them end
   where the log ends. Later segments are checked from their first batch.

**Truncation.** Only an incomplete batch at the end of the last segment, at or above the recovery point, is truncated. All other damage stays in
the file, and so do the whole batches after it: a power failure may lose earlier bytes and keep later ones. Readers get an error for the
damaged offsets. A follower truncates its log at the damage before it follows a leader, and fetches the rest (`torn_at`).

**Missing offsets.** Offsets may be missing between two segments. If the first is unchanged since its successor was recorded in `segment-succession`,
compaction removed the offsets, and nothing is truncated.

After a clean shutdown nothing is truncated, and only the headers after the last index entry are read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ottla.model import INT64_MAX
from ottla.storage.batches.batch_run import BatchRun
from ottla.storage.batches.verified_walk import Bounds, Unsound, VerifiedBatch, walk_by_checksums, walk_by_headers
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.recovery.producer_recovery import ProducerRecovery
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_list import SegmentList
from ottla.storage.segments.succession import was_followed

LOG = logging.getLogger(__name__)


class Recovery(Struct, frozen=True):
    """The truncation of a log after a crash."""

    file: Path
    """The segment that was torn or damaged."""
    offset: int
    """The log's end after the truncation: the offset of the first record that may be lost."""
    position: int
    """The end of the file after the truncation."""
    bytes_cut: int
    """The number of bytes that were removed after that position."""
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.file}: cut {self.bytes_cut} bytes at position {self.position}, offset {self.offset}: {self.reason}"
        )


class LogLoader(Struct):
    """Reads the last segments of a log that is opened, and finds the log's end."""

    point: int
    """The recovery point: everything below this offset was forced to the disk."""
    clean: bool
    """True after a clean shutdown: everything was forced to the disk, and nothing is truncated."""
    epochs: LeaderEpochs
    producers: ProducerRecovery | None = None
    """The producers, which receive the batches after a crash."""
    copied: bool = False
    """True if the log may be a copy of a leader's log. Then offsets may be missing before its last batch, which the leader has compacted away."""
    torn_at: int | None = None
    """The first offset at or above the recovery point that is damaged, or missing at a segment's end, with whole batches after it."""
    _raised: tuple[int, int] | None = None
    """A new leader epoch and its offset. No CRC covers an epoch, so it is assigned only when the next batch has no lower epoch."""

    def load(self, segments: SegmentList, number: int) -> tuple[int, Recovery | None]:
        """Load the segments from index `number` on, which may be incomplete on the disk.

        Return the log's end, and the truncation of an incomplete last batch; None if nothing was truncated.
        """
        end, recovery = 0, None
        for each in range(number, len(segments.segments)):
            segment = segments.segments[each]
            last = each + 1 == len(segments.segments)
            if each > number and self.producers is not None:
                self.producers.begin_segment(segment)
            if each > number and end < segment.base_offset and not segments.is_known_to_end(each - 1):
                self._record_torn_end(end)
                segments.skip_succession(each - 1)
            end, recovery = self.load_segment(segment, last=last)
            if not last:
                try:
                    segment.seal()
                except OSError:
                    pass  # the next flush writes the index again
        self._end_epochs()
        return end, recovery

    def load_segment(self, segment: Segment, *, last: bool) -> tuple[int, Recovery | None]:
        """Add the batches after the last trusted index entry of a segment. Return the offset after them, and the truncation if there was one."""
        size = segment.size
        segment.rewind(None if self.clean else self.point)
        segment.changed = segment.changed or not self.clean
        expected, end = self._expected_offset(segment), segment.base_offset
        if self.producers is not None:
            self.producers.walk_below(segment, expected)
        bounds = Bounds(
            segment.next_base,
            grows=last and not self.copied,
            end=self.point if last and self.clean and self.point else None,
        )
        for found in self._walk(segment, size, expected, bounds):
            if isinstance(found, BatchRun):
                self._record_run(segment, found)
                end = found.next_offset
            elif isinstance(found, Unsound):
                if last and found.at_end and not self.clean and found.first_offset >= self.point:
                    return max(end, expected), self._cut_end(segment, found, size)
                found = found._replace(next_offset=self._next_offset(found, segment, last))
                LOG.error("%s", segment.ranges.add_damage(found))
                self._record_torn_end(found.first_offset)
                end = max(end, found.next_offset)
                segment.add_found(found)
                self._record_damage(segment, found)
            else:
                self._record_batch(segment, found)
                end = found.header.next_offset
        segment.size = size
        if last and end < self.point:
            missing = Unsound(size, 0, end, self.point, describe_lost_end(end, self.point), at_end=True)
            LOG.error("%s", segment.ranges.add_damage(missing))
            if was_followed(segment.path):  # Transactions that ended in the lost segments are in no index.
                segment.ranges.add_missing(missing)
                segment.transactions.distrust()
            self._record_damage(segment, missing)
            end = self.point
        if self.producers is not None:
            self.producers.end_segment(segment)
        return end, None

    def _record_torn_end(self, offset: int) -> None:
        """Record the first offset that is damaged or missing with batches after it, unless it is below the recovery point: no crash causes that."""
        if self.torn_at is None and not self.clean and offset >= self.point:
            self.torn_at = offset

    def _cut_end(self, segment: Segment, found: Unsound, size: int) -> Recovery:
        """Truncate the incomplete batch at the end of a log."""
        segment.cut_damaged_end(found)
        return Recovery(segment.path, found.first_offset, found.position, size - found.position, found.reason)

    def _expected_offset(self, segment: Segment) -> int:
        """Return the base offset of the batch at the position to which the segment was rewound."""
        return segment.offsets_at(segment.size)[0] if segment.size else segment.base_offset

    def _next_offset(self, found: Unsound, segment: Segment, last: bool) -> int:
        if not found.at_end:
            return found.next_offset
        if last and self.clean and self.point > found.first_offset:
            return self.point  # a clean shutdown recorded it, and a damaged header is not reliable
        return max(found.next_offset, self.point, found.first_offset + 1) if last else segment.next_base

    def _record_damage(self, segment: Segment, found: Unsound) -> None:
        if self.producers is not None:
            self.producers.record_lost_range(segment, found)

    def _record_batch(self, segment: Segment, found: VerifiedBatch) -> None:
        segment.add_found(found)
        if self.producers is not None:
            self._record_epoch(found.header.leader_epoch, found.header.base_offset)
            self.producers.replay(segment, *found)

    def _record_epoch(self, epoch: int, offset: int) -> None:
        """Record the epoch of a batch. Epochs never decrease, so an epoch above that of the next batch, or below an earlier one, is damaged.

        If the latest known epoch starts after this batch, a lower epoch is valid here.
        """
        known, began = self.epochs.last_entry()
        if epoch < known:
            if offset < began:
                self._raised = None
            return
        if self._raised is not None and epoch >= self._raised[0]:
            self.epochs.assign(*self._raised)
        self._raised = (epoch, offset) if epoch > self.epochs.latest() else None

    def _end_epochs(self) -> None:
        """Assign the new epoch of the last batch, which has no next batch to confirm it."""
        if self._raised is not None:
            self.epochs.assign(*self._raised)

    def _walk(
        self, segment: Segment, size: int, expected: int, bounds: Bounds
    ) -> Iterator[VerifiedBatch | Unsound | BatchRun]:
        """Yield the batches and damages after the indexed batches. After a crash every CRC is checked."""
        if self.clean:
            yield from walk_by_headers(segment.file, segment.size, size, expected, bounds)
            return
        run = BatchRun(segment.indexes.interval_bytes)
        for found in walk_by_checksums(segment.file, segment.size, size, expected, bounds, run):
            yield found
            # The caller has added the batch by now. A run of batches with the same epoch may follow.
            if isinstance(found, VerifiedBatch):
                indexes = segment.indexes
                run.continue_from(indexes.bytes_since_entry, indexes.max_timestamp, indexes.max_timestamp_offset)
                run.epoch = found.header.leader_epoch
                run.producers_from = INT64_MAX if self.producers is None else self.producers.next_offset

    def _record_run(self, segment: Segment, run: BatchRun) -> None:
        segment.add_run(run)
        if self.producers is not None:
            self._record_epoch(run.epoch, run.next_offset)
            self.producers.replay_run(run)


def describe_lost_end(end: int, point: int) -> str:
    """Return the message for a log that ends before its recovery point."""
    return (
        f"the file ends before its last records: with offset {end - 1}, and by recovery-point-offset-checkpoint all before {point} was on the disk; "
        "if that file is wrong, stop the broker before anything is written there, and move it away"
    )
