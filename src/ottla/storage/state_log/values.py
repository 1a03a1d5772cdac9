"""The values in the log of a state and in its newest whole snapshot, read from outside and stepping over damage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.records.columns import decode
from ottla.storage.batches.walk import StoredBatch, walk
from ottla.storage.files.open_file import OpenFile
from ottla.storage.segments.log_folder import LOG_NAME
from ottla.storage.state_log.snapshot import NAME, SnapshotId, read_state


def values_in(folder: Path) -> Iterator[bytes]:
    """Yield the values of the snapshot, then those of the whole log, which may repeat some."""
    if not folder.is_dir():
        return
    names = sorted(path.name for path in folder.iterdir())
    for match in filter(None, map(NAME.fullmatch, reversed(names))):
        try:
            yield from read_state(folder, SnapshotId(int(match[1]), int(match[2]))).values
            break
        except (CorruptRecordError, OSError):
            continue
    for name in filter(LOG_NAME.fullmatch, names):
        if not (folder / name).is_file():
            continue
        file = OpenFile(folder / name, read=True)
        for found in walk(file, 0, os.fstat(file.fileno()).st_size):
            if isinstance(found, StoredBatch) and not found.header.is_control:
                columns = decode(bytes(found.data))
                yield from (columns.value(row) or b"" for row in range(columns.count))
