"""Converts changes to rows: in Debezium's envelope, or as rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from ottla.pipelines.databases.table import Table
from ottla.pipelines.rows import KEY, TOMBSTONE
from ottla.pipelines.sources.postgres_cdc.changes import Change
from ottla.pipelines.sources.postgres_cdc.pgoutput import UNCHANGED

UNAVAILABLE = "__debezium_unavailable_value"
"""Debezium's placeholder for a long value that an update did not change."""

SOURCE = StructType(
    [
        StructField("version", StringType()),
        StructField("connector", StringType()),
        StructField("name", StringType()),
        StructField("ts_ms", LongType()),
        StructField("snapshot", StringType()),
        StructField("db", StringType()),
        StructField("schema", StringType()),
        StructField("table", StringType()),
        StructField("txId", LongType()),
        StructField("lsn", LongType()),
    ]
)
Values = Mapping[str, Any]
Out = dict[str, Any]
Parse = Callable[[str, bytes], Any]
"""Converts PostgreSQL's text of a value, given the column."""


@dataclass(frozen=True)
class About:
    """The metadata of a change."""

    op: str
    ts_ms: int
    snapshot: str
    xid: int | None
    lsn: int


@dataclass(frozen=True)
class Envelope:
    """Converts changes to rows."""

    table: Table
    schema: str
    name: str
    """The name of the pipeline."""
    database: str
    is_whole: bool
    """True for rows in Debezium's envelope, False for rows of the table."""
    tombstones: bool
    version: str

    def columns(self) -> StructType:
        """Return the columns of the stream; metadata columns are last."""
        row = StructType([StructField(one.name, one.kind) for one in self.table.columns])
        fields = list(row.fields)
        if self.is_whole:
            fields = [StructField("before", row), StructField("after", row), StructField("source", SOURCE)]
            fields += [StructField("op", StringType()), StructField("ts_ms", LongType())]
        if self.table.key:
            fields.append(StructField(KEY, StructType([row[name] for name in self.table.key])))
        return StructType([*fields, StructField(TOMBSTONE, BooleanType())])

    def rows(self, about: About, before: Values | None, after: Values | None) -> Iterator[Out]:
        """Yield the rows of one change; a deleted row has a tombstone too."""
        key = self.key_of(after if after is not None else before)
        if self.is_whole:
            yield {**self.envelope(about, before, after), KEY: key, TOMBSTONE: False}
            if about.op == "d" and self.tombstones:
                yield {KEY: key, TOMBSTONE: True}
        elif after is None:
            yield {**(before or {}), KEY: key, TOMBSTONE: True}
        else:
            yield {**after, KEY: key, TOMBSTONE: False}

    def envelope(self, about: About, before: Values | None, after: Values | None) -> Out:
        source = {
            "version": self.version,
            "connector": "postgresql",
            "name": self.name,
            "ts_ms": about.ts_ms,
            "snapshot": about.snapshot,
            "db": self.database,
            "schema": self.schema,
            "table": self.table.name.rpartition(".")[2],
            "txId": about.xid,
            "lsn": about.lsn,
        }
        return {"before": before, "after": after, "source": source, "op": about.op, "ts_ms": about.ts_ms}

    def key_of(self, row: Values | None) -> Out | None:
        return None if row is None or not self.table.key else {name: row.get(name) for name in self.table.key}

    def values(self, row: Mapping[str, Any] | None, parse: Parse) -> Out | None:
        """Return a row of a change with its values parsed; columns that the table does not have any more are left out."""
        if row is None:
            return None
        kinds = {one.name: one.kind for one in self.table.columns}
        return {
            name: self.placeholder(kinds[name]) if value is UNCHANGED else None if value is None else parse(name, value)
            for name, value in row.items()
            if name in kinds
        }

    def placeholder(self, kind: Any) -> Any:
        """Return the placeholder for a value that was not sent."""
        if not self.is_whole:
            return UNCHANGED
        return (
            UNAVAILABLE
            if isinstance(kind, StringType)
            else UNAVAILABLE.encode()
            if isinstance(kind, BinaryType)
            else None
        )


def about_change(change: Change) -> About:
    return About(change.op, change.begin.micros // 1000, "false", change.begin.xid, change.lsn)
