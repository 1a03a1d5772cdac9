"""Segment files in Parquet; the only module here that needs pyarrow, loaded when the first such file is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.backup.manifest import damaged
from ottla.extras import extra
from ottla.records import arrow
from ottla.records.columns import Columns

with extra("arrow"):
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile
    from pyarrow.parquet import ParquetWriter as ParquetFileWriter

ROW_GROUP_BYTES = 16 << 20


class ParquetWriter:
    """Writes rows, in row groups of some megabytes."""

    def __init__(self, path: Path, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._path = path
        self._writer: Any = ParquetFileWriter(path, arrow.schema(True), compression="zstd")
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self.size_bytes = 0

    def write(self, columns: Columns) -> None:
        batch = arrow.to_record_batch(columns, self._topic, self._partition, with_headers=True)
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write_row_group()

    def close(self) -> None:
        self._write_row_group()
        self._writer.close()
        fd = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _write_row_group(self) -> None:
        if not self._waiting:
            return
        self._writer.write_table(pa.Table.from_batches(self._waiting))
        self.size_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0


def read_parquet(path: Path) -> Iterator[Columns]:
    """Yield the records of a file, a row group at a time. Raises BackupError if it is damaged."""
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches():
                offsets = arrow.view_of(batch.column("offset").buffers()[1]).cast("q")
                first = batch.column("offset").offset
                for rows in arrow.rows_of(batch, key="key", value="value", headers="headers", timestamp="timestamp"):
                    part = offsets[first : first + rows.count]
                    first += rows.count
                    yield Columns(
                        rows.count, part, rows.timestamps, rows.keys, rows.values, rows.raw_headers, [], part[-1] + 1
                    )
    except (pa.ArrowException, OSError, KeyError) as error:
        raise damaged(path, error) from None
