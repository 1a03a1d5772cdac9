"""Tables as batch sources: the files of one version, divided among tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from ottla.spark.failure import without_traceback
from ottla.spark.tables.errors import TableError
from ottla.spark.tables.filters import find_usable, for_arrow, for_iceberg

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.tables.delta_store import DeltaStore
    from ottla.spark.tables.iceberg_store import IcebergStore

F = TypeVar("F")

TASK_BYTES = 64 * 1024 * 1024
"""The approximate number of bytes that a task reads."""
OPENING_BYTES = 2 * 1024 * 1024
"""The minimum size with which a file is counted, because opening a file takes time too."""
BATCH_ROWS = 32_768


class Scan(Protocol):
    """The files of one version of a table."""

    schema: StructType

    def plan(self, filters: list[Filter]) -> list[InputPartition]: ...

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]: ...


class TableReader(DataSourceReader):
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        with without_traceback():
            return self.scan.plan(self.filters)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if type(partition) is InputPartition:  # an empty partition, which Spark creates if there is nothing to read
            return
        schema = to_arrow_schema(self.scan.schema, timezone="UTC")
        for batch in self.scan.read(partition):
            if batch.num_rows:
                yield batch.select(schema.names).cast(schema)


class FilteringTableReader(TableReader):
    """Reads less: Spark passes its filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep the usable filters. All are returned, for Spark to apply them exactly."""
        self.filters = find_usable(filters, self.scan.schema)
        return filters


class DeltaFiles(InputPartition):
    """Some files of a Delta table and the condition on their rows."""

    def __init__(self, fragments: list[Any], condition: Any) -> None:
        self.fragments, self.condition = fragments, condition


class DeltaScan:
    """A version of a Delta table. `deltalake` rejects deletion vectors and mapped columns with an error."""

    def __init__(self, store: DeltaStore, version: int | None) -> None:
        from deltalake.exceptions import DeltaError

        table = store.open(version)
        if table is None:
            raise TableError(f"there is no Delta table in {store.name}; write one, or correct the path")
        self.name, self.version, self.store = store.name, table.version(), store
        try:
            self.arrow = table.to_pyarrow_dataset().schema
        except DeltaError as error:
            raise TableError(f"table {self.name} cannot be read: {error}") from None
        self.schema = from_arrow_schema(self.arrow)

    def plan(self, filters: list[Filter]) -> list[InputPartition]:
        table = self.store.open(self.version)
        assert table is not None
        condition = for_arrow(filters, self.schema)
        fragments = list(table.to_pyarrow_dataset().get_fragments(filter=condition))
        sizes = [fragment.filesystem.get_file_info(fragment.path).size for fragment in fragments]
        return [DeltaFiles(group, condition) for group in pack_files(fragments, sizes)]

    def read(self, partition: DeltaFiles) -> Iterator[pa.RecordBatch]:
        for fragment in partition.fragments:
            yield from fragment.to_batches(schema=self.arrow, filter=partition.condition, batch_size=BATCH_ROWS)


class IcebergFiles(InputPartition):
    """Some files of an Iceberg table, with their delete files."""

    def __init__(self, tasks: list[Any]) -> None:
        self.tasks = tasks


class IcebergScan:
    """A snapshot of an Iceberg table."""

    def __init__(self, store: IcebergStore, snapshot: int | None) -> None:
        table = store.open()
        if table is None:
            raise TableError(f"there is no Iceberg table {store.name} in the catalog; write one, or correct the name")
        known = {found.snapshot_id for found in table.snapshots()}
        if snapshot is not None and snapshot not in known:
            raise TableError(f"table {store.name} has no snapshot {snapshot}; it has {sorted(known)}")
        now = table.current_snapshot()
        self.snapshot = snapshot if snapshot is not None else now.snapshot_id if now else None
        self.metadata, self.io = table.metadata, table.io
        self.condition: Any = for_iceberg([])
        self.schema = from_arrow_schema(self.scanned().projection().as_arrow())

    def scanned(self) -> Any:
        from pyiceberg.table import DataScan

        return DataScan(table_metadata=self.metadata, io=self.io, row_filter=self.condition, snapshot_id=self.snapshot)

    def plan(self, filters: list[Filter]) -> list[InputPartition]:
        if self.snapshot is None:
            return []
        self.condition = for_iceberg(filters)
        tasks = list(self.scanned().plan_files())
        return [IcebergFiles(group) for group in pack_files(tasks, [task.file.file_size_in_bytes for task in tasks])]

    def read(self, partition: IcebergFiles) -> Iterator[pa.RecordBatch]:
        from pyiceberg.io.pyarrow import ArrowScan

        scan = self.scanned()
        arrow = ArrowScan(self.metadata, self.io, scan.projection(), scan.row_filter)
        for task in partition.tasks:  # one by one, because pyiceberg reads all files of a call at once
            yield from arrow.to_record_batches([task])


def pack_files(files: Sequence[F], sizes: Sequence[int]) -> list[list[F]]:
    """Return the files in groups of about `TASK_BYTES`, in order."""
    groups: list[list[F]] = []
    room = 0
    for file, size in zip(files, sizes, strict=True):
        cost = max(size, OPENING_BYTES)
        if cost > room:
            groups.append([])
            room = TASK_BYTES
        groups[-1].append(file)
        room -= cost
    return groups
