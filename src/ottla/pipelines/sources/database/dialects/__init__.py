"""The dialects of databases: the SQL to find the next rows of a table, and to know when no more can appear before them."""

from __future__ import annotations

from ottla.pipelines.databases.database import Kind
from ottla.pipelines.sources.database.dialects.dialect import Dialect
from ottla.pipelines.sources.database.dialects.mysql import MysqlDialect
from ottla.pipelines.sources.database.dialects.postgresql import PostgresqlDialect
from ottla.pipelines.sources.database.dialects.sqlite import SqliteDialect

DIALECTS: dict[Kind, Dialect] = {
    "sqlite": SqliteDialect(),
    "postgresql": PostgresqlDialect(),
    "mysql": MysqlDialect(),
}

__all__ = ["DIALECTS", "Dialect"]
