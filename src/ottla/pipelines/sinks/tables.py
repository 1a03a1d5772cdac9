"""`type: delta` and `type: iceberg`: tables, exactly once and without jars."""

from __future__ import annotations

from typing import ClassVar, Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.model import Scalar
from ottla.pipelines.rows import beside
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.surroundings import How, Surroundings


class DeltaSink(Sink):
    """Rows are added to a Delta table, which is made where there is none."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["delta"]
    path: str
    """The folder of the table; relative to the pipeline file."""
    partition_by: list[str] = []
    """Columns that a new table is partitioned by."""
    merge_schema: bool = False
    """Whether columns that the table does not have are added to it."""
    options: dict[str, Scalar] = {}
    """More options of the format `ottla_delta`."""

    def describe(self) -> str:
        return f"Delta table {self.path}"

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        writer = how.writer(frame.drop(*beside(frame))).format("ottla_delta")
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        return writer.options(**options).start(around.path(self.path))


class IcebergSink(Sink):
    """Rows are added to an Iceberg table, which is made where there is none."""

    guarantee: ClassVar[str] = "exactly once"
    type: Literal["iceberg"]
    table: str
    """`namespace.table`."""
    warehouse: str | None = None
    """The folder of the tables; relative to the pipeline file."""
    partition_by: list[str] = []
    """Columns that a new table is partitioned by."""
    merge_schema: bool = False
    """Whether columns that the table does not have are added to it."""
    options: dict[str, Scalar] = {}
    """More options of the format `ottla_iceberg`, such as `catalog.uri`."""

    def describe(self) -> str:
        return f"Iceberg table {self.table}"

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        writer = how.writer(frame.drop(*beside(frame))).format("ottla_iceberg")
        options = table_options(self.partition_by, self.merge_schema) | around.options(self.options)
        if self.warehouse is not None:
            options["warehouse"] = around.path(self.warehouse)
        return writer.options(**options).start(self.table)


def table_options(partition_by: list[str], merge_schema: bool) -> dict[str, str]:
    """What both formats take."""
    columns = {"partitionBy": ",".join(partition_by)} if partition_by else {}
    return columns | ({"mergeSchema": "true"} if merge_schema else {})
