"""`type: delta` and `type: iceberg`: tables, written exactly once and without jars."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.errors import ConfigError
from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.model import NameList, Scalar
from ottla.pipelines.native_writes import native_write
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings
from ottla.pipelines.rows import checked_names, metadata_columns, values
from ottla.pipelines.sinks.delta_upserts import DeltaUpserts
from ottla.pipelines.sinks.missing_values import without_bad_rows
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.sinks.upserts import upserts
from ottla.spark.sink.write_stream import query_of
from ottla.spark.tables.delta_store import DeltaStore
from ottla.spark.tables.errors import SchemaMismatchError, TableError
from ottla.spark.tables.iceberg_store import IcebergStore
from ottla.spark.tables.options import DeltaOptions, IcebergOptions, local_folder, read_table_options
from ottla.spark.tables.store import Store


class DeltaSink(Sink):
    """Rows are appended to a Delta table, which is created if it does not exist; with `key` they replace rows of the same key."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["delta"]
    path: str
    """The folder of the table, relative to the pipeline file."""
    partition_by: NameList = []
    """The partition columns of a new table."""
    merge_schema: bool = False
    """Add columns that the table does not have."""
    key: NameList = []
    """The columns that identify a row; a row replaces the row with the same key, and the last one of a batch is kept."""
    delete_enabled: bool = Field(default=False, alias="delete.enabled")
    """A tombstone deletes the row with its key."""
    options: dict[str, Scalar] = {}
    """More options of the format `ottla_delta`."""

    @field_validator("path")
    @classmethod
    def path_is_a_folder(cls, path: str) -> str:
        return checked_folder("path", path)

    @model_validator(mode="after")
    def deletions_have_a_key(self) -> DeltaSink:
        if self.delete_enabled and not self.key:
            raise ValueError("delete.enabled needs key, the columns that identify a row")
        return self

    def describe(self) -> str:
        return f"Delta table {self.path}"

    def check(self, frame: DataFrame, context: PipelineContext) -> None:
        checked_names(values(frame), self.key)
        check_columns(self.store(context), frame)

    def store(self, context: PipelineContext) -> DeltaStore:
        options = table_options(self.partition_by, self.merge_schema) | context.options(self.options)
        return DeltaStore(read_table_options(DeltaOptions, {**options, "path": context.path(self.path)}))

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        if self.key:
            return self.start_upserts(frame, context, query_settings)
        options = table_options(self.partition_by, self.merge_schema) | context.options(self.options)
        rows = frame.drop(*metadata_columns(frame))
        if context.dead_letters is not None:
            rows = drop_incomplete_rows(rows, self.store(context), context.dead_letters)
        writer = query_settings.writer(rows).format("ottla_delta")
        return writer.options(**options).start(context.path(self.path))

    def start_upserts(
        self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings
    ) -> StreamingQuery:
        to = DeltaUpserts(self.store(context), tuple(self.key), query_settings.checkpoint, context.dead_letters)
        rows = upserts(frame, self.key, self.delete_enabled)

        def write(batch: DataFrame, number: int) -> None:
            with native_write():
                query_settings.count_dead_letters(to.write(batch, number, query_of(query_settings.checkpoint)))

        return query_settings.writer(rows).foreachBatch(write).start()


class IcebergSink(Sink):
    """Rows are appended to an Iceberg table, which is created if it does not exist."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["iceberg"]
    table: str
    """`namespace.table`."""
    warehouse: str | None = None
    """The folder of the tables, relative to the pipeline file."""
    partition_by: NameList = []
    """The partition columns of a new table."""
    merge_schema: bool = False
    """Add columns that the table does not have."""
    options: dict[str, Scalar] = {}
    """More options of the format `ottla_iceberg`, for example `catalog.uri`."""

    @field_validator("warehouse")
    @classmethod
    def warehouse_is_a_folder(cls, path: str | None) -> str | None:
        return None if path is None else checked_folder("warehouse", path)

    def describe(self) -> str:
        return f"Iceberg table {self.table}"

    def check(self, frame: DataFrame, context: PipelineContext) -> None:
        check_columns(self.store(context), frame)

    def writing_options(self, context: PipelineContext) -> dict[str, str]:
        """Return the options of the format."""
        options = table_options(self.partition_by, self.merge_schema) | context.options(self.options)
        return options if self.warehouse is None else {**options, "warehouse": context.path(self.warehouse)}

    def store(self, context: PipelineContext) -> IcebergStore:
        return IcebergStore(read_table_options(IcebergOptions, {**self.writing_options(context), "path": self.table}))

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        options = self.writing_options(context)
        rows = frame.drop(*metadata_columns(frame))
        if context.dead_letters is not None:
            rows = drop_incomplete_rows(rows, self.store(context), context.dead_letters)
        writer = query_settings.writer(rows).format("ottla_iceberg")
        return writer.options(**options).start(self.table)


def check_columns(store: DeltaStore | IcebergStore, frame: DataFrame) -> None:
    """Raise SchemaMismatchError if an existing table cannot have these rows. Other errors are reported by the query."""
    rows = frame.drop(*metadata_columns(frame)).schema
    try:
        if isinstance(store, DeltaStore):
            if (delta := store.open()) is not None:
                store.check(delta, rows)
        elif (iceberg := store.open()) is not None:
            store.check(iceberg, rows)
    except SchemaMismatchError:
        raise
    except TableError:
        return


def drop_incomplete_rows(rows: DataFrame, store: Store, dead_letters: DeadLetterTopic) -> DataFrame:
    """Return the stream without the rows that lack a column required by the table; these are put aside."""
    try:
        required = store.prepare(rows.schema).required
    except TableError:  # reported by the query
        return rows
    return without_bad_rows(rows, store.name, required, dead_letters) if required else rows


def checked_folder(key: str, path: str) -> str:
    """Return the path; ValueError if it is not a local folder, for instance s3://bucket/table."""
    if not path.startswith("${"):
        try:
            local_folder(key, path)
        except ConfigError:
            raise ValueError(
                f"{key} = {path!r}: tables are written to a folder of this machine, or a mounted one; choose one, or use type: spark "
                "with a format of Spark that supports it, such as delta with its jars"
            ) from None
    return path


def table_options(partition_by: list[str], merge_schema: bool) -> dict[str, str]:
    """Return the options of both formats."""
    columns = {"partitionBy": ",".join(partition_by)} if partition_by else {}
    return columns | ({"mergeSchema": "true"} if merge_schema else {})
