"""Tables of either format in a folder, for tests; read back by their own libraries."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from ottla.spark.tables.delta_store import DeltaStore
from ottla.spark.tables.file_writer import FileWriter
from ottla.spark.tables.guard import BatchMark
from ottla.spark.tables.iceberg_store import IcebergStore
from ottla.spark.tables.options import DeltaOptions, IcebergOptions, TableOptions
from ottla.spark.tables.sink import TableWriter
from ottla.spark.tables.store import DataFile, Store

FORMATS = ("delta", "iceberg")
ROWS = StructType([StructField("n", LongType()), StructField("text", StringType()), StructField("part", IntegerType())])


class Lake:
    """One table in a folder; `options` are those of its format."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder

    @property
    def format(self) -> str:
        return f"ottla_{self.kind}"

    @property
    def table(self) -> str:
        """Return the argument of `save`, `start` and `load`."""
        return str(self.folder / "table") if self.kind == "delta" else "tests.table"

    @property
    def spark_options(self) -> dict[str, str]:
        return {} if self.kind == "delta" else {"warehouse": str(self.folder)}

    def options(self, **more: Any) -> TableOptions:
        if self.kind == "delta":
            return DeltaOptions(path=self.table, **more)
        return IcebergOptions(path=self.table, warehouse=str(self.folder), **more)

    def store(self, **more: Any) -> Store:
        options = self.options(**more)
        if isinstance(options, DeltaOptions):
            return DeltaStore(options)
        assert isinstance(options, IcebergOptions)
        return IcebergStore(options)

    def writer(self, rows: StructType = ROWS, overwrite: bool = False, **more: Any) -> TableWriter:
        return TableWriter(self.store(**more), self.options(**more), rows, overwrite)

    def arrow(self) -> pa.Table:
        """The table's rows."""
        if self.kind == "delta":
            from deltalake import DeltaTable

            return DeltaTable(self.table).to_pyarrow_table()
        store = self.store()
        assert isinstance(store, IcebergStore)
        table = store.open()
        assert table is not None
        return table.scan().to_arrow()

    def counts(self, column: str = "n") -> Counter[Any]:
        """How often each value is in the table."""
        return Counter(self.arrow().column(column).to_pylist())

    def files(self) -> set[str]:
        """Parquet files of rows that lie about, in the table or not."""
        root = self.folder / ("table" if self.kind == "delta" else "tests/table") / "data"
        return {str(path) for path in root.rglob("*.parquet")}


def rows(*numbers: int, schema: StructType = ROWS) -> pa.RecordBatch:
    """Rows as Spark gives them: `n`, `text` and `part`."""
    columns: dict[str, Any] = {
        "n": pa.array(numbers, pa.int64()),
        "text": pa.array([str(n) for n in numbers], pa.string()),
        "part": pa.array([n % 3 for n in numbers], pa.int32()),
    }
    return pa.record_batch({name: columns[name] for name in schema.names})


def write(writer: TableWriter, *batches: pa.RecordBatch, folder: str = "q/0", name: str = "part-0") -> list[DataFile]:
    """Do the work of a task."""
    place = Path(writer.layout.data_folder, folder)
    options = writer.options
    return list(FileWriter(writer.layout, place, name, options.compression, options.target_file_size).write(batches))


def commit(lake: Lake, mark: BatchMark | None, *numbers: int, overwrite: bool = False, **options: Any) -> None:
    """A whole batch of one task."""
    writer = lake.writer(overwrite=overwrite, **options)
    folder = f"{mark.query}/{mark.batch}" if mark else f"batch/{uuid.uuid4()}"
    writer.commit_files(write(writer, rows(*numbers), folder=folder), mark, folder)


def marks(query: str, *batches: int, offsets: str | None = "o") -> list[BatchMark]:
    return [BatchMark(query, batch, offsets and f"{offsets}{batch}") for batch in batches]


def elsewhere(mark: BatchMark) -> BatchMark:
    """The same batch of a query that read something else."""
    return replace(mark, offsets="other")
