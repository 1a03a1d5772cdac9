"""Whether a disk has room for new partitions."""

from __future__ import annotations

import os
from pathlib import Path

from ottla.errors import ErrorCode, KafkaError
from ottla.storage.files.storage_error import storage_error

BLOCKS_OF_A_FOLDER = 6
"""What a partition takes with its first record: its folder, its log, two indexes, its topic's id, a checkpoint."""
SPARE_BLOCKS = 16
"""What is to be left for that which deletes: the log of the metadata, checkpoints."""


def ensure_room(path: Path, folders: int) -> None:
    """KafkaError(KAFKA_STORAGE_ERROR) where the disk has no room for so many new folders, or takes none at all."""
    if (why := want(path, folders)) is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {path} takes no new partitions: it {why}")


def want(path: Path, folders: int) -> str | None:
    """What is wrong with a disk that has no room for so many new folders, and what helps; KafkaError where it cannot be looked at."""
    try:
        disk = os.statvfs(path)
    except OSError as error:
        raise storage_error(f"cannot look at the disk of {path}", error) from error
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    if disk.f_flag & os.ST_RDONLY:
        return "is read-only"
    if blocks < SPARE_BLOCKS + folders * BLOCKS_OF_A_FOLDER:
        return "is full: make room, and try again"
    if disk.f_files > 0 and disk.f_ffree < folders:
        return "has no inodes left: delete files, and try again"
    return None
