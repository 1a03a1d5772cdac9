"""Rows that are only added, into PostgreSQL by COPY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.pipelines.databases.copying import copy_in
from ottla.pipelines.sinks.database.statements import Statements


@dataclass(frozen=True)
class CopiedRows:
    """Straight into their table."""

    connection: Any
    statements: Statements
    as_it_is: bool
    """Whether the bytes of the values are what the columns have."""

    def add(self, rows: pa.RecordBatch) -> None:
        copy_in(self.connection, self.statements.target(), rows.select(list(self.statements.columns)), self.as_it_is)

    def finish(self) -> None:
        """There is nothing left to do."""
