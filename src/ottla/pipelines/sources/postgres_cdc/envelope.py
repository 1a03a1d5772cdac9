"""Changes as rows: in Debezium's envelope, or as the rows of the table themselves."""

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
"""What Debezium has in place of a long value that an update did not touch."""

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
"""A value from PostgreSQL's text, by the column that it is for."""


@dataclass(frozen=True)
class About:
    """What is known of a change besides its row."""

    op: str
    ts_ms: int
    snapshot: str
    xid: int | None
    lsn: int


@dataclass(frozen=True)
class Envelope:
    """How changes become rows."""

    table: Table
    schema: str
    name: str
    """Of the pipeline."""
    database: str
    is_whole: bool
    """Whether rows are Debezium's envelope, and not those of the table."""
    tombstones: bool
    version: str

    def columns(self) -> StructType:
        """The columns of the stream; what is beside the value comes last."""
        row = StructType([StructField(one.name, one.kind) for one in self.table.columns])
        fields = list(row.fields)
        if self.is_whole:
            fields = [StructField("before", row), StructField("after", row), StructField("source", SOURCE)]
            fields += [StructField("op", StringType()), StructField("ts_ms", LongType())]
        if self.table.key:
            fields.append(StructField(KEY, StructType([row[name] for name in self.table.key])))
        return StructType([*fields, StructField(TOMBSTONE, BooleanType())])

    def rows(self, about: About, before: Values | None, after: Values | None) -> Iterator[Out]:
        """What becomes of one change; a row that is gone is also a tombstone."""
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
        """A row of a change, its values parsed; columns that the table does not have any more are left out."""
        if row is None:
            return None
        kinds = {one.name: one.kind for one in self.table.columns}
        return {
            name: self.stand_in(kinds[name]) if value is UNCHANGED else None if value is None else parse(name, value)
            for name, value in row.items()
            if name in kinds
        }

    def stand_in(self, kind: Any) -> Any:
        """What is in place of a value that was not sent."""
        if not self.is_whole:
            return UNCHANGED
        return (
            UNAVAILABLE
            if isinstance(kind, StringType)
            else UNAVAILABLE.encode()
            if isinstance(kind, BinaryType)
            else None
        )


def about(change: Change) -> About:
    return About(change.op, change.begin.micros // 1000, "false", change.begin.xid, change.lsn)
