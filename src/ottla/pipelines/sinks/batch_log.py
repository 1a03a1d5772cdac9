"""The batches that Spark's file sink has written to a folder, by its log there (`_spark_metadata`), and the pipeline that wrote them.

Spark's sink leaves out every batch whose number is not higher than the last in the log, whichever query wrote that one. A checkpoint
that begins anew counts from 0: its rows would be read, not written, and committed. So a folder belongs to one pipeline and to
one checkpoint, and a pipeline is refused where the numbers do not fit. Readers that heed the log see all of it as before.
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
"""The file in the log's folder that says which pipeline writes there; Spark passes over names that are no numbers."""
FILE_FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
"""The formats of Spark that are written by its file sink."""
REMEDY = "choose another path"


class Owner(NamedTuple):
    """The pipeline that writes to a folder."""

    pipeline: str
    home: str
    """The folder of its checkpoint."""


class BatchLog:
    """The log of a folder, on any file system that Spark reaches."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        java: Any = spark
        self.folder = folder
        self._java = java._jvm
        self._path = self._java.org.apache.hadoop.fs.Path(folder, METADATA)
        self._owner_path = self._java.org.apache.hadoop.fs.Path(self._path, OWNER)
        self._files = self._path.getFileSystem(java._jsc.hadoopConfiguration())

    def last_batch(self) -> int | None:
        """Return the number of the last batch that was written, or None."""
        if not self._files.exists(self._path):
            return None
        return last_of(str(one.getPath().getName()) for one in self._files.listStatus(self._path))

    def owner(self) -> Owner | None:
        """Return the pipeline that writes to the folder, where that is known."""
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
        """Write down that a pipeline writes to the folder."""
        stream = self._files.create(self._owner_path, True)
        try:
            stream.write(json.dumps(owner._asdict(), ensure_ascii=False).encode())
        finally:
            stream.close()


def ensure_fits(log: BatchLog, pipeline: str, home: Path, checkpoint: Path) -> None:
    """ConfigError if Spark would leave out batches of this checkpoint, or the folder is another pipeline's."""
    last = log.last_batch()  # before the checkpoint is looked at, where a batch is begun before it is in the log
    begun, committed = (last_of(names_in(checkpoint / name)) for name in ("offsets", "commits"))
    reason = refusal(log.folder, Owner(pipeline, str(home)), log.owner(), last, begun, committed)
    if reason is not None:
        raise ConfigError(reason)


def refusal(
    folder: str, mine: Owner, owner: Owner | None, last: int | None, begun: int | None, committed: int | None
) -> str | None:
    """Return why this pipeline may not write to the folder, or None.

    `last` is the last batch in the folder; `begun` and `committed` are the last ones of the checkpoint.
    """
    if owner is not None and owner.home != mine.home and Path(owner.home).exists():
        return (
            f"folder {folder} belongs to pipeline {owner.pipeline!r}, whose checkpoint is {owner.home}: Spark would leave out "
            f"batches of this one; {REMEDY}"
        )
    if last is not None and (begun is None or last > begun):
        mine_has = "has begun none" if begun is None else f"is at batch {begun}"
        return (
            f"folder {folder} has batches up to {last}, and the checkpoint of this pipeline {mine_has}: Spark would read its rows up "
            f"to batch {last} and not write them; {REMEDY}, or move the folder away"
        )
    if last is None and committed is not None:
        return (
            f"folder {folder} has none of the batches up to {committed} of this pipeline, without which Spark cannot read it; put it "
            "back, or begin anew with `ottla pipeline offsets reset`"
        )
    return None


def last_of(names: Iterable[str]) -> int | None:
    """Return the highest batch among names of files; every tenth has `.compact` behind its number."""
    return max((int(number) for name in names if (number := name.removesuffix(".compact")).isdecimal()), default=None)


def names_in(folder: Path) -> list[str]:
    """Return the names of the files of a folder of this machine, of which there are none if it is not there."""
    return [one.name for one in folder.iterdir()] if folder.is_dir() else []


def cannot_begin_anew(folder: str) -> str | None:
    """Return why a pipeline that writes to the folder cannot have a new checkpoint; a folder elsewhere is looked at by `ensure_fits`."""
    local = folder.removeprefix("file://") if folder.startswith("file:///") else folder
    last = None if "://" in local else last_of(names_in(Path(local, METADATA)))
    if last is None:
        return None
    return (
        f"folder {folder} has batches up to {last}, which Spark would leave out when a new checkpoint counts from 0; give the sink "
        "another path, or move the folder away, and reset then"
    )
