"""Which segments of a log have aborted transactions in them: `aborting-segments` beside the log.

Most segments have no `.txnindex`, so the folder does not show that one has gone, and readers of committed records would be
given aborted ones. Where it is noted here, the segment's batches are asked. A segment too many costs just that look.
"""

from __future__ import annotations

import logging
from pathlib import Path

from ottla.storage.files.checkpoint import read_numbers, write_rows

FILE_NAME = "aborting-segments"
LOG = logging.getLogger(__name__)


def read_aborting(directory: Path) -> set[int]:
    """The base offsets that are noted; none where there is no file, as of a log that another broker began, all where it is damaged."""
    return read_noted(directory)[0]


def read_noted(directory: Path) -> tuple[set[int], bool]:
    """The same, and whether the file can be read."""
    try:
        return {base_offset for (base_offset,) in read_numbers(directory / FILE_NAME, 1)}, True
    except FileNotFoundError:
        return set(), True
    except (OSError, ValueError) as error:
        LOG.warning("%s is damaged: every segment is asked for aborted transactions: %s", directory / FILE_NAME, error)
        return {int(path.stem) for path in directory.glob("*.log") if path.stem.isdigit()}, False


def note_aborting(directory: Path, base_offset: int, *, aborts: bool, sync: bool) -> None:
    """Note whether a segment has any; those whose segments are gone are left out from now on."""
    noted, whole = read_noted(directory)
    if whole and (base_offset in noted) == aborts:
        return
    wanted = {each for each in noted if (directory / f"{each:020d}.log").exists()} - {base_offset}
    write_rows(
        directory / FILE_NAME, ([each] for each in sorted(wanted | ({base_offset} if aborts else set()))), sync=sync
    )
