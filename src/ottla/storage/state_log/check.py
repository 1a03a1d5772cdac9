"""Check if the log of a state can be loaded after a crash: a torn end may be truncated, anything else is damage.

Such a log is never compacted, and each of its batches is on the disk before it is acknowledged, so that it has no gaps,
and only the last batch can be torn. The check only reads the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from ottla.errors import CorruptRecordError
from ottla.records.batch import ATTRIBUTES_POSITION, HEADER_BYTES, MAGIC, parse_header
from ottla.records.crc32c import crc32c
from ottla.storage.batches.damage import Damage, survey_batches
from ottla.storage.batches.scan import scan
from ottla.storage.batches.verified_walk import Bounds, VerifiedBatch
from ottla.storage.files.open_file import OpenFile
from ottla.storage.segments.log_folder import LOG_NAME
from ottla.storage.state_log.quorum_state import FILE_NAME as PROMISES
from ottla.storage.state_log.snapshot import Kind, control_of

START_OVER = (
    "take this node out of the voters, empty its directory, and add it again: the others have what is missing here"
)
"""The remedy for a voter with other voters."""
VOTERS = Struct(">hBi")
"""How the record of the voters begins: version, count + 1, the first one's number."""
LEADER_CHANGE, LEADER = 2, Struct(">hiB")
"""Kind of the record with which one begins to lead, and how that begins: version, the leader's number, count of voters + 1."""


def find_state_damage(folder: Path, recovery_point: int) -> Damage | None:
    """Return the first damage in the log in `folder`; what a crash tears at its end, above the recovery point, is none."""
    paths = sorted(path for path in folder.iterdir() if LOG_NAME.fullmatch(path.name))
    expected = int(paths[0].name[:20]) if paths else 0
    for number, path in enumerate(paths):
        base_offset, last = int(path.name[:20]), number + 1 == len(paths)
        if base_offset != expected:
            reason = f"the segment begins at offset {base_offset}, the one before it ends at {expected}"
            return Damage(path, 0, 0, expected, base_offset, reason)
        file = OpenFile(path, read=True)
        size = os.fstat(file.fileno()).st_size
        end = find_whole_end(file, base_offset, size)
        if end is not None:
            expected = end
            continue
        for found in survey_batches(file, path, size, base_offset, Bounds(gaps=False)):
            if isinstance(found, VerifiedBatch):
                expected = found.header.next_offset
            elif not (last and found.offset >= recovery_point and is_torn_end(file, found, size)):
                return found
    if paths and expected < recovery_point:
        reason = f"the log ends at offset {expected}, and was on the disk up to {recovery_point}"
        return Damage(paths[-1], paths[-1].stat().st_size, 0, expected, recovery_point, reason)
    return None


def fetch_again(folder: Path) -> str:
    """Return the remedy for a broker, which only has a copy."""
    return f"move {folder} away, and the broker fetches the metadata again from the controllers"


def has_other_voters(folder: Path, node_id: int) -> bool:
    """Return True if another node votes on the metadata in a folder, as far as it can be read.

    Such a node has the records that are damaged here. If no record of the voters is readable, the log is a controller's, because a node
    without others has a snapshot that names its voter; or it is a copy if there is no vote in the folder.
    """
    count, one = 0, node_id
    for kind, value in read_quorum(folder):
        if kind == Kind.VOTERS and len(value) >= VOTERS.size:
            _, following, one = VOTERS.unpack_from(value)
            count = following - 1
        elif kind == LEADER_CHANGE and len(value) >= LEADER.size:
            _, one, following = LEADER.unpack_from(value)
            count = following - 1
    if not count:
        return not (folder / PROMISES).exists()
    return count > 1 or one != node_id


def read_quorum(folder: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the control records of the quorum in a folder by their kinds, also those after damage."""
    for path in [*sorted(folder.glob("*.checkpoint")), *sorted(folder.glob("*.log"))]:
        data = path.read_bytes() if path.is_file() else b""
        if not data:
            continue
        for found in survey_batches(OpenFile(path, read=True), path, len(data), 0, Bounds()):
            if isinstance(found, VerifiedBatch):
                yield from ((kind, value or b"") for kind, value in control_of(data, found.position, found.header))


def find_whole_end(file: OpenFile, offset: int, size: int) -> int | None:
    """Return the offset after the last batch where all are whole and follow each other, as is mostly so; else None."""
    try:
        for _, header in scan(file, 0, size, check=True):
            if header.base_offset != offset:
                return None
            offset = header.next_offset
    except CorruptRecordError:
        return None
    return offset


def is_torn_end(file: OpenFile, damage: Damage, size: int) -> bool:
    """Return True if an append may have been interrupted there: the start of a batch, or space that was never filled."""
    if damage.position + damage.size_bytes != size:
        return False
    data = os.pread(file.fileno(), damage.size_bytes, damage.position)
    if not any(data) or len(data) < HEADER_BYTES:
        return True
    header = parse_header(data)
    if header.magic != MAGIC or header.size_bytes <= len(data) or header.base_offset != damage.offset:
        return False
    # a complete batch with a wrong length was not torn
    return crc32c(memoryview(data)[ATTRIBUTES_POSITION:]) != header.crc
