"""The order of segments, which decides whether a missing segment between two others was compacted away or is lost.

    0 ──► 20 ──► 42 ──► 77 (active)          `segment-succession` next to the log: a row for each full segment
    └ of 1,048,520 bytes, last written at 12:30:01.123, inode 77

A segment between others disappears only together with the one before it: compaction rewrites that one, truncation makes it the last,
retention deletes it first. A row has the successor of a segment and the state of its file. It is valid as long as the file is the
same. If the file is the same and another segment follows, files were lost that the broker did not delete: the offsets between are
damage. The same holds for the end of a file that was truncated in place since it was noted, because compaction creates another file.
Nothing depends on the order of these steps. If Kafka or an older version used the directory in between, no row matches the files that it changed.

A flush or a compaction adds rows; the last row of a segment counts. Rows are not forced to the disk: a row that its CRC shows to be incomplete
or damaged is ignored. Kafka ignores the file.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Container, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from zlib import crc32

from ottla.storage.files.durable import replace_file, sync_path
from ottla.storage.files.open_file import write_all
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.segments.log_folder import LOG_NAME

FILE_NAME = "segment-succession"
NOTHING = -1
"""The value of `next_offset` if the successor is unknown. Such a row has no size and no time, so that it matches no file."""
KEPT_BYTES = 1 << 16
"""The file is rewritten without outdated rows only if it is larger."""
ROW_BYTES = 128
"""No row is longer."""
LOG = logging.getLogger(__name__)
WRITING = Lock()
"""Held while a file is extended: compaction and a flush may do so at the same time."""


class Row(NamedTuple):
    """The successor of a segment, and the identity of its file."""

    base_offset: int
    next_offset: int
    """The base offset of the next segment."""
    size_bytes: int
    mtime_ms: int
    inode: int


class Missing(NamedTuple):
    """Segments that are gone from between two others."""

    base_offset: int
    """The base offset of the segment before them."""
    first_offset: int
    """The base offset of the first of them."""
    next_offset: int
    """The base offset of the next segment that exists."""

    def reason(self, first_offset: int) -> str:
        """Return the message, given the end offset of the segment before."""
        return (
            f"offsets {first_offset} to {self.next_offset - 1} are in no segment, and were not deleted: the segment that began at "
            f"{self.first_offset} is missing, and the next remaining one begins at {self.next_offset}; if files were removed, restore them "
            "from a backup"
        )


class Shortened(NamedTuple):
    """A segment with a file that was truncated in place since its row was written."""

    base_offset: int
    size_bytes: int
    """The size that it had."""
    next_offset: int
    """The base offset of the next segment that exists."""

    def reason(self, first_offset: int) -> str:
        """Return the message, given the end offset of what is left."""
        return (
            f"offsets {first_offset} to {self.next_offset - 1} are in no segment, and were not deleted: the file of the segment that "
            f"begins at {self.base_offset} had {self.size_bytes} bytes and was cut since; if that was not meant, restore it from a backup"
        )


class Succession(NamedTuple):
    """The result of comparing the segments of a log with `segment-succession`."""

    missing: list[Missing | Shortened]
    unnoted: list[int]
    """Base offsets of the segments without a valid row."""


def row_of(path: Path, next_offset: int) -> Row:
    """Return the row of a segment's file in its present state."""
    return Row(int(path.name[:20]), next_offset, *identify_file(os.stat(path)))


def identify_file(status: os.stat_result) -> tuple[int, int, int]:
    """Return the attributes that identify the file of a segment."""
    return status.st_size, status.st_mtime_ns // 1_000_000, status.st_ino


def write_rows(directory: Path, rows: Iterable[Row], keep: Iterable[int] | None = None) -> None:
    """Add rows. If the file has become large, keep only the last row of each base offset in `keep`.

    If the disk rejects them, a warning is logged; on a full disk not even that.
    """
    try:
        append_rows(directory, rows, keep)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            path = directory / FILE_NAME
            LOG.warning("%s cannot be written, so a lost segment will not be detected: %s", path, error.strerror)


def append_rows(directory: Path, rows: Iterable[Row], keep: Iterable[int] | None = None) -> None:
    """Add rows; OSError if the disk rejects them."""
    path = directory / FILE_NAME
    data = "".join(map(format_row, rows)).encode()
    if not data:
        return
    with WRITING:
        fd = open_regular(path, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            size = os.fstat(fd).st_size
            write_all(fd, memoryview(data), size)
        finally:
            os.close(fd)
        if keep is not None and size > KEPT_BYTES and size > 2 * ROW_BYTES * len(kept := set(keep)):
            replace_file(path, "".join(map(format_row, select_rows(read_rows(directory), kept))), sync=False)


def select_rows(rows: Mapping[int, Row], kept: Container[int]) -> list[Row]:
    """Return the rows of segments in `kept` and of those that followed them, even if they are gone."""
    followers = {row.next_offset for row in rows.values() if row.base_offset in kept}
    return [row for row in rows.values() if row.base_offset in kept or row.base_offset in followers]


def record_unknown(directory: Path, base_offset: int) -> None:
    """Invalidate the row of a segment before it gets another successor. The change is on the disk when this returns."""
    path = directory / FILE_NAME
    if not path.exists():
        return
    try:
        append_rows(directory, [Row(base_offset, NOTHING, 0, 0, 0)])
    except OSError:
        path.unlink(missing_ok=True)  # Also on a full disk: no row is better than a wrong row.
        sync_path(directory)
    else:
        sync_path(path)


def format_row(row: Row) -> str:
    """Return the text of a row. It starts with a newline, because the line before it may be incomplete."""
    text = " ".join(map(str, row))
    return f"\n{text} {crc32(text.encode()):08x}\n"


def read_rows(directory: Path) -> dict[int, Row]:
    """Return the last row of each segment by its base offset; none if the file is missing or unreadable."""
    try:
        lines = read_whole(directory / FILE_NAME).split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        LOG.warning("%s cannot be read and is passed over: %s", directory / FILE_NAME, error.strerror)
        return {}
    rows = (row for line in lines if (row := parse_row(line)) is not None)
    return {row.base_offset: row for row in rows}


def parse_row(line: bytes) -> Row | None:
    """Parse a line; None if it is damaged."""
    text, _, checksum = line.rpartition(b" ")
    if checksum != b"%08x" % crc32(text):
        return None
    return Row(*map(int, text.split()))


def compare_segments(directory: Path, found: Mapping[int, os.stat_result]) -> Succession:
    """Compare the segments that exist, by base offset and in order, with the rows of `segment-succession`."""
    rows, bases = read_rows(directory), list(found)
    missing: list[Missing | Shortened] = []
    unnoted = []
    for base_offset, next_offset in pairwise(bases):
        row = rows.get(base_offset)
        if row is None:
            unnoted.append(base_offset)
        elif is_cut(row, next_offset, found, rows):
            missing.append(Shortened(base_offset, row.size_bytes, next_offset))
        elif not is_row_of_file(row, found[base_offset], rows):
            unnoted.append(base_offset)
        elif row.next_offset < next_offset:
            missing.append(Missing(base_offset, row.next_offset, next_offset))
        elif row.next_offset > next_offset:
            unnoted.append(base_offset)
    return Succession(missing, unnoted)


def is_row_of_file(row: Row, status: os.stat_result, rows: Mapping[int, Row]) -> bool:
    """Return True if a row describes the file of a segment, and not a source from which compaction made the file.

    The compacted file has the time of the last of its sources, and another inode. A copy of the directory has other inodes, too: there only
    the times can differ.
    """
    if not has_size_and_time(row, status):
        return False
    follower = rows.get(row.next_offset)
    return row.inode == status.st_ino or (follower is not None and follower.mtime_ms != row.mtime_ms)


def was_followed(path: Path) -> bool:
    """Return True if a valid row says that another segment followed this one; the file may be a copy."""
    row = read_rows(path.parent).get(int(path.name[:20]))
    return row is not None and has_size_and_time(row, os.stat(path))


def has_size_and_time(row: Row, status: os.stat_result) -> bool:
    """Return True if a file has the size and the time of a row, as a copy does."""
    return (row.size_bytes, row.mtime_ms) == identify_file(status)[:2]


def is_cut(row: Row, next_offset: int, found: Mapping[int, os.stat_result], rows: Mapping[int, Row]) -> bool:
    """Return True if the file that a row describes was truncated in place.

    Compaction, Kafka's too, sets the time of its result to that of the source and renames it later. So a file with equal modification and
    change times was truncated. So was a file that is younger than its row and has the same successor, even if its attributes were changed
    later. In a copy of the directory inodes mean nothing: a truncated file counts only if other files kept their times.
    """
    status = found[row.base_offset]
    size_bytes, mtime_ms, inode = identify_file(status)
    as_it_was_written = mtime_ms == status.st_ctime_ns // 1_000_000
    younger = mtime_ms > row.mtime_ms and next_offset == row.next_offset
    if size_bytes >= row.size_bytes or not (as_it_was_written or younger):
        return False
    return row.inode == inode or any(
        rows[other].mtime_ms == status_of_other.st_mtime_ns // 1_000_000
        for other, status_of_other in found.items()
        if other in rows
    )


def missing_segments(directory: Path) -> list[Missing | Shortened]:
    """Return the missing segments of a folder that may be in use; none while an exchange by compaction is incomplete, which a start completes."""
    names = sorted(os.listdir(directory))
    if FILE_NAME not in names or any(name.endswith((".cleaned", ".swap")) for name in names):
        return []
    found = {}
    for path in (directory / name for name in names if LOG_NAME.fullmatch(name)):
        try:
            found[int(path.name[:20])] = os.stat(path)
        except FileNotFoundError:
            pass  # It was deleted meanwhile.
    missing = compare_segments(directory, found).missing
    # segments are deleted from the front, so an earlier one may be deleted by now
    return [each for each in missing if (directory / f"{each.base_offset:020d}.log").exists()]
