"""`type: delta` and `type: iceberg`: tables, exactly once and without jars."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.errors import ConfigError
from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.model import NameList, Scalar
from ottla.pipelines.rows import beside, known, values
from ottla.pipelines.sinks.delta_upserts import DeltaUpserts
from ottla.pipelines.sinks.missing_values import without_bad_rows
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.upserts import upserts
from ottla.pipelines.surroundings import How, Surroundings
from ottla.pipelines.under_way import under_way
from ottla.spark.sink.write_stream import query_of
from ottla.spark.tables.delta_store import DeltaStore
from ottla.spark.tables.errors import TableError
from ottla.spark.tables.iceberg_store import IcebergStore
from ottla.spark.tables.options import DeltaOptions, IcebergOptions, local_folder, read_table_options
from ottla.spark.tables.store import Store


class DeltaSink(Sink):
    """Rows are added to a Delta table, which is made where there is none; or with `key` they take the place of others."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["delta"]
    path: str
    """The folder of the table; relative to the pipeline file."""
    partition_by: NameList = []
    """Columns that a new table is partitioned by."""
    merge_schema: bool = False
    """Whether columns that the table does not have are added to it."""
    key: NameList = []
    """Columns by which a row takes the place of the one that is there; of several in a batch the last counts."""
    delete_enabled: bool = Field(default=False, alias="delete.enabled")
    """Whether a tombstone deletes the row of its key."""
    options: dict[str, Scalar] = {}
    """More options of the format `ottla_delta`."""

    @field_validator("path")
    @classmethod
    def path_is_a_folder(cls, path: str) -> str:
        return checked_folder("path", path)

    @model_validator(mode="after")
    def deletions_have_a_key(self) -> DeltaSink:
        if self.delete_enabled and not self.key:
            raise ValueError("delete.enabled needs key, the columns by which rows are told apart")
        return self

    def describe(self) -> str:
        return f"Delta table {self.path}"

    def check(self, frame: DataFrame, around: Surroundings) -> None:
        known(values(frame), self.key)

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        if self.key:
            return self.start_upserts(frame, around, how)
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        rows = frame.drop(*beside(frame))
        if around.letters is not None:
            store = DeltaStore(read_table_options(DeltaOptions, {**options, "path": around.path(self.path)}))
            rows = tolerated(rows, store, around.letters)
        writer = how.writer(rows).format("ottla_delta")
        return writer.options(**options).start(around.path(self.path))

    def start_upserts(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        store = DeltaStore(read_table_options(DeltaOptions, {**options, "path": around.path(self.path)}))
        to = DeltaUpserts(store, tuple(self.key), how.checkpoint, around.letters)
        rows = upserts(frame, self.key, self.delete_enabled)

        def write(batch: DataFrame, number: int) -> None:
            with under_way():
                how.count_dead_letters(to.write(batch, number, query_of(how.checkpoint)))

        return how.writer(rows).foreachBatch(write).start()


class IcebergSink(Sink):
    """Rows are added to an Iceberg table, which is made where there is none."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["iceberg"]
    table: str
    """`namespace.table`."""
    warehouse: str | None = None
    """The folder of the tables; relative to the pipeline file."""
    partition_by: NameList = []
    """Columns that a new table is partitioned by."""
    merge_schema: bool = False
    """Whether columns that the table does not have are added to it."""
    options: dict[str, Scalar] = {}
    """More options of the format `ottla_iceberg`, such as `catalog.uri`."""

    @field_validator("warehouse")
    @classmethod
    def warehouse_is_a_folder(cls, path: str | None) -> str | None:
        return None if path is None else checked_folder("warehouse", path)

    def describe(self) -> str:
        return f"Iceberg table {self.table}"

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        if self.warehouse is not None:
            options["warehouse"] = around.path(self.warehouse)
        rows = frame.drop(*beside(frame))
        if around.letters is not None:
            store = IcebergStore(read_table_options(IcebergOptions, {**options, "path": self.table}))
            rows = tolerated(rows, store, around.letters)
        writer = how.writer(rows).format("ottla_iceberg")
        return writer.options(**options).start(self.table)


def tolerated(rows: DataFrame, store: Store, letters: DeadLetterTopic) -> DataFrame:
    """Return the stream without the rows that lack a column that the table requires, which are put aside."""
    try:
        required = store.prepare(rows.schema).required
    except TableError:  # which the query reports
        return rows
    return without_bad_rows(rows, store.name, required, letters) if required else rows


def checked_folder(key: str, path: str) -> str:
    """Return the path; ValueError where it is an address of anything but a folder, such as s3://bucket/table."""
    if not path.startswith("${"):
        try:
            local_folder(key, path)
        except ConfigError:
            raise ValueError(
                f"{key} = {path!r}: tables are written to a folder of this machine, or one that it mounts; name one, or use type: spark "
                "with a format of Spark's that reaches it, such as delta with its jars"
            ) from None
    return path


def table_options(partition_by: list[str], merge_schema: bool) -> dict[str, str]:
    """What both formats take."""
    columns = {"partitionBy": ",".join(partition_by)} if partition_by else {}
    return columns | ({"mergeSchema": "true"} if merge_schema else {})
