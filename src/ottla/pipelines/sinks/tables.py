"""`type: delta` and `type: iceberg`: tables, exactly once and without jars."""

from __future__ import annotations

from typing import ClassVar, Literal

from ottla.pipelines.model import Scalar
from ottla.pipelines.sinks.sink import Sink


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
