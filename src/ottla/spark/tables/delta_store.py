"""A Delta table, with `deltalake`: its files, and commits to it.

A batch's mark is an application transaction (`txn` action) with the query's id and the batch's number, as written by
Delta's own connector for Spark, so a query can change from one connector to the other. `deltalake` rejects a commit if
another one has written the same application's transaction since the table was opened. So of two concurrent writers that
both find a batch due, only one commits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from ottla.spark.tables.attempts import commit_once
from ottla.spark.tables.columns import (
    ensure_columns,
    ensure_fits,
    ensure_partitioned,
    merge_columns,
    table_schema,
    to_widen,
)
from ottla.spark.tables.errors import TableError, require_package
from ottla.spark.tables.guard import BatchMark
from ottla.spark.tables.options import DeltaOptions
from ottla.spark.tables.store import DataFile, FileLayout

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

UNDERSTOOD = {"appendOnly", "invariants", "checkConstraints", "timestampNtz", "changeDataFeed", "generatedColumns"}
"""Features of tables that this sink supports. Whether columns or the table use other features is checked below."""


class DeltaStore:
    """A table in a folder."""

    def __init__(self, options: DeltaOptions) -> None:
        with require_package("deltalake", "ottla_delta"):
            import deltalake  # noqa: F401
        self.options = options
        self.folder = options.folder
        self.name = str(self.folder)

    def open(self, version: int | None = None) -> DeltaTable | None:
        """Return the table, in its current or an earlier version; None if there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        try:
            return DeltaTable(self.name, version=version)
        except TableNotFoundError:
            return None
        except DeltaError as error:
            raise TableError(f"table {self.name} cannot be opened: {error}") from None

    def prepare(self, rows: StructType) -> FileLayout:
        table = self.open() or self.create(rows)
        self.check(table, rows)
        there = schema_of(table)
        return FileLayout(
            data_folder=str(self.folder / "data"),
            schema=merge_columns(table_schema(rows), there, self.options.merge_schema),
            required=tuple(f.name for f in there.fields if not f.nullable),
            partition_columns=tuple(table.metadata().partition_columns),
            keeps_partition_columns=False,
        )

    def create(self, rows: StructType) -> DeltaTable:
        """Create a table for such rows, unless another process does so at the same time."""
        from deltalake import DeltaTable, Schema
        from deltalake.exceptions import DeltaError

        ensure_columns(self.options.partition_by, rows)
        schema = table_schema(rows)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                self.name, Schema.from_json(schema.json()), mode="ignore", partition_by=list(self.options.partition_by)
            )
        except (DeltaError, ValueError, OSError) as error:
            raise TableError(
                f"table {self.name} cannot be created for rows of {schema.simpleString()}: {error}"
            ) from None
        table = self.open()
        assert table is not None
        return table

    def check(self, table: DeltaTable, rows: StructType) -> None:
        """Raise TableError if the rows or this writer do not fit the table."""
        ensure_writable(table, self.name)
        ensure_partitioned(self.options.partition_by, tuple(table.metadata().partition_columns), self.name)
        ensure_fits(table_schema(rows), schema_of(table), self.name, self.options.merge_schema)

    def add_columns(self, table: DeltaTable, rows: StructType) -> DeltaTable:
        """Return the table after adding the new columns of `rows`, and widening its types for them."""
        from deltalake import Schema

        there, merge = schema_of(table), self.options.merge_schema
        new = ensure_fits(table_schema(rows), there, self.name, merge)
        wide = to_widen(table_schema(rows), there, merge)
        if wide:
            self.widen(table, {one.name: one for one in wide})
        elif not new:
            return table
        if new:
            table = self.opened()
            table.alter.add_columns(Schema.from_json(StructType(new).json()).fields)
        return self.opened()

    def widen(self, table: DeltaTable, wide: Mapping[str, StructField]) -> None:
        """Rewrite the table with wider types, in one commit.

        Few readers support type widening, so the files themselves must have the types.
        """
        import pyarrow as pa
        from deltalake import write_deltalake

        there = schema_of(table)
        partitions = table.metadata().partition_columns
        if any(name in partitions for name in wide):
            raise TableError(
                f"table {self.name} is partitioned by {', '.join(wide)}, and the type of a partition column cannot be changed; cast it"
            )
        schema = to_arrow_schema(StructType([wide.get(one.name, one) for one in there.fields]), timezone="UTC")
        batches = (batch.cast(schema) for batch in table.to_pyarrow_dataset().to_batches())
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite", partition_by=partitions or None)

    def opened(self) -> DeltaTable:
        """Return the current version of an existing table."""
        found = self.open()
        assert found is not None
        return found

    def commit(self, files: Sequence[DataFile], rows: StructType, overwrite: bool, mark: BatchMark | None) -> bool:
        from deltalake.exceptions import CommitFailedError, DeltaError

        def add(table: DeltaTable) -> None:
            try:
                table = self.add_columns(table, rows)
                self.check(table, rows)
                self.add(table, files, overwrite, mark)
            except CommitFailedError:
                raise
            except DeltaError as error:
                raise TableError(f"table {self.name} rejected a commit: {error}") from None

        return commit_once(self.name, self.open, last_batch_of, add, CommitFailedError, mark)

    def add(self, table: DeltaTable, files: Sequence[DataFile], overwrite: bool, mark: BatchMark | None) -> None:
        from deltalake.transaction import AddAction

        now = int(time.time() * 1000)
        actions = [
            AddAction(relative_path(file.path, self.folder), file.size, dict(file.partition), now, True, file.stats)
            for file in files
        ]
        table.create_write_transaction(
            actions,  # type: ignore[arg-type]  # accepts a list of AddAction only
            "overwrite" if overwrite else "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=commit_properties(mark),
        )

    def has_query(self, query: str) -> bool:
        table = self.open()
        return table is not None and last_batch_of(table, BatchMark(query, -1)) is not None

    def file_names(self) -> set[str]:
        table = self.open()
        return set() if table is None else {PurePath(uri).name for uri in table.file_uris()}


def commit_properties(mark: BatchMark | None) -> CommitProperties | None:
    """Return the properties of a commit: metadata and the mark."""
    from deltalake import CommitProperties, Transaction

    if mark is None:
        return None
    metadata = {"query": mark.query, "batch": mark.batch, "offsets": mark.offsets}
    return CommitProperties(custom_metadata={"ottla": metadata}, app_transactions=[Transaction(mark.query, mark.batch)])


def last_batch_of(table: DeltaTable, mark: BatchMark) -> BatchMark | None:
    """Return the last batch of the mark's query in the table."""
    batch = table.transaction_version(mark.query)
    if batch is None:
        return None
    return BatchMark(mark.query, batch, offsets_of(table, mark) if batch == mark.batch else None)


def offsets_of(table: DeltaTable, mark: BatchMark) -> str | None:
    """Return the offsets in the commit of the batch; None if another connector made it, or the log was truncated."""
    for commit in table.history():
        entry: Any = commit.get("ottla")
        if isinstance(entry, dict) and (entry.get("query"), entry.get("batch")) == (mark.query, mark.batch):
            found = entry.get("offsets")
            return None if found is None else str(found)
    return None


def schema_of(table: DeltaTable) -> StructType:
    """Return the table's columns as Spark's types, which Delta uses too."""
    return StructType.fromJson(json.loads(table.schema().to_json()))


def ensure_writable(table: DeltaTable, name: str) -> None:
    """Raise TableError for a feature of the table that this writer does not support."""
    needed = set(table.protocol().writer_features or ()) - UNDERSTOOD
    settings = table.metadata().configuration
    needed |= {key for key in settings if key.startswith("delta.constraints.")}
    if settings.get("delta.columnMapping.mode", "none") != "none":
        needed.add("delta.columnMapping.mode")
    needed |= {key for field in schema_of(table).fields for key in field.metadata if key.startswith("delta.")}
    if needed:
        raise TableError(
            f"table {name} needs {', '.join(sorted(needed))} of its writers, which Ottla does not support; write to it with "
            "Delta's own connector, or to another table"
        )


def relative_path(path: str, folder: Path) -> str:
    """Return a file's path relative to the table."""
    return Path(path).relative_to(folder).as_posix()
