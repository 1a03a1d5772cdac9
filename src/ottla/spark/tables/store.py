"""The interface of tables for sink and reader, for both formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql.types import StructType

from ottla.spark.tables.guard import BatchMark


@dataclass(frozen=True)
class DataFile:
    """A Parquet file that a task wrote."""

    path: str
    size: int
    """Bytes."""
    rows: int
    partition: tuple[tuple[str, str | None], ...]
    """The partition's columns and values, in Delta's notation."""
    stats: str
    """The lowest and highest values and counts of nulls, in Delta's JSON format."""


@dataclass(frozen=True)
class FileLayout:
    """The layout of a table's files, sent to tasks."""

    data_folder: str
    schema: StructType
    """The columns of the rows, with the types of the table."""
    required: tuple[str, ...]
    """Columns that do not allow null."""
    partition_columns: tuple[str, ...]
    keeps_partition_columns: bool
    """True if files include the partition columns."""


class Store(Protocol):
    name: str

    def prepare(self, rows: StructType) -> FileLayout:
        """Create the table, or check that `rows` fit it."""

    def commit(self, files: Sequence[DataFile], rows: StructType, overwrite: bool, mark: BatchMark | None) -> bool:
        """Add `files` and `mark` in one commit; return False if the table already has that batch."""

    def has_query(self, query: str) -> bool:
        """Return True if the table has a batch of this query."""

    def file_names(self) -> set[str]:
        """Return the names of the files in the table, without folders; they are unique."""
