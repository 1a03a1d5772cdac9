"""A query's checkpoint as far as the sink needs it: whose it is, and which batch is next.

Reads files that Spark has written; the folder may be anywhere that pyarrow can reach.
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
    """What it says just before a batch is written: Spark has logged the batch's offsets by then."""

    query: str
    batch: int
    plan: BatchPlan = NO_PLAN


def read_checkpoint(location: str | None, topic: str | None) -> Checkpoint | None:
    """The checkpoint there, None (and a warning) where it cannot be read from Python."""
    if location is None:
        return None
    try:
        files, folder = opened(location)
        query = json.loads(text_of(files, f"{folder}/metadata"))["id"]
        batch = newest(files, f"{folder}/offsets")
        return Checkpoint(query, batch, parse_plan(text_of(files, f"{folder}/offsets/{batch}"), topic))
    except (OSError, ValueError, KeyError) as error:
        log.warning("the checkpoint %s cannot be read (%s): every batch is committed by the driver", location, error)
        return None


def opened(location: str) -> tuple[Any, str]:
    """The file system of a path or URI as Spark takes it, and the folder in it."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return fs.LocalFileSystem(), unquote(parts.path).rstrip("/") if parts.scheme else location.rstrip("/")
    files, folder = fs.FileSystem.from_uri(location)
    return files, folder.rstrip("/")


def text_of(files: Any, path: str) -> str:
    with files.open_input_stream(path) as stream:
        return str(stream.read().decode())


def newest(files: Any, folder: str) -> int:
    """The highest number that a file of `folder` is called; ValueError where there is none."""
    return max(
        int(info.base_name) for info in files.get_file_info(fs.FileSelector(folder)) if info.base_name.isdecimal()
    )
