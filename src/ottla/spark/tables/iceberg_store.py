"""An Iceberg table, with `pyiceberg`: its catalog, and commits to it.

A batch's mark is a property of the table, set in the commit that adds the batch's files, so it outlives the snapshot;
the snapshot's summary has the same for information. A commit fails if the table was changed since it was opened. So of
two concurrent writers that both find a batch due, only one commits. (pyiceberg's own retry of a commit would not check
the mark again, and is disabled.)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

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
from ottla.spark.tables.options import IcebergOptions, local_folder
from ottla.spark.tables.store import DataFile, FileLayout

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

PROPERTY = "ottla.query."


class IcebergStore:
    """A table of a catalog."""

    def __init__(self, options: IcebergOptions) -> None:
        with require_package("pyiceberg", "ottla_iceberg"):
            import pyiceberg.catalog  # noqa: F401
        self.options = options
        self.name = options.path
        self._settings = options.catalog_settings()

    def catalog(self) -> Catalog:
        """Return the catalog; TableError if its settings are not valid."""
        from pyiceberg.catalog import load_catalog

        if self.options.warehouse is not None:
            local_folder("warehouse", self.options.warehouse).mkdir(parents=True, exist_ok=True)
        try:
            return load_catalog(self.options.catalog_name, **self._settings)
        except Exception as error:
            raise TableError(
                f"the Iceberg catalog {self.options.catalog_name!r} cannot be opened ({error}); "
                "set the option warehouse to a folder, or catalog.type and catalog.uri"
            ) from None

    def open(self) -> Table | None:
        """Return the current table; None if there is none."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self.catalog().load_table(self.name)
        except NoSuchTableError:
            return None

    def prepare(self, rows: StructType) -> FileLayout:
        table = self.open() or self.create(rows)
        self.check(table, rows)
        return FileLayout(
            data_folder=str(local_folder("the table's location", table.location()) / "data"),
            schema=merge_columns(table_schema(rows, widen=True), schema_of(table), self.options.merge_schema),
            required=tuple(field.name for field in table.schema().fields if field.required),
            partition_columns=partition_columns(table),
            keeps_partition_columns=True,
        )

    def create(self, rows: StructType) -> Table:
        """Create a table for such rows, and its namespace, unless another process does so at the same time."""
        from pyiceberg.exceptions import TableAlreadyExistsError

        ensure_columns(self.options.partition_by, rows)
        schema = table_schema(rows, widen=True)
        catalog = self.catalog()
        namespace = self.name.rpartition(".")[0]
        if not namespace:
            raise TableError(f"an Iceberg table is named namespace.table; {self.name!r} is not")
        try:
            catalog.create_namespace_if_not_exists(namespace)
            arrow = to_arrow_schema(schema, timezone="UTC")
            with catalog.create_table_transaction(self.name, arrow) as change, change.update_spec() as spec:
                for column in self.options.partition_by:
                    spec.add_identity(column)
        except TableAlreadyExistsError:
            pass
        except (ValueError, TypeError) as error:
            raise TableError(
                f"table {self.name} cannot be created for rows of {schema.simpleString()}: {error}"
            ) from None
        return catalog.load_table(self.name)

    def check(self, table: Table, rows: StructType) -> None:
        """Raise TableError if the rows or this writer do not fit the table."""
        ensure_partitioned(self.options.partition_by, partition_columns(table), self.name)
        ensure_fits(table_schema(rows, widen=True), schema_of(table), self.name, self.options.merge_schema)

    def add_columns(self, table: Table, rows: StructType) -> Table:
        """Return the table after adding the new columns of `rows`, and widening its types for them."""
        there, merge = schema_of(table), self.options.merge_schema
        schema = table_schema(rows, widen=True)
        if not ensure_fits(schema, there, self.name, merge) and not to_widen(schema, there, merge):
            return table
        schema = merge_columns(schema, there, merge)
        with table.update_schema() as change:
            change.union_by_name(to_arrow_schema(schema, timezone="UTC"))
        return table.refresh()

    def commit(self, files: Sequence[DataFile], rows: StructType, overwrite: bool, mark: BatchMark | None) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        def add_all(table: Table) -> None:
            table = self.add_columns(table, rows)
            self.check(table, rows)
            add(table, files, overwrite, mark)

        # A writer that has committed this batch meanwhile has deleted the files of this attempt as leftovers.
        lost_race = (CommitFailedException, FileNotFoundError)
        return commit_once(self.name, self.open, last_batch_of, add_all, lost_race, mark)

    def has_query(self, query: str) -> bool:
        table = self.open()
        return table is not None and last_batch_of(table, BatchMark(query, -1)) is not None

    def file_names(self) -> set[str]:
        table = self.open()
        return set() if table is None else {PurePath(task.file.file_path).name for task in table.scan().plan_files()}


def add(table: Table, files: Sequence[DataFile], overwrite: bool, mark: BatchMark | None) -> None:
    from pyiceberg.expressions import AlwaysTrue

    table.metadata.properties["commit.retry.num-retries"] = "0"
    for name in without_bounds(files):
        table.metadata.properties[f"write.metadata.metrics.column.{name}"] = "counts"
    properties: dict[str, str] = {}
    with table.transaction() as change:
        if mark is not None:
            properties = {"ottla.query-id": mark.query, "ottla.batch-id": str(mark.batch)}
            change.set_properties({PROPERTY + mark.query: f"{mark.batch} {mark.offsets or ''}".strip()})
        if overwrite and table.current_snapshot() is not None:
            change.delete(AlwaysTrue(), snapshot_properties=properties)
        if files:
            paths = [f"file://{file.path}" for file in files]
            change.add_files(paths, snapshot_properties=properties, check_duplicate_files=False)


def without_bounds(files: Sequence[DataFile]) -> set[str]:
    """Return the columns with times outside of the years 1 to 9999: pyiceberg cannot compute their bounds and would fail."""
    import pyarrow.parquet as pq

    found: set[str] = set()
    for file in files:
        footer = pq.read_metadata(file.path)
        for group in map(footer.row_group, range(footer.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                try:
                    stats: Any = column.statistics if column.is_stats_set else None
                    _ = stats and (stats.min, stats.max)
                except (OverflowError, ValueError):
                    found.add(column.path_in_schema.replace(".list.element", ".element").replace(".key_value.", "."))
    return found


def last_batch_of(table: Table, mark: BatchMark) -> BatchMark | None:
    """Return the last batch of the mark's query in the table."""
    value = table.properties.get(PROPERTY + mark.query)
    if value is None:
        return None
    batch, _, offsets = value.partition(" ")
    return BatchMark(mark.query, int(batch), offsets or None)


def schema_of(table: Table) -> StructType:
    """Return the table's columns as Spark's types."""
    return from_arrow_schema(table.schema().as_arrow())


def partition_columns(table: Table) -> tuple[str, ...]:
    """Return the partition columns; TableError if the table is partitioned by transforms of columns."""
    from pyiceberg.transforms import IdentityTransform

    spec = table.spec()
    for part in spec.fields:
        if not isinstance(part.transform, IdentityTransform):
            raise TableError(
                f"table {'.'.join(table.name())} is partitioned by {part.transform} of a column, and Ottla only supports "
                "identity transforms; write to another table"
            )
    return tuple(table.schema().find_column_name(part.source_id) or "" for part in spec.fields)
