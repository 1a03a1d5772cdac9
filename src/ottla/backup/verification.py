"""Check every byte of a backup: sizes and checksums of the files, and that their batches contain the listed records."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ottla.backup.folder import BackupFolder
from ottla.backup.manifest import BackupError, Segment
from ottla.backup.segments import read_records
from ottla.copy_progress import CopyProgress, CopyReport


class Verification(NamedTuple):
    """The result of a check."""

    files: int
    records: int
    problems: tuple[str, ...]
    """One sentence for each damaged file."""
    skipped: tuple[str, ...]
    """Partitions that the last run skipped, because they had no leader."""


def verify_backup(
    folder: BackupFolder,
    show: Callable[[CopyReport], None] = lambda report: None,
    now: Callable[[], float] = time.monotonic,
) -> Verification:
    """Read all files of a backup. Raises BackupError if its manifest is damaged."""
    manifest = folder.read_manifest()
    progress, problems = CopyProgress("verified", now()), []
    for segment in manifest.segments:
        try:
            check_records(folder, segment)
        except BackupError as error:
            problems.append(str(error))
        progress.add(segment.records, now())
        show(progress.report(manifest.records - progress.records, now()))
    return Verification(len(manifest.segments), manifest.records, tuple(problems), manifest.skipped)


def check_records(folder: BackupFolder, segment: Segment) -> None:
    """Raise BackupError if a segment's file differs from the manifest or contains other records."""
    path = folder.check_segment(segment)
    position, count = segment.first_offset, 0
    for columns in read_records(path):
        if columns.offsets[0] < position:
            raise BackupError(f"{path} is damaged: offset {columns.offsets[0]} follows offset {position - 1}")
        position = columns.offsets[columns.count - 1] + 1
        count += columns.count
    if count != segment.records or position != segment.next_offset:
        raise BackupError(
            f"{path} has {count} records up to offset {position}, expected {segment.records} up to {segment.next_offset}"
        )
