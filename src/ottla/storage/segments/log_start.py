"""The start of a log, which decides whether a missing first segment was deleted or is lost.

    <offset>.deleted-before ──► segment files are deleted ──► log-start-offset-checkpoint, some time later
     └ forced to the disk first                                └ of all logs of the directory

The checkpoint has the start of each log when the checkpoint was written; segments may have been deleted since. Therefore an empty file is created
before a deletion, named after the offset up to which segments may be deleted. A crash between any two steps leaves a log that
starts at or below the higher of the two offsets. A log that starts higher has lost files that were not deleted: the offsets between are
damage, and readers get an error for them.

The file has no bytes, so that it can be created on a full disk. Kafka ignores it.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from ottla.storage.batches.damage import Damage
from ottla.storage.files.durable import sync_path
from ottla.storage.files.regular_file import open_regular

DELETED_BEFORE = re.compile(r"(\d{20})\.deleted-before")


def record_deletion(directory: Path, offset: int) -> None:
    """Record, before segments below an offset are deleted, that they may be missing. The file is on the disk when this returns."""
    path = directory / f"{offset:020d}.deleted-before"
    try:
        os.close(open_regular(path, os.O_WRONLY | os.O_CREAT, 0o666))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return  # A full disk must not prevent the deletion that frees space.
    sync_path(directory)
    for name in os.listdir(directory):
        if DELETED_BEFORE.fullmatch(name) and name < path.name:
            (directory / name).unlink(missing_ok=True)


def read_deleted_before(directory: Path) -> int:
    """Return the highest offset up to which segments may have been deleted."""
    return max(
        (int(match[1]) for name in os.listdir(directory) if (match := DELETED_BEFORE.fullmatch(name))), default=0
    )


def find_lost_start(directory: Path, noted: int | None, first_base: int) -> Damage | None:
    """Return the lost offsets before the first segment; None if none are lost. `noted` is an earlier start of the log, None if that is unknown."""
    if noted is None or noted >= first_base or (begin := max(noted, read_deleted_before(directory))) >= first_base:
        return None
    file = directory / f"{first_base:020d}.log"
    reason = (
        f"offsets {begin} to {first_base - 1} are in no segment, and were not deleted: the log began at or below {begin}, and the "
        f"first file that is left begins at {first_base}"
    )
    return Damage(file, 0, 0, begin, first_base, reason)
