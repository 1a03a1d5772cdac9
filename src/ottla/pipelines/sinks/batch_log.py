"""The log (`_spark_metadata`) of Spark's file sink in a folder, and the pipeline that owns the folder.

Spark's `FileStreamSink.addBatch` skips every batch with a number up to the last one in the log, even if another query
wrote that batch. The numbers of a new checkpoint start at 0, so its first batches would be read, skipped and committed:
their rows would be lost without an error. Therefore a folder belongs to one pipeline and one checkpoint, and a pipeline
is rejected if the numbers do not fit. Readers of the log are not affected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from ottla.errors import ConfigError

METADATA = "_spark_metadata"
OWNER = "ottla.json"
"""The file in the log's folder that names the owner. Spark ignores file names in the log that are not numbers."""
FILE_FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
"""The formats that Spark writes with its file sink."""
REMEDY = "choose another path"


class Owner(NamedTuple):
    """The pipeline that writes to a folder."""

    pipeline: str
    home: str
    """The folder with its checkpoint."""


class BatchLog:
    """The log of a folder, on any file system of Hadoop."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        java: Any = spark
        self.folder = folder
        self._java = java._jvm
        self._path = self._java.org.apache.hadoop.fs.Path(folder, METADATA)
        self._owner_path = self._java.org.apache.hadoop.fs.Path(self._path, OWNER)
        self._files = self._path.getFileSystem(java._jsc.hadoopConfiguration())

    def last_batch(self) -> int | None:
        """Return the number of the last batch in the log, or None."""
        if not self._files.exists(self._path):
            return None
        return last_of(str(one.getPath().getName()) for one in self._files.listStatus(self._path))

    def owner(self) -> Owner | None:
        """Return the pipeline that owns the folder, or None if it is not known."""
        if not self._files.exists(self._owner_path):
            return None
        stream = self._files.open(self._owner_path)
        try:
            found = json.loads(str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")))
            return Owner(str(found["pipeline"]), str(found["home"]))
        except (ValueError, KeyError, TypeError):
            return None
        finally:
            stream.close()

    def claim(self, owner: Owner) -> None:
        """Record the owner of the folder."""
        stream = self._files.create(self._owner_path, True)
        try:
            stream.write(json.dumps(owner._asdict(), ensure_ascii=False).encode())
        finally:
            stream.close()


def ensure_fits(log: BatchLog, pipeline: str, home: Path, checkpoint: Path) -> None:
    """Raise ConfigError if Spark would skip batches of this checkpoint, or if the folder belongs to another pipeline."""
    last = log.last_batch()  # Read first: a batch that starts meanwhile is in the checkpoint before it is in the log
    started, committed = (last_of(names_in(checkpoint / name)) for name in ("offsets", "commits"))
    reason = find_conflict(log.folder, Owner(pipeline, str(home)), log.owner(), last, started, committed)
    if reason is not None:
        raise ConfigError(reason)


def find_conflict(
    folder: str, mine: Owner, owner: Owner | None, last: int | None, started: int | None, committed: int | None
) -> str | None:
    """Return the reason why this pipeline may not write to the folder, or None.

    `last` is the last batch in the folder; `started` and `committed` are the last ones of the checkpoint.
    """
    if owner is not None and owner.home != mine.home and Path(owner.home).exists():
        return (
            f"folder {folder} belongs to pipeline {owner.pipeline!r}, with its checkpoint in {owner.home}: Spark would skip "
            f"batches of this one; {REMEDY}"
        )
    if last is not None and (started is None or last > started):
        mine_has = "has none" if started is None else f"is at batch {started}"
        return (
            f"folder {folder} has batches up to {last}, and the checkpoint of this pipeline {mine_has}: Spark would read its rows up "
            f"to batch {last} and not write them; {REMEDY}, or move the folder away"
        )
    if last is None and committed is not None:
        return (
            f"folder {folder} has none of the batches up to {committed} of this pipeline, without which Spark cannot read it; put it "
            "back, or start again with `ottla pipeline offsets reset`"
        )
    return None


def last_of(names: Iterable[str]) -> int | None:
    """Return the highest batch number among file names. Compacted files have the suffix `.compact`."""
    return max((int(number) for name in names if (number := name.removesuffix(".compact")).isdecimal()), default=None)


def names_in(folder: Path) -> list[str]:
    """Return the names of the files of a local folder; empty if it does not exist."""
    return [one.name for one in folder.iterdir()] if folder.is_dir() else []


def explain_lost_rows(folder: str) -> str | None:
    """Return the reason why a pipeline that writes to the folder cannot have a new checkpoint.

    Remote folders are checked by `ensure_fits`.
    """
    local = folder.removeprefix("file://") if folder.startswith("file:///") else folder
    last = None if "://" in local else last_of(names_in(Path(local, METADATA)))
    if last is None:
        return None
    return (
        f"folder {folder} has batches up to {last}, which Spark would skip if a new checkpoint counts from 0; give the sink "
        "another path, or move the folder away, and reset again"
    )
