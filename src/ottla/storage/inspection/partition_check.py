"""One partition's folder, checked from its first segment to its last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from ottla.errors import CorruptRecordError
from ottla.kafka_id import text_of
from ottla.model import INT32_MAX, INT64_MAX
from ottla.records.batch import BatchHeader
from ottla.records.columns import decode
from ottla.storage.batches.walk import Gap, StoredBatch, walk
from ottla.storage.files.open_file import OpenFile
from ottla.storage.files.regular_file import kind_of, read_whole
from ottla.storage.inspection.fault import FileFault, FileNote
from ottla.storage.inspection.index_check import Layout, check_offset_index, check_time_index
from ottla.storage.inspection.replay import Replay
from ottla.storage.inspection.state_files import add_remedy, find_reader, state_files
from ottla.storage.inspection.transaction_check import Producers, check_aborted
from ottla.storage.leader_epochs import FILE_NAME as LEADER_EPOCHS
from ottla.storage.recovery.lost_offsets import read_lost
from ottla.storage.segments.gaps import find_holes, missing_offsets
from ottla.storage.segments.log_folder import LOG_NAME, METADATA_FILE, find_misplaced_files, read_topic_id
from ottla.storage.segments.log_start import find_lost_start
from ottla.storage.state_log.snapshot import parse_state

Progress = Callable[[int], None]
"""Receives the number of bytes that were read since the last call."""
SNAPSHOT_REMEDY = "the one before it is read in its place, if there is one, and more of the log"
INDEX_CHECKS = {".index": check_offset_index, ".timeindex": check_time_index}


@dataclass
class PartitionCheck:
    """The content of a partition, and its faults."""

    folder: Path
    live: bool
    """True if a broker may be writing to it."""
    deep: bool = False
    """True if the records inside the batches are read as well."""
    flushed: int = INT64_MAX
    """Everything below this offset was forced to the disk, so that the files next to the log are complete up to it."""
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    start_offset: int = -1
    end_offset: int = 0
    faults: list[FileFault] = field(default_factory=list)
    notes: list[FileNote] = field(default_factory=list)
    thinned: bool = False
    """True if offsets are missing within a segment, which only compaction and repairs cause."""
    _before: int = 0
    """The end offset of the log before the last batch."""
    _last: StoredBatch | None = None
    _producers: Producers = field(default_factory=Producers)
    _replay: Replay = field(init=False)
    _led: tuple[Path, StoredBatch] | None = None
    """The last batch with a plausible leader epoch, and its file."""
    _epoch_before: int = -1
    """That of the one before."""

    def run(self, progress: Progress) -> None:
        """Read everything; what retention deletes meanwhile is passed over."""
        self._replay = Replay(self.folder, self.flushed)
        self.faults += find_wrong_kinds(self.folder)
        self.faults += find_snapshot_faults(self.folder)
        names = list_segments(self.folder)
        for number, name in enumerate(names):
            try:
                self._check_segment(self.folder / name, last=number + 1 == len(names), progress=progress)
            except FileNotFoundError as error:
                if not self.live:
                    raise
                self.notes.append(FileNote(Path(error.filename), "was deleted meanwhile"))
        self._replay.check_snapshots(self.end_offset)
        for path in state_files(self.folder):
            self._state_file(path)
        for base_offset in self._replay.aborted:
            self._check_aborted(self.folder / f"{base_offset:020d}.txnindex", base_offset)
        self.faults += self._replay.faults

    def _check_segment(self, path: Path, *, last: bool, progress: Progress) -> None:
        base_offset = int(path.name[:20])
        if base_offset < self.end_offset:
            reason = f"the segment begins before the end of the one before it, offset {self.end_offset}"
            self.faults.append(FileFault(path, reason, 0, base_offset))
        self.start_offset = base_offset if self.start_offset < 0 else self.start_offset
        self.end_offset = max(self.end_offset, base_offset)
        self.segments += 1
        self._replay.begin_segment(base_offset)
        growing = last and self.live
        layout = self._check_batches(path, base_offset, growing, last, progress)
        for suffix, check in INDEX_CHECKS.items():
            index = path.with_suffix(suffix)
            if os.path.lexists(index) and not index.is_file():
                continue  # reported as a fault
            try:
                self.faults += check(index, base_offset, layout, growing=growing)
            except FileNotFoundError:
                if not growing and layout.end:
                    self.notes.append(FileNote(index, "is missing; a broker rebuilds it when it needs it"))

    def _check_batches(self, path: Path, base_offset: int, growing: bool, last: bool, progress: Progress) -> Layout:
        layout, file = Layout(full=not last), OpenFile(path, read=True)
        self._last = None
        for found in iter_batches(file, growing=growing):
            layout.end = found.position
            if isinstance(found, Gap):
                layout.gaps.append(range(found.position, found.position + found.size_bytes))
                self._replay.record_lost_batch()
                self._report_gap(path, found, growing, last, os.fstat(file.fileno()).st_size)
                progress(found.size_bytes)
                continue
            header = found.header
            fault = self._out_of_order(path, found, base_offset)
            if fault is not None:
                self.faults.append(fault)
                self._replay.record_lost_batch()
            elif self.deep:
                self._check_records(path, found)
            layout.add(found.position, header.base_offset, header.last_offset, header.max_timestamp)
            layout.end = found.position + header.size_bytes
            self.batches += 1
            self.records += header.count
            if fault is None:
                self.thinned |= header.count <= header.last_offset_delta or self._has_offset_gap(header, layout)
                self._producers.add(found)
                self._replay.add(found)
                self._check_epoch(path, found)
                self._before, self._last = self.end_offset, found
                self.end_offset = header.next_offset
            progress(header.size_bytes)
        self.bytes += layout.end
        return layout

    def _has_offset_gap(self, header: BatchHeader, layout: Layout) -> bool:
        return self._last is not None and not layout.gaps and header.base_offset > self.end_offset

    def report_missing_offsets(self, *, compacted: bool | None) -> None:
        """Report offsets that are in no segment, if the log was not `compacted`; None if that is unknown.

        It is a fault if nothing explains it, otherwise a note: a log that was compacted, or is being changed, may have such gaps. If
        `segment-succession` shows that a segment is missing, it is a fault in any case.
        """
        self.faults += find_holes_in_log(self.folder)
        for missing in () if compacted else missing_offsets(self.folder, read_lost(self.folder)):
            if compacted is None or self.thinned or self.live:
                self.notes.append(FileNote(missing.file, missing.reason))
            else:
                self.faults.append(FileFault(missing.file, missing.reason, offset=missing.first_offset))

    def report_lost_start(self, noted: int | None) -> None:
        """Report missing offsets before the first segment; the log started at `noted`."""
        lost = find_lost_start(self.folder, noted, self.start_offset)
        if lost is not None:
            self.faults.append(FileFault(lost.file, lost.reason, offset=lost.offset))

    def report_wrong_topic(self, topic_id: UUID | None) -> None:
        """Report a folder with the id of another topic than the one of its name."""
        try:
            found = read_topic_id(self.folder)
        except (OSError, ValueError):
            return  # reported as a fault
        if topic_id is not None and found not in (None, topic_id):
            reason = f"the folder is of topic id {text_of(found)}, the cluster's metadata say {text_of(topic_id)}"
            self.faults.append(FileFault(self.folder / METADATA_FILE, reason))

    def _out_of_order(self, path: Path, batch: StoredBatch, base_offset: int) -> FileFault | None:
        """Return the offset of a batch is not in its CRC; of two that contradict each other the one that leapt is wrong."""
        header, last = batch.header, self._last
        if header.last_offset - base_offset > INT32_MAX:
            reason = f"the batch has offset {header.base_offset}, too far from {base_offset} where the segment begins"
        elif header.base_offset >= self.end_offset:
            return None
        elif last is not None and last.header.base_offset > header.base_offset >= self._before:
            reason = f"the batch has offset {last.header.base_offset}, the one behind it {header.base_offset}"
            self.faults.append(FileFault(path, reason, last.position, last.header.base_offset, last.header.size_bytes))
            self.end_offset = header.base_offset
            return None
        else:
            reason = f"the batch has offset {header.base_offset}, expected {self.end_offset} or more"
        return FileFault(path, reason, batch.position, header.base_offset, header.size_bytes)

    def _check_epoch(self, path: Path, batch: StoredBatch) -> None:
        """Leader epochs do not go back; where one does, it or the one before it is wrong. They are not in the CRC."""
        epoch = batch.header.leader_epoch
        if epoch == -1:
            return  # It was never said.
        last = self._led[1].header.leader_epoch if self._led else -1
        if self._led is not None and epoch < last:
            if epoch < self._epoch_before:
                # Machines once wrote their logs with epoch 0, whatever the partition's was.
                if epoch:
                    self._wrong_epoch(path, batch, last)
                return
            self._wrong_epoch(*self._led, epoch)
            last = self._epoch_before
        self._led, self._epoch_before = (path, batch), last

    def _wrong_epoch(self, path: Path, batch: StoredBatch, other: int) -> None:
        header = batch.header
        reason = f"the batch has leader epoch {header.leader_epoch}, its neighbour {other}; readers get an error there and continue at offset {header.next_offset}"
        self.faults.append(FileFault(path, reason, batch.position, header.base_offset, header.size_bytes))

    def _report_gap(self, path: Path, gap: Gap, growing: bool, last: bool, end: int) -> None:
        at_end = last and gap.position + gap.size_bytes >= end
        if growing and at_end:
            self.notes.append(
                FileNote(path, f"{gap.size_bytes} bytes at position {gap.position} are still being written")
            )
            return
        reason = f"{gap.reason}; the next start of a broker cuts them off" if at_end else gap.reason
        self.faults.append(FileFault(path, reason, gap.position, self.end_offset, gap.size_bytes))

    def _check_records(self, path: Path, batch: StoredBatch) -> None:
        header = batch.header
        try:
            count = header.count if header.is_control else decode(bytes(batch.data)).count
        except CorruptRecordError as error:
            reason = f"the records of the batch cannot be read: {error}"
        else:
            if count == header.count:
                return
            reason = f"the batch says that it has {header.count} records and has {count}"
        self.faults.append(FileFault(path, reason, batch.position, header.base_offset, header.size_bytes))

    def _state_file(self, path: Path) -> None:
        reader = find_reader(path)
        assert reader is not None
        try:
            rows = reader(path)
        except FileNotFoundError:
            return  # It was replaced, or deleted, meanwhile.
        except (ValueError, UnicodeDecodeError) as error:
            self.faults.append(FileFault(path, add_remedy(path, str(error))))
            return
        if path.suffix == ".txnindex":
            self.faults += check_aborted(path, self._producers)
        if path.name == LEADER_EPOCHS:
            self.faults += self._replay.epoch_faults(path, rows)
        ends = [row[name] for row in rows for name in ("lastOffset", "startOffset") if name in row]
        if not self.live and max(ends, default=0) > self.end_offset:
            self.faults.append(
                FileFault(path, add_remedy(path, f"speaks of offset {max(ends)}, the log ends at {self.end_offset}"))
            )

    def _check_aborted(self, path: Path, base_offset: int) -> None:
        try:
            self.faults += self._replay.missing_in(path, base_offset)
        except (OSError, ValueError):
            pass  # it was deleted meanwhile, or is reported as damaged


def list_segments(folder: Path) -> list[str]:
    """Return the files of records in a folder, in order."""
    return sorted(path.name for path in folder.iterdir() if LOG_NAME.fullmatch(path.name) and path.is_file())


def find_wrong_kinds(folder: Path) -> Iterator[FileFault]:
    """Folders, and links that lead nowhere, where files belong."""
    for path in find_misplaced_files(folder):
        yield FileFault(path, f"is {kind_of(path)}, where a file belongs; ottla log repair moves it aside")


def find_holes_in_log(folder: Path) -> Iterator[FileFault]:
    """Offsets of which it is noted that they were there."""
    for path, found in find_holes(folder):
        yield FileFault(path, found.reason, offset=found.first_offset)


def iter_batches(file: OpenFile, *, growing: bool) -> Iterator[StoredBatch | Gap]:
    """Yield the batches of a file; while it grows, also those that came after the look at its size."""
    position, end = 0, os.fstat(file.fileno()).st_size
    while True:
        for found in walk(file, position, end):
            if isinstance(found, Gap) and growing and found.position + found.size_bytes == end:
                now = os.fstat(file.fileno()).st_size
                if now > end:
                    break  # More has come: what was torn may be whole.
            yield found
            size = found.size_bytes if isinstance(found, Gap) else found.header.size_bytes
            position = found.position + size
        else:
            return
        end = now


def find_snapshot_faults(folder: Path) -> Iterator[FileFault]:
    """Yield the snapshots that are not whole; one that is being written has another name and is skipped."""
    for path in sorted(folder.glob("*.checkpoint")):
        try:
            parse_state(read_whole(path), path.name)
        except FileNotFoundError:
            pass  # A node has deleted it meanwhile.
        except CorruptRecordError as error:
            yield FileFault(path, f"{error}; {SNAPSHOT_REMEDY}")
