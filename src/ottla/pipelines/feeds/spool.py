"""Rows that were fetched and are not in the sink yet: a file for each batch, in the folder of the pipeline.

A file is there whole or not at all. Its name has the batch's number and chance in it, so that a process that was thought dead cannot
put another in its place.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from ottla.errors import OttlaError

PART = ".part"
ENDING = ".arrows"


class SpoolError(OttlaError):
    """What was fetched cannot be kept or is not there any more."""


class Spool:
    """The files of one pipeline."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema

    def begin(self, number: int, most: int) -> SpoolFiles:
        """New files for batches from this number on, of about as many rows as `most`."""
        return SpoolFiles(self, number, most)

    def file(self, number: int) -> SpoolFile:
        return SpoolFile(self.folder / f"{number:08}-{uuid.uuid4().hex[:12]}{ENDING}", self.schema)

    def read(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        path = self.folder / name
        try:
            with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
                yield from reader
        except FileNotFoundError:
            raise SpoolError(
                f"the rows of this batch were kept in {path}, which is gone: the checkpoint is an old copy, or the file was "
                "deleted; restore it, or begin anew under another name"
            ) from None
        except (OSError, pa.ArrowInvalid) as error:
            raise SpoolError(f"{path} cannot be read: {error}; restore it, or begin anew under another name") from None

    def forget(self, number: int) -> None:
        """Delete the files of batches up to this one."""
        for file in self.folder.glob(f"*{ENDING}*"):
            head = file.name.partition("-")[0]
            if head.isdecimal() and int(head) <= number:
                file.unlink(missing_ok=True)


class SpoolFiles:
    """Files that are being written one after the other."""

    def __init__(self, spool: Spool, number: int, most: int) -> None:
        self._spool, self._number, self._most = spool, number, most
        self._files: list[SpoolFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            if not self._files or self._files[-1].rows >= self._most:
                self._files.append(self._spool.file(self._number + len(self._files)))
            room = self._most - self._files[-1].rows
            self._files[-1].write(batch.slice(0, room))
            batch = batch.slice(room)

    @property
    def is_full(self) -> bool:
        """Whether the last of them has no more room."""
        return bool(self._files) and self._files[-1].rows >= self._most

    def finish(self) -> list[str]:
        """Have all of them there; their names."""
        for file in self._files:
            file.finish()
        return [file.name for file in self._files]

    def abandon(self) -> None:
        for file in self._files:
            file.abandon()


class SpoolFile:
    """A file that is being written; made with its first rows."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.name, self.rows = path.name, 0
        self._path, self._part, self._schema = path, path.with_name(path.name + PART), schema
        self._file: pa.OSFile | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            try:
                (self._writer or self._open()).write_batch(batch)
            except OSError as error:
                raise SpoolError(f"{self._path} cannot be written: {error}; make room there") from None
            self.rows += batch.num_rows

    def finish(self) -> None:
        """Have it there whole, also after the machine has failed."""
        assert self._writer is not None
        assert self._file is not None
        try:
            self._writer.close()
            self._file.close()
            sync(self._part)
            self._part.replace(self._path)
            sync(self._path.parent)
        except OSError as error:
            raise SpoolError(f"{self._path} cannot be written: {error}; make room there") from None

    def abandon(self) -> None:
        """Leave nothing of it."""
        if self._file is not None:
            with suppress(OSError, pa.ArrowInvalid):
                self._file.close()
            self._part.unlink(missing_ok=True)

    def _open(self) -> pa.RecordBatchStreamWriter:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pa.OSFile(str(self._part), "wb")
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_stream(self._file, self._schema, options=options)
        return self._writer


def sync(path: Path) -> None:
    """Have the disk keep what a file or a folder has."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
