"""Tables as sinks: tasks write files, and the driver adds all files of a batch in one commit.

A deleted file was never in the table, and the files of a commit exist. A failed or repeated batch leaves no files
behind, except if a process is killed; the next commit of the same batch deletes those.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.spark.failure import without_traceback
from ottla.spark.tables.batch import attempt_name, batch_of_task, offsets_digest
from ottla.spark.tables.errors import TableError
from ottla.spark.tables.guard import BatchMark
from ottla.spark.tables.options import TableOptions
from ottla.spark.tables.store import DataFile, Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    query: str
    """The stream's id; empty for a batch."""
    files: tuple[DataFile, ...]


class TableWriter:
    """The common part of stream and batch sinks."""

    def __init__(self, store: Store, options: TableOptions, rows: StructType, overwrite: bool) -> None:
        self.store, self.options, self.rows, self.overwrite = store, options, rows, overwrite
        self.layout = store.prepare(rows)

    def write_files(self, folder: str, batches: Iterator[pa.RecordBatch]) -> tuple[DataFile, ...]:
        """Write a task's rows to files in the folder of that name."""
        from ottla.spark.tables.file_writer import FileWriter

        place = Path(self.layout.data_folder, folder)
        writer = FileWriter(self.layout, place, attempt_name(), self.options.compression, self.options.target_file_size)
        return writer.write(batches)

    def commit_files(self, files: Sequence[DataFile], mark: BatchMark | None, folder: str) -> None:
        """Add the files to the table, and delete files of failed attempts."""
        ensure_there(files)
        if self.store.commit(files, self.rows, self.overwrite, mark):
            found = map(str, Path(self.layout.data_folder, folder).rglob("*.parquet"))
            self.discard(set(found) - {file.path for file in files})
        else:
            self.discard({file.path for file in files})

    def discard(self, paths: set[str]) -> None:
        """Delete files, unless they are in the table, and folders that become empty."""
        if not paths:
            return
        there = self.store.file_names()
        for path in map(Path, paths):
            if path.name not in there:
                path.unlink(missing_ok=True)
                remove_empty(path.parent)


class StreamTableSink(DataSourceStreamArrowWriter):
    """Writes each micro-batch of a streaming query, once."""

    def __init__(self, writer: TableWriter) -> None:
        self.writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:  # type: ignore[override]  # so in pyspark's own
        with without_traceback():
            query, batch = batch_of_task()
            return WrittenFiles(query, self.writer.write_files(stream_folder(query, batch), iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        with without_traceback():
            written = reports(messages)
            files = files_of(written)
            # A batch without rows is committed if the table does not know the query yet. The first rows then find it,
            # and no warning about missing batches is logged.
            if files or (written and not self.writer.store.has_query(written[0].query)):
                query = written[0].query
                offsets = offsets_digest(self.writer.options.checkpoint_location, batchId)
                self.writer.commit_files(files, BatchMark(query, batchId, offsets), stream_folder(query, batchId))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Delete the files of the batch's tasks, unless the commit succeeded and failed afterwards."""
        with without_traceback():
            self.writer.discard({file.path for file in files_of(reports(messages))})


class BatchTableSink(DataSourceArrowWriter):
    """Writes a DataFrame in one commit; with `txnAppId` and `txnVersion`, once."""

    def __init__(self, writer: TableWriter) -> None:
        self.writer = writer
        self.folder = f"batch/{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:  # type: ignore[override]  # so in pyspark's own
        with without_traceback():
            return WrittenFiles("", self.writer.write_files(self.folder, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        files, options = files_of(reports(messages)), self.writer.options
        mark = None
        if options.txn_app_id is not None and options.txn_version is not None:
            mark = BatchMark(options.txn_app_id, options.txn_version)
        with without_traceback():
            if files or self.writer.overwrite:
                self.writer.commit_files(files, mark, self.folder)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        with without_traceback():
            found = Path(self.writer.layout.data_folder, self.folder).rglob("*.parquet")
            self.writer.discard(set(map(str, found)))


def stream_folder(query: str, batch: int) -> str:
    """Return the folder of a batch's files. All attempts of the batch write there, and no other writer does."""
    return f"{query}/{batch}"


def reports(messages: Sequence[WriterCommitMessage | None]) -> list[WrittenFiles]:
    """Return the reports of tasks that completed."""
    return [message for message in messages if isinstance(message, WrittenFiles)]


def files_of(written: Sequence[WrittenFiles]) -> list[DataFile]:
    return [file for message in written for file in message.files]


def ensure_there(files: Sequence[DataFile]) -> None:
    """Raise TableError unless the driver finds the files of the tasks: on a cluster, the folder may differ between machines."""
    for file in files:
        path = Path(file.path)
        if not path.exists() or path.stat().st_size != file.size:
            raise TableError(
                f"a task wrote {path}, and the driver does not find it with the same size; "
                "put the table into a folder shared by all machines"
            )


def remove_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    try:
        folder.rmdir()
    except OSError:
        return
