"""A log of small segments in a directory, with removed or truncated files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ottla.model import TopicPartition
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, append, batch

FLIGHTS = TopicPartition("flights", 0)
SMALL = LogConfig(segment_bytes=2 * len(batch(b"a")), retention_ms=-1)


def opened(path: Path, config: LogConfig = SMALL, **more: Any) -> tuple[DataDirectory, Log]:
    directory = DataDirectory.open(path, node_id=1)
    return directory, directory.open_log(FLIGHTS, config, now_ms=NOW, **more)


def filled(path: Path, segments: int, *, clean: bool = False) -> Path:
    """A directory with a log of so many segments, two records in each; the folder of the log."""
    directory, log = opened(path)
    for _ in range(2 * segments):
        append(log, b"a")
    log.flush()
    directory.checkpoint()
    directory.close(clean=clean)
    return log.directory


def lose(folder: Path, *bases: int) -> None:
    for base in bases:
        for path in folder.glob(f"{base:020d}.*"):
            path.unlink()


def cut(folder: Path, base: int, size: int = 0) -> None:
    """Truncate a segment's file, as none of our code does."""
    os.truncate(folder / f"{base:020d}.log", size)
