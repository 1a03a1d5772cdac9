"""A Delta table, by `deltalake`: which files are in it, and commits to it.

A batch's mark is an application transaction, the query's id with the batch's number, as Delta's own connector for
Spark writes it: a query may move from one to the other. `deltalake` refuses a commit if another one has written the
same application's transaction meanwhile, so that two who look at once cannot both find a batch due.
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
from ottla.spark.tables.columns import ensure_columns, ensure_fits, ensure_partitioned, merged, table_schema, to_widen
from ottla.spark.tables.errors import TableError, needing
from ottla.spark.tables.guard import BatchMark
from ottla.spark.tables.options import DeltaOptions
from ottla.spark.tables.store import DataFile, FileLayout

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

UNDERSTOOD = {"appendOnly", "invariants", "checkConstraints", "timestampNtz", "changeDataFeed", "generatedColumns"}
"""Features of a table that this sink writes rightly; what they ask of a column or table is looked for below."""


class DeltaStore:
    """A table in a folder."""

    def __init__(self, options: DeltaOptions) -> None:
        with needing("deltalake", "ottla_delta"):
            import deltalake  # noqa: F401
        self.options = options
        self.folder = options.folder
        self.name = str(self.folder)

    def open(self, version: int | None = None) -> DeltaTable | None:
        """The table as it is now, or was; None if there is none."""
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
            schema=merged(table_schema(rows), there, self.options.merge_schema),
            required=tuple(f.name for f in there.fields if not f.nullable),
            partition_columns=tuple(table.metadata().partition_columns),
            keeps_partition_columns=False,
        )

    def create(self, rows: StructType) -> DeltaTable:
        """Make a table for such rows; somebody else may do so at the same time."""
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
            raise TableError(f"table {self.name} cannot be made for rows of {schema.simpleString()}: {error}") from None
        table = self.open()
        assert table is not None
        return table

    def check(self, table: DeltaTable, rows: StructType) -> None:
        """TableError if these rows, or this writer, and the table do not fit."""
        ensure_writable(table, self.name)
        ensure_partitioned(self.options.partition_by, tuple(table.metadata().partition_columns), self.name)
        ensure_fits(table_schema(rows), schema_of(table), self.name, self.options.merge_schema)

    def add_columns(self, table: DeltaTable, rows: StructType) -> DeltaTable:
        """The table with the columns that `rows` have beside its own, and with types that are wide enough for them."""
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
        """Write the table anew with wider types, in one commit: without type widening, which few readers have, files must have them."""
        import pyarrow as pa
        from deltalake import write_deltalake

        there = schema_of(table)
        partitions = table.metadata().partition_columns
        if any(name in partitions for name in wide):
            raise TableError(
                f"table {self.name} is partitioned by {', '.join(wide)}, whose type cannot be changed; cast it"
            )
        schema = to_arrow_schema(StructType([wide.get(one.name, one) for one in there.fields]), timezone="UTC")
        batches = (batch.cast(schema) for batch in table.to_pyarrow_dataset().to_batches())
        rows = pa.RecordBatchReader.from_batches(schema, batches)
        write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite", partition_by=partitions or None)

    def opened(self) -> DeltaTable:
        """The table as it is now, which is there."""
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
                raise TableError(f"table {self.name} refuses a commit: {error}") from None

        return commit_once(self.name, self.open, done, add, CommitFailedError, mark)

    def add(self, table: DeltaTable, files: Sequence[DataFile], overwrite: bool, mark: BatchMark | None) -> None:
        from deltalake.transaction import AddAction

        now = int(time.time() * 1000)
        actions = [
            AddAction(relative(file.path, self.folder), file.size, dict(file.partition), now, True, file.stats)
            for file in files
        ]
        table.create_write_transaction(
            actions,  # type: ignore[arg-type]  # a list of AddAction alone
            "overwrite" if overwrite else "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=properties(mark),
        )

    def knows_query(self, query: str) -> bool:
        table = self.open()
        return table is not None and done(table, BatchMark(query, -1)) is not None

    def file_names(self) -> set[str]:
        table = self.open()
        return set() if table is None else {PurePath(uri).name for uri in table.file_uris()}


def properties(mark: BatchMark | None) -> CommitProperties | None:
    """What a commit says beside its files."""
    from deltalake import CommitProperties, Transaction

    if mark is None:
        return None
    metadata = {"query": mark.query, "batch": mark.batch, "offsets": mark.offsets}
    return CommitProperties(custom_metadata={"ottla": metadata}, app_transactions=[Transaction(mark.query, mark.batch)])


def done(table: DeltaTable, mark: BatchMark) -> BatchMark | None:
    """The last batch of the mark's query in the table."""
    batch = table.transaction_version(mark.query)
    if batch is None:
        return None
    return BatchMark(mark.query, batch, offsets_of(table, mark) if batch == mark.batch else None)


def offsets_of(table: DeltaTable, mark: BatchMark) -> str | None:
    """What the commit of the batch says of its offsets; None if another connector made it, or the log is cut off."""
    for commit in table.history():
        said: Any = commit.get("ottla")
        if isinstance(said, dict) and (said.get("query"), said.get("batch")) == (mark.query, mark.batch):
            found = said.get("offsets")
            return None if found is None else str(found)
    return None


def schema_of(table: DeltaTable) -> StructType:
    """The table's columns as Spark has them; Delta writes them so."""
    return StructType.fromJson(json.loads(table.schema().to_json()))


def ensure_writable(table: DeltaTable, name: str) -> None:
    """TableError for what a table asks of its writers and this one does not do."""
    asked = set(table.protocol().writer_features or ()) - UNDERSTOOD
    settings = table.metadata().configuration
    asked |= {key for key in settings if key.startswith("delta.constraints.")}
    if settings.get("delta.columnMapping.mode", "none") != "none":
        asked.add("delta.columnMapping.mode")
    asked |= {key for field in schema_of(table).fields for key in field.metadata if key.startswith("delta.")}
    if asked:
        raise TableError(
            f"table {name} asks its writers for {', '.join(sorted(asked))}, which Ottla does not do; write to it with "
            "Delta's own connector, or to another table"
        )


def relative(path: str, folder: Path) -> str:
    """A file's path in the table."""
    return Path(path).relative_to(folder).as_posix()
