"""`type: delta` and `type: iceberg`: tables, exactly once and without jars."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.errors import ConfigError
from ottla.pipelines.model import NameList, Scalar
from ottla.pipelines.rows import beside, known, values
from ottla.pipelines.sinks.delta_upserts import DeltaUpserts
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.upserts import upserts
from ottla.pipelines.surroundings import How, Surroundings
from ottla.pipelines.under_way import under_way
from ottla.spark.sink.write_stream import query_of
from ottla.spark.tables.delta_store import DeltaStore
from ottla.spark.tables.options import DeltaOptions, local_folder, read_table_options


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
        writer = how.writer(frame.drop(*beside(frame))).format("ottla_delta")
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        return writer.options(**options).start(around.path(self.path))

    def start_upserts(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        store = DeltaStore(read_table_options(DeltaOptions, {**options, "path": around.path(self.path)}))
        to = DeltaUpserts(store, tuple(self.key), how.checkpoint)
        rows = upserts(frame, self.key, self.delete_enabled)

        def write(batch: DataFrame, number: int) -> None:
            with under_way():
                to.write(batch, number, query_of(how.checkpoint))

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
        writer = how.writer(frame.drop(*beside(frame))).format("ottla_iceberg")
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        if self.warehouse is not None:
            options["warehouse"] = around.path(self.warehouse)
        return writer.options(**options).start(self.table)


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
