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
    try:
        disk = os.statvfs(path)
    except OSError as error:
        raise storage_error(f"cannot look at the disk of {path}", error) from error
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    if disk.f_flag & os.ST_RDONLY:
        why = "it is read-only"
    elif blocks < SPARE_BLOCKS + folders * BLOCKS_OF_A_FOLDER:
        why = "it is full: make room, and try again"
    elif disk.f_files > 0 and disk.f_ffree < folders:
        why = "it has no inodes left: delete files, and try again"
    else:
        return
    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {path} takes no new partitions: {why}")
