"""What sink and reader ask of a table, whichever format it has."""

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
    """The partition's columns and values, as Delta writes them."""
    stats: str
    """Smallest and largest values and counts of nulls, as Delta writes them: JSON."""


@dataclass(frozen=True)
class FileLayout:
    """How files of a table are to be written; what tasks are told."""

    data_folder: str
    schema: StructType
    """The columns of the rows, in the types of the table."""
    required: tuple[str, ...]
    """Columns that may not be null."""
    partition_columns: tuple[str, ...]
    keeps_partition_columns: bool
    """Whether files have the columns that are the same in all of their rows."""


class Store(Protocol):
    name: str

    def prepare(self, rows: StructType) -> FileLayout:
        """Make the table, or see that `rows` fit it."""

    def commit(self, files: Sequence[DataFile], rows: StructType, overwrite: bool, mark: BatchMark | None) -> bool:
        """Add `files` in one commit, and `mark` with them; False if the table has that batch already."""

    def knows_query(self, query: str) -> bool:
        """Return True if the table remembers a batch of this query."""

    def file_names(self) -> set[str]:
        """The names of the files in the table, without their folders: no two have the same."""
