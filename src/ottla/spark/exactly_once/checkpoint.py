"""Reads a query's checkpoint for the sink: the query's id and the next batch.

The files are written by Spark (`StreamMetadata`, `OffsetSeqLog`); the folder may be on any file system that pyarrow
supports.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from ottla.spark.exactly_once.batch_plan import NO_PLAN, BatchPlan, parse_plan

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint before a batch is written. Spark has logged the batch's offsets by then."""

    query: str
    batch: int
    plan: BatchPlan = NO_PLAN


def read_checkpoint(location: str | None, topic: str | None) -> Checkpoint | None:
    """Return the checkpoint; None, with a warning, if it cannot be read from Python."""
    if location is None:
        return None
    try:
        files, folder = open_location(location)
        query = json.loads(text_of(files, f"{folder}/metadata"))["id"]
        batch = find_newest(files, f"{folder}/offsets")
        return Checkpoint(query, batch, parse_plan(text_of(files, f"{folder}/offsets/{batch}"), topic))
    except (OSError, ValueError, KeyError) as error:
        log.warning(
            "the checkpoint cannot be read, so the driver commits every batch; checkpoint=%s error=%s", location, error
        )
        return None


def open_location(location: str) -> tuple[Any, str]:
    """Return the file system of a path or URI, and the folder in it."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return fs.LocalFileSystem(), unquote(parts.path).rstrip("/") if parts.scheme else location.rstrip("/")
    files, folder = fs.FileSystem.from_uri(location)
    return files, folder.rstrip("/")


def text_of(files: Any, path: str) -> str:
    with files.open_input_stream(path) as stream:
        return str(stream.read().decode())


def find_newest(files: Any, folder: str) -> int:
    """Return the highest file name that is a number; ValueError if there is none."""
    return max(
        int(info.base_name) for info in files.get_file_info(fs.FileSelector(folder)) if info.base_name.isdecimal()
    )
