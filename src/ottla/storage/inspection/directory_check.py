"""A data directory, or one partition's folder, as something to be checked."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from msgspec import Struct, field

from ottla.errors import ConfigError, CorruptRecordError
from ottla.model import INT64_MAX, TopicPartition
from ottla.storage.batches.scan import scan
from ottla.storage.directory.clean_shutdown import CLEAN_SHUTDOWN
from ottla.storage.directory.data_directory import CLEANER_OFFSETS
from ottla.storage.directory.directory_lock import FILE_NAME as LOCK_NAME
from ottla.storage.directory.meta_properties import FILE_NAME as META
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.directory.offset_checkpoints import RECOVERY_POINTS, START_OFFSETS, OffsetCheckpoints
from ottla.storage.files.checkpoint import read_offsets
from ottla.storage.files.open_file import OpenFile
from ottla.storage.files.regular_file import open_regular
from ottla.storage.inspection.fault import FileFault, FileNote
from ottla.storage.inspection.partition_check import (
    PartitionCheck,
    Progress,
    find_holes_in_log,
    find_snapshot_faults,
    find_wrong_kinds,
    list_segments,
)
from ottla.storage.inspection.state_files import add_remedy, find_named_files, find_reader, state_files
from ottla.storage.segments.log_folder import LOG_NAME, partition_of, stored_bytes

T = TypeVar("T")
NONE: Mapping[TopicPartition, int] = {}
NAMELESS = "is missing, and no broker starts on a directory of logs without it: restore it from a backup"
TWIN = (
    "as a copy of it has, and no broker starts with both in its log.dirs: take one of the two out, or move the meta.properties of the copy "
    "away if its partitions are not needed"
)
LOST = "{} was on the disk up to offset {} and ends at {}: records are lost"
HIDDEN = "{} is to begin at offset {} and ends at {}: all its records are hidden. If they were not deleted, move this file away while no broker runs"
HEADER_BLOCK = 4096
"""Bytes that the quick check reads for each header; the records of large batches are skipped."""
FLOCK = "hhxxxxqqi4x"
"""Linux's `struct flock`: type, whence, start, length, process."""


class Inspection(Struct):
    path: Path
    folders: list[Path]
    whole: bool
    """True for a data directory, False for a single partition's folder."""
    live: bool
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    """The topic ids of the cluster's metadata, if they were read."""
    twin: Path | None = None
    """Another directory with the same id."""

    @property
    def size_bytes(self) -> int:
        """Bytes of logs, for a progress bar; what cannot be read has none."""
        return sum(if_readable(partial(stored_bytes, folder), 0) for folder in self.folders)

    def run(self, progress: Progress, *, deep: bool = False) -> Iterator[PartitionCheck]:
        """Check one partition after another."""
        ends = {}
        directory = self.path if self.whole else self.path.absolute().parent
        flushed, compacted, began = read_flushed(directory), read_compacted(directory), read_log_starts(directory)
        for folder in self.folders:
            check = PartitionCheck(folder, self.live, deep, flushed(folder.absolute().name))
            try:
                check.run(progress)
                check.report_missing_offsets(compacted=compacted(folder.absolute().name))
                check.report_lost_start(began(folder.absolute().name))
                check.report_wrong_topic(self._topic_id(folder))
            except FileNotFoundError:
                if not self.live:
                    raise
                continue  # Its topic was deleted meanwhile.
            except OSError as error:
                check.faults.append(unreadable_fault(folder, error))
            else:
                ends[folder.name] = check.end_offset
            yield check
        if self.whole:
            yield self._own_files(ends)

    def _topic_id(self, folder: Path) -> UUID | None:
        partition = partition_of(folder.absolute().name)
        return None if partition is None else self.topic_ids.get(partition.topic)

    @property
    def was_closed(self) -> bool:
        """True after a clean shutdown, so that nothing can be torn."""
        return not self.live and (not self.whole or (self.path / CLEAN_SHUTDOWN).exists())

    def find_quick_faults(self) -> Iterator[FileFault]:
        """Yield the faults that headers and small files show, without reading records."""
        for folder in self.folders:
            try:
                yield from find_quick_faults(folder, settled=self.was_closed)
            except FileNotFoundError:
                if not self.live:
                    raise
            except OSError as error:
                yield unreadable_fault(folder, error)
        if self.whole:
            check = self._own_files({})
            yield from check.faults
            yield from (FileFault(note.file, note.text) for note in check.notes if note.file.name == META)

    def _own_files(self, ends: dict[str, int]) -> PartitionCheck:
        check = PartitionCheck(self.path, self.live)
        for path in find_named_files(self.path):
            reader = find_reader(path)
            assert reader is not None
            try:
                reader(path)
            except (ValueError, UnicodeDecodeError) as error:
                check.faults.append(FileFault(path, str(error)))
            except OSError as error:
                check.faults.append(unreadable_fault(path, error))
        if self.folders and not (self.path / META).exists():
            check.notes.append(FileNote(self.path / META, NAMELESS))
        own_faults = bool(check.faults)
        if self.twin is not None:
            check.faults.append(FileFault(self.path / META, f"has the directory.id of {self.twin}, {TWIN}"))
        if not own_faults and not self.live:
            check.faults += logs_ending_before(self.path / RECOVERY_POINTS, ends, LOST)
            check.faults += logs_ending_before(self.path / START_OFFSETS, ends, HIDDEN)
            self._report_missing_log(check)
        return check

    def _report_missing_log(self, check: PartitionCheck) -> None:
        """Tell of logs that have no folder: a fault where all was closed in order, else a deletion may have been under way."""
        for partition, offset in read_offsets(self.path / RECOVERY_POINTS).items():
            folder = self.path / str(partition)
            if folder.is_dir():
                continue
            if self.was_closed:
                check.faults.append(FileFault(folder, f"is gone, though there was a log in it up to offset {offset}"))
            else:
                check.notes.append(
                    FileNote(folder, "is missing, unless its topic was being deleted; a start reports it")
                )


def if_readable(read: Callable[[], T], otherwise: T) -> T:
    """Return the result of `read`, or `otherwise` after an OSError, which the check of the file itself reports."""
    try:
        return read()
    except OSError:
        return otherwise


def unreadable_fault(path: Path, error: OSError) -> FileFault:
    """Return a file that the system does not let us read, or a folder in which there is such a one: what lies behind it is not looked at."""
    file = Path(error.filename) if isinstance(error.filename, str) else path
    return FileFault(file, f"cannot be read, so that nothing is said of it and of what follows: {error.strerror}")


def read_flushed(directory: Path) -> Callable[[str], int]:
    """Return a function for the offset up to which the log in a folder was forced to the disk: all after a clean shutdown."""
    if not (directory / META).exists() or (directory / CLEAN_SHUTDOWN).exists():
        return lambda name: INT64_MAX
    points = if_readable(lambda: read_offsets(directory / RECOVERY_POINTS), NONE)
    return lambda name: next((offset for partition, offset in points.items() if str(partition) == name), 0)


def read_compacted(directory: Path) -> Callable[[str], bool | None]:
    """Return a function that tests if the log in a folder was ever compacted; None if unknown, as for a folder without its directory."""
    if not (directory / META).exists():
        return lambda name: None
    names = set(map(str, if_readable(lambda: read_offsets(directory / CLEANER_OFFSETS), NONE)))
    return names.__contains__


def read_log_starts(directory: Path) -> Callable[[str], int | None]:
    """Return a function for the offset at which the log in a folder certainly started once; None if unknown."""
    if not (directory / META).exists():
        return lambda name: None
    checkpoints = if_readable(lambda: OffsetCheckpoints(directory), None)

    def began(name: str) -> int | None:
        partition = partition_of(name)
        return None if partition is None or checkpoints is None else checkpoints.find_start(partition)

    return began


def logs_ending_before(path: Path, ends: dict[str, int], reason: str) -> Iterator[FileFault]:
    """Yield a fault for each log that ends before its offset in a checkpoint, with the consequence."""
    for partition, offset in if_readable(partial(read_offsets, path), NONE).items():
        end = ends.get(str(partition))
        if end is not None and end < offset:
            yield FileFault(path, reason.format(partition, offset, end), offset=end)


def find(path: Path) -> Inspection:
    """Return the partitions at `path`; ConfigError if it has no logs, OSError if it cannot be read."""
    names = sorted(os.listdir(path))
    if any(LOG_NAME.fullmatch(name) for name in names):
        return Inspection(path, [path], False, is_live(path.absolute().parent))
    folders = [path / name for name in names if partition_of(name) and (path / name).is_dir()]
    if not folders and META not in names:
        raise ConfigError(
            f"{path} holds no logs: name a data directory (with meta.properties) or a partition's folder (with .log files)"
        )
    return Inspection(path, folders, True, is_live(path))


def find_twins(paths: Sequence[Path]) -> dict[Path, Path]:
    """Return the directories with the same id as an earlier one, and that one."""
    first: dict[str, Path] = {}
    found = {}
    for path in paths:
        try:
            id_ = MetaProperties.parse(path / META).directory_id
        except (OSError, ConfigError):
            continue  # reported as a fault
        if id_ and not first.setdefault(id_, path).samefile(path):
            found[path] = first[id_]
    return found


def is_live(directory: Path) -> bool:
    """Return True if a broker has the directory open, as far as the system shows; the lock is not taken."""
    try:
        fd = open_regular(directory / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        if sys.platform != "linux":
            return True  # It cannot be asked, and a tail that is being written is no damage.
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return bool(struct.unpack(FLOCK, answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(fd)


def find_quick_faults(folder: Path, *, settled: bool) -> Iterator[FileFault]:
    """Yield the faults of a partition that show without reading all.

    They are in the start of each segment, in all headers of the last one, missing or truncated segments, and unreadable small files.

    Unless the partition is `settled`, the end of the last segment may be torn: it is being written, or a start will truncate it.
    """
    yield from find_wrong_kinds(folder)
    yield from find_snapshot_faults(folder)
    names = list_segments(folder)
    for name in names[:-1]:
        yield from find_header_faults(folder / name, first_only=True, settled=True)
    for name in names[-1:]:
        yield from find_header_faults(folder / name, first_only=False, settled=settled)
    yield from find_holes_in_log(folder)
    for path in state_files(folder):
        reader = find_reader(path)
        assert reader is not None
        try:
            reader(path)
        except (ValueError, UnicodeDecodeError) as error:
            yield FileFault(path, add_remedy(path, str(error)))


def find_header_faults(path: Path, *, first_only: bool, settled: bool) -> Iterator[FileFault]:
    """Yield the first fault that headers of a segment show, if there is one."""
    file = OpenFile(path, read=True)
    end_offset, end = int(path.name[:20]), os.fstat(file.fileno()).st_size
    reached = 0
    try:
        for position, header in scan(file, 0, end, block_bytes=HEADER_BLOCK):
            if header.base_offset < end_offset:
                reason = f"the batch begins at offset {header.base_offset}, and {end_offset} was due"
                yield FileFault(path, reason, position, header.base_offset)
                return
            end_offset, reached = header.base_offset + header.last_offset_delta + 1, position + header.size_bytes
            if first_only:
                return
    except CorruptRecordError as error:
        if settled:
            yield FileFault(path, str(error), reached, end_offset)
