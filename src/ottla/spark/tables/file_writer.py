"""Writes a task's rows as Parquet files, one or more for each partition of the table.

Files of a failed task are deleted. Memory is bounded: rows of all partitions are buffered up to `PENDING_BYTES`, and
then those of the largest partition are written.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.spark.tables.errors import NullInColumnError
from ottla.spark.tables.options import Compression
from ottla.spark.tables.partition_values import Values, drop_columns, split_by_values
from ottla.spark.tables.stats import stats_of
from ottla.spark.tables.store import DataFile, FileLayout

PENDING_BYTES = 64 * 1024 * 1024
"""The limit on buffered rows, and so on the size of a row group."""


class OpenTableFile:
    def __init__(self, path: Path, schema: pa.Schema, compression: Compression) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.rows = path, 0
        self._footer: list[pq.FileMetaData] = []
        self._out = pa.OSFile(str(path), "wb")
        self._writer = pq.ParquetWriter(self._out, schema, compression=compression, metadata_collector=self._footer)

    @property
    def size(self) -> int:
        return int(self._out.tell())

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)
        self.rows += rows.num_rows

    def close(self, partition: Values) -> DataFile:
        """Finish the file, and return its description."""
        self._writer.close()
        size = self.size
        self._out.close()
        return DataFile(str(self.path), size, self.rows, partition, stats_of(self._footer[0]))

    def drop(self) -> None:
        try:
            self._writer.close()
        finally:
            self._out.close()
            self.path.unlink(missing_ok=True)


class FileWriter:
    """The files of one attempt of a task."""

    def __init__(self, layout: FileLayout, folder: Path, name: str, compression: Compression, target_size: int) -> None:
        self.layout, self.folder, self.name = layout, folder, name
        self.compression, self.target_size = compression, target_size
        self.schema = to_arrow_schema(layout.schema, timezone="UTC")
        required = (one.with_nullable(one.name not in layout.required) for one in self.schema)
        self.file_schema = pa.schema(list(required))  # Iceberg rejects files in which a required column is optional
        self.done: list[DataFile] = []
        self._open: dict[Values, OpenTableFile] = {}
        self._pending: dict[Values, list[pa.RecordBatch]] = {}
        self._pending_bytes: dict[Values, int] = {}

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[DataFile, ...]:
        """Write all rows and close the files; delete them if that fails."""
        try:
            for batch in batches:
                self.add(batch)
            while self._pending:
                self.write_out(next(iter(self._pending)))
            for values in list(self._open):
                self.finish(values)
        except BaseException:
            self.drop()
            raise
        return tuple(self.done)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch's rows to the buffers of their partitions."""
        if not batch.num_rows:
            return
        rows = batch.cast(self.schema)
        self.check_required(rows)
        rows = pa.RecordBatch.from_arrays(rows.columns, schema=self.file_schema)
        for values, part in self.parts(rows):
            self._pending.setdefault(values, []).append(part)
            self._pending_bytes[values] = self._pending_bytes.get(values, 0) + part.nbytes
        while sum(self._pending_bytes.values()) >= PENDING_BYTES:
            self.write_out(max(self._pending_bytes, key=self._pending_bytes.__getitem__))

    def check_required(self, rows: pa.RecordBatch) -> None:
        """Raise NullInColumnError for a null in a required column."""
        for column in self.layout.required:
            if rows.column(column).null_count:
                number = rows.column(column).is_null().index(True).as_py()
                row = ", ".join(f"{name} = {rows.column(name)[number]}" for name in rows.schema.names)
                raise NullInColumnError(
                    f"column {column!r} is null in the row {row[:200]}, and the table does not allow null; fill it, or filter out such rows"
                )

    def parts(self, rows: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        """Yield the rows of each partition in the columns of its files."""
        columns = self.layout.partition_columns
        for values, part in split_by_values(rows, columns):
            yield values, part if self.layout.keeps_partition_columns else drop_columns(part, columns)

    def write_out(self, values: Values) -> None:
        """Write the buffered rows of a partition, and start another file if the current one is large enough."""
        rows = pa.Table.from_batches(self._pending.pop(values))
        del self._pending_bytes[values]
        if values not in self._open:
            self._open[values] = OpenTableFile(self.path(values), rows.schema, self.compression)
        self._open[values].write(rows)
        if self._open[values].size >= self.target_size:
            self.finish(values)

    def finish(self, values: Values) -> None:
        self.done.append(self._open.pop(values).close(values))

    def path(self, values: Values) -> Path:
        """Return a unique file name. Folders such as `day=2013-01-01` are informative only; readers do not use them."""
        safe = [f"{column}={folder_name(value)}" for column, value in values]
        return self.folder.joinpath(*safe, f"{self.name}-{uuid.uuid4().hex[:12]}.parquet")

    def drop(self) -> None:
        for file in self._open.values():
            file.drop()
        for written in self.done:
            Path(written.path).unlink(missing_ok=True)


def folder_name(value: str | None) -> str:
    """Return a value as the name of a folder."""
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    return "".join(c if c.isalnum() or c in "-_. " else "_" for c in value)[:60] or "_"
