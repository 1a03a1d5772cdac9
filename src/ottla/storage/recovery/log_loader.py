"""Loading a log after a process has ended: index its last batches again, and truncate a torn end.

    epochs ──► producers up to the first unsure segment ──► that segment, and each after it ──► the log's end

Leader epochs are loaded first, because batches are compared with them. Then the latest snapshot of producers that is not above the
recovery point, and the batches between it and the first segment that may be incomplete. That segment is rewound to its last index
entry below the point: the batches before it are trusted, because they were forced to the disk. Those after it are checked by
their CRCs and added to index, epochs and producers, in this order, so that all of them end where the log does.

Only an incomplete batch at the end of the last segment, above the recovery point, is truncated. All other damage stays, out of service,
with the whole batches after it: a power failure may keep later bytes and lose earlier ones. A copy of a leader's log is truncated there when
it follows, and gets the rest from its leader (`torn_at`). If offsets are missing after a segment that is unchanged since its
successor was noted, they were compacted away: truncating there would delete acknowledged records. After a clean shutdown only the headers
from the last index entry on are read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ottla.model import INT64_MAX
from ottla.storage.batches.batch_run import BatchRun
from ottla.storage.batches.verified_walk import Bounds, Found, Unsound, walk_by_checksums, walk_by_headers
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
    """The log's end now: the offset of the first record that was lost, if any was there."""
    position: int
    """The end of the file now."""
    bytes_cut: int
    """Bytes dropped behind it, later segments included."""
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.file}: cut {self.bytes_cut} bytes at position {self.position}, offset {self.offset}: {self.reason}"
        )


class LogLoader(Struct):
    """The end of a log on its way to being known again."""

    point: int
    """Below this offset everything was on the disk."""
    clean: bool
    """True after a clean shutdown: everything was on the disk, and nothing is truncated."""
    epochs: LeaderEpochs
    producers: ProducerRecovery | None = None
    """The producers, which receive the batches after a crash."""
    copied: bool = False
    """True if the log may be a copy of a leader's: then offsets may be missing up to its end, which the leader has compacted away."""
    torn_at: int | None = None
    """The first offset above the recovery point that is damaged, or missing at a segment's end, and has whole batches behind it."""
    _raised: tuple[int, int] | None = None
    """A leader epoch that is new, and its offset: no CRC covers it, so it counts once the next batch does not go back."""

    def load(self, segments: SegmentList, number: int) -> tuple[int, Recovery | None]:
        """Load the segments from a number on, which may be incomplete on the disk.

        Return the log's end and the truncation there: only an incomplete batch that a crash left is truncated.
        """
        end, recovery = 0, None
        for each in range(number, len(segments.segments)):
            segment = segments.segments[each]
            last = each + 1 == len(segments.segments)
            if each > number and self.producers is not None:
                self.producers.begin(segment)
            if each > number and end < segment.base_offset and not segments.is_known_to_end(each - 1):
                self._note_torn(end)
                segments.leave_unnoted(each - 1)
            end, recovery = self.load_segment(segment, last=last)
            if not last:
                try:
                    segment.seal()
                except OSError:
                    pass  # a flush writes the index when the disk has space again
        self._end_epochs()
        return end, recovery

    def load_segment(self, segment: Segment, *, last: bool) -> tuple[int, Recovery | None]:
        """Note the batches of a segment that may not be as they were left; the offset after them, and what was cut off."""
        size = segment.size
        segment.rewind(None if self.clean else self.point)
        segment.changed = segment.changed or not self.clean
        expected, end = self._expected(segment), segment.base_offset
        if self.producers is not None:
            self.producers.walk_below(segment, expected)
        bounds = Bounds(
            segment.next_base,
            grows=last and not self.copied,
            end=self.point if last and self.clean and self.point else None,
        )
        for found in self._walk(segment, size, expected, bounds):
            if isinstance(found, BatchRun):
                self._note_run(segment, found)
                end = found.next_offset
            elif isinstance(found, Unsound):
                if last and found.at_end and not self.clean and found.first_offset >= self.point:
                    return max(end, expected), self._cut_end(segment, found, size)
                found = found._replace(next_offset=self._next_offset(found, segment, last))
                LOG.error("%s", segment.ranges.add_damage(found))
                self._note_torn(found.first_offset)
                end = max(end, found.next_offset)
                segment.add_found(found)
                self._lose(segment, found)
            else:
                self._note(segment, found)
                end = found.header.next_offset
        segment.size = size
        if last and end < self.point:
            missing = Unsound(size, 0, end, self.point, describe_lost_end(end, self.point), at_end=True)
            LOG.error("%s", segment.ranges.add_damage(missing))
            if was_followed(segment.path):  # Whatever ended behind it is in no index of its own.
                segment.ranges.add_missing(missing)
                segment.transactions.doubt()
            self._lose(segment, missing)
            end = self.point
        if self.producers is not None:
            self.producers.end(segment)
        return end, None

    def _note_torn(self, offset: int) -> None:
        """Not all from an offset on is there, and what is lies behind it. Below the recovery point that is no crash's doing."""
        if self.torn_at is None and not self.clean and offset >= self.point:
            self.torn_at = offset

    def _cut_end(self, segment: Segment, found: Unsound, size: int) -> Recovery:
        """Truncate the incomplete batch at the end of a log."""
        segment.cut_damaged_end(found)
        return Recovery(segment.path, found.first_offset, found.position, size - found.position, found.reason)

    def _expected(self, segment: Segment) -> int:
        """The offset of the batch that is noted first."""
        return segment.offsets_at(segment.size)[0] if segment.size else segment.base_offset

    def _next_offset(self, found: Unsound, segment: Segment, last: bool) -> int:
        if not found.at_end:
            return found.next_offset
        if last and self.clean and self.point > found.first_offset:
            return self.point  # as a clean stop wrote down; what is damaged may say anything
        return max(found.next_offset, self.point, found.first_offset + 1) if last else segment.next_base

    def _lose(self, segment: Segment, found: Unsound) -> None:
        if self.producers is not None:
            self.producers.lose(segment, found)

    def _note(self, segment: Segment, found: Found) -> None:
        segment.add_found(found)
        if self.producers is not None:
            self._note_epoch(found.header.leader_epoch, found.header.base_offset)
            self.producers.replay(segment, *found)

    def _note_epoch(self, epoch: int, offset: int) -> None:
        """Epochs never go back: one that is above that of the next batch was never true, nor is one below an earlier.

        Where the latest that is known begins only further on, the next batch may well be of an earlier one.
        """
        known, began = self.epochs.last()
        if epoch < known:
            if offset < began:
                self._raised = None
            return
        if self._raised is not None and epoch >= self._raised[0]:
            self.epochs.assign(*self._raised)
        self._raised = (epoch, offset) if epoch > self.epochs.latest() else None

    def _end_epochs(self) -> None:
        """The log's last batch has none behind it."""
        if self._raised is not None:
            self.epochs.assign(*self._raised)

    def _walk(self, segment: Segment, size: int, expected: int, bounds: Bounds) -> Iterator[Found | Unsound | BatchRun]:
        """Yield what follows the indexed batches; after a crash every CRC is checked."""
        if self.clean:
            yield from walk_by_headers(segment.file, segment.size, size, expected, bounds)
            return
        run = BatchRun(segment.indexes.interval_bytes)
        for found in walk_by_checksums(segment.file, segment.size, size, expected, bounds, run):
            yield found
            if isinstance(found, Found):  # and taken by now: others of its epoch may follow in a run
                indexes = segment.indexes
                run.begin(indexes.bytes_since_entry, indexes.max_timestamp, indexes.max_timestamp_offset)
                run.epoch = found.header.leader_epoch
                run.producers_from = INT64_MAX if self.producers is None else self.producers.next_offset

    def _note_run(self, segment: Segment, run: BatchRun) -> None:
        segment.add_run(run)
        if self.producers is not None:
            self._note_epoch(run.epoch, run.next_offset)
            self.producers.replay_run(run)


def describe_lost_end(end: int, point: int) -> str:
    """Return the message for a log that ends before the offset up to which it was on the disk."""
    return (
        f"the file ends before its last records: with offset {end - 1}, and by recovery-point-offset-checkpoint all before {point} was on the disk; "
        "if that file is wrong, stop the broker before anything is written there, and move it away"
    )
