"""Stores rows that were fetched and are not in the sink yet: a file for each batch, in the folder of the pipeline.

A file exists completely or not at all. Its name has the batch's number and a random part, so that a process believed
dead cannot replace the file of its successor.
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
    """Fetched rows cannot be stored or read."""


class Spool:
    """The files of one pipeline."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema

    def create_files(self, number: int, most: int) -> SpoolFiles:
        """Return a writer of new files for batches from this number on, of about `most` rows each."""
        return SpoolFiles(self, number, most)

    def file(self, number: int) -> SpoolFile:
        return SpoolFile(self.folder / f"{number:08}-{uuid.uuid4().hex[:12]}{ENDING}", self.schema)

    def read(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file; SpoolError if it does not exist or is damaged."""
        path = self.folder / name
        try:
            with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
                yield from reader
        except FileNotFoundError:
            raise SpoolError(
                f"the rows of this batch were stored in {path}, which does not exist: the checkpoint is an old copy, or the file was "
                "deleted; restore it, or start again under another name"
            ) from None
        except (OSError, pa.ArrowInvalid) as error:
            raise SpoolError(f"{path} cannot be read: {error}; restore it, or start again under another name") from None

    def delete_up_to(self, number: int) -> None:
        """Delete the files of batches up to this one."""
        for file in self.folder.glob(f"*{ENDING}*"):
            head = file.name.partition("-")[0]
            if head.isdecimal() and int(head) <= number:
                file.unlink(missing_ok=True)


class SpoolFiles:
    """Writes files one after the other."""

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
        """True if the last file is full."""
        return bool(self._files) and self._files[-1].rows >= self._most

    def finish(self) -> list[str]:
        """Complete all files and return their names."""
        for file in self._files:
            file.finish()
        return [file.name for file in self._files]

    def abandon(self) -> None:
        for file in self._files:
            file.abandon()


class SpoolFile:
    """A file that is being written; it is created with its first rows."""

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
                raise SpoolError(f"{self._path} cannot be written: {error}; free some space") from None
            self.rows += batch.num_rows

    def finish(self) -> None:
        """Complete the file durably: after a crash of the machine it exists completely or not at all."""
        assert self._writer is not None
        assert self._file is not None
        try:
            self._writer.close()
            self._file.close()
            sync_path(self._part)
            self._part.replace(self._path)
            sync_path(self._path.parent)
        except OSError as error:
            raise SpoolError(f"{self._path} cannot be written: {error}; free some space") from None

    def abandon(self) -> None:
        """Delete the incomplete file."""
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


def sync_path(path: Path) -> None:
    """Flush a file or a folder to disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
