"""Taking up a segment where a process left it: noting its batches again, and cutting off a torn tail."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.storage.batch_scan import scan
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.producer_recovery import ProducerRecovery
from ottla.storage.segment import Segment
from ottla.storage.segment_list import SegmentList


@dataclass(frozen=True)
class Recovery:
    """What had to be cut off a log after a crash."""

    file: Path
    """The segment that was torn or damaged."""
    offset: int
    """The log's end now: the offset of the first record that was lost, if any was there."""
    position: int
    """Where the file ends now."""
    bytes_cut: int
    """Bytes dropped behind it, later segments included."""
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.file}: cut {self.bytes_cut} bytes at position {self.position}, offset {self.offset}: {self.reason}"
        )


def resume(segment: Segment) -> int | None:
    """Take up the last segment after a clean shutdown: the log's end offset, None if it was not so clean."""
    end = segment.size
    segment.rewind(None)
    try:
        return replay(segment, end)
    except CorruptRecordError:
        segment.size = end
        return None


def recover_from(
    found: SegmentList, number: int, recovery_point: int, epochs: LeaderEpochs, producers: ProducerRecovery
) -> tuple[int, Recovery | None]:
    """Check the segments from a number on, which may not be whole on the disk; the first fault ends the log.

    Returns the log's end, and what was cut off, segments behind the fault included.
    """
    end, recovery = 0, None
    for each in range(number, len(found.segments)):
        if each > number:
            producers.begin(found.segments[each])
        end, recovery = recover(found.segments[each], recovery_point, epochs, producers)
        if recovery is not None:
            lost = found.remove_from(each + 1)
            for segment in reversed(lost):
                segment.delete()
            return end, replace(recovery, bytes_cut=recovery.bytes_cut + sum(segment.size for segment in lost))
        if each + 1 < len(found.segments):
            found.segments[each].seal()
    return end, recovery


def recover(
    segment: Segment, recovery_point: int, epochs: LeaderEpochs, producers: ProducerRecovery
) -> tuple[int, Recovery | None]:
    """Check everything that was not known to be on disk, and cut the segment at the first batch that is not whole.

    Returns the offset after the last good batch. The indexes are right afterwards.
    """
    end = segment.size
    segment.rewind(recovery_point)
    segment.changed = True
    producers.walk([segment])
    began = segment.size
    try:
        return replay(segment, end, (epochs, producers)), None
    except CorruptRecordError as error:
        fault = error
    if segment.size == began > 0:
        # Not even the batch that was flushed is there: the index is wrong.
        segment.clear_indexes()
        try:
            return replay(segment, end, (epochs, producers)), None
        except CorruptRecordError as error:
            fault = error
    file = segment.writable_file()
    os.ftruncate(file.fileno(), segment.size)
    offset = end_offset(segment)
    return offset, Recovery(segment.path, offset, segment.size, end - segment.size, str(fault))


def replay(segment: Segment, end: int, unsure: tuple[LeaderEpochs, ProducerRecovery] | None = None) -> int:
    """Note the batches from the segment's size up to `end`; the offset after the last.

    After a crash they are checked, and their leader epochs and producers go to `unsure`. Raises CorruptRecordError at the first
    batch that is not right; those before it are noted.
    """
    next_offset = segment.base_offset
    for position, header in scan(segment.file, segment.size, end, check=unsure is not None):
        if header.base_offset < next_offset:
            raise CorruptRecordError(
                f"the record batch at position {position} has offset {header.base_offset}, expected {next_offset} or more"
            )
        segment.note(header)
        if unsure is not None:
            epochs, producers = unsure
            epochs.assign(header.leader_epoch, header.base_offset)
            producers.take(segment, position, header)
        next_offset = header.next_offset
    return next_offset


def end_offset(segment: Segment) -> int:
    """The offset after the last batch noted."""
    next_offset = segment.base_offset
    for _, header in scan(segment.file, segment.offsets.last()[1], segment.size):
        next_offset = header.next_offset
    return next_offset
