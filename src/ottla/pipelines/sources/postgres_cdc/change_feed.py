"""A table's rows as they are, and then each change of them, without a gap and without a row twice.

The slot keeps what is not in the sink yet: it is read without being moved, and moved on when Spark says that a batch is done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from ottla.errors import ConfigError
from ottla.pipelines.databases.arrow_rows import array_of
from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.databases.table import differences
from ottla.pipelines.feeds.feed import Position, Write
from ottla.pipelines.sources.postgres_cdc.changes import Change, Changes
from ottla.pipelines.sources.postgres_cdc.envelope import About, Envelope, Out, about
from ottla.pipelines.sources.postgres_cdc.pgoutput import UNCHANGED, Message, decode
from ottla.pipelines.sources.postgres_cdc.slot import Slot

CHUNK = 5000
INTENT = "replication.json"
"""Beside the checkpoint: which slot was made for the pipeline."""
IDLE_BYTES = 16 * 1024 * 1024
"""How much log of other tables the server keeps for nothing before the slot is moved past it."""

TYPES: dict[type[DataType], str] = {
    ShortType: "int2",
    IntegerType: "int4",
    LongType: "int8",
    FloatType: "float4",
    DoubleType: "float8",
    BooleanType: "bool",
    BinaryType: "bytea",
    DateType: "date",
    DecimalType: "numeric",
    TimestampNTZType: "timestamp",
    TimestampType: "timestamptz",
}
"""By what a value's text is parsed; all other types are text."""


class ChangeFeed:
    """The changes of one table."""

    goes_ahead = False  # it reads from where the slot stands, which is moved when rows are in the sink

    def __init__(self, slot: Slot, envelope: Envelope, home: Path, most: int) -> None:
        self.slot, self.envelope, self.home = slot, envelope, home
        self.most = self.portion = most
        self._connection: Any = None
        self._is_frozen = False
        self._end: int | None = None

    def poll(self, position: Position | None, write: Write) -> Position | None:
        try:
            with self.slot.database.telling():
                connection = self._connected()
                if position is None:
                    return self._snapshot(connection, write)
                return self._changes(connection, position, write)
        except DatabaseError:
            self.close()  # the next attempt has a connection of its own
            raise

    def settle(self, position: Position | None) -> None:
        if position is None:
            return
        try:
            with self.slot.database.telling():
                connection = self._connected()
                self.slot.wait_until_free(connection)
                self.slot.advance(connection, int(position["lsn"]))
        except DatabaseError:
            self.close()
            raise

    def freeze(self) -> None:
        self._is_frozen = True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> Any:
        self._connection = self._connection or self.slot.database.open()
        return self._connection

    def _snapshot(self, connection: Any, write: Write) -> Position:
        """All rows as they are when the slot is made."""
        self.slot.check(connection)
        self._make_way(connection)
        self.slot.ensure_publication(connection)
        table = self.envelope.table
        query = f"select {self.slot.database.selected(table)} from {self.slot.database.quoted(table.name)}"
        names = [one.name for one in table.columns]
        with self.slot.made() as made, connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            connection.execute(f"set transaction snapshot '{made.snapshot}'")
            self._check_columns(connection)
            told = About("r", int(time.time() * 1000), "true", None, made.lsn)
            for chunk in self.slot.database.rows(connection, query, ()):
                rows = [dict(zip(names, values, strict=True)) for values in chunk]
                self._write([each for row in rows for each in self.envelope.rows(told, None, row)], write)
            return {"lsn": made.lsn, "slot": self.slot.name}

    def _make_way(self, connection: Any) -> None:
        """Drop a slot of ours that was made and never used; ConfigError where it is another's."""
        intent = self.home / INTENT
        if self.slot.confirmed(connection) is not None:
            known = json.loads(intent.read_text("utf-8")) if intent.exists() else {}
            if known.get("slot") != self.slot.name:
                raise ConfigError(
                    f"slot {self.slot.name} is there already and was not made for this pipeline: if nobody reads it any more, "
                    f"drop it with `select pg_drop_replication_slot('{self.slot.name}')`, or set another slot.name"
                )
            self.slot.wait_until_free(connection)
            self.slot.drop(connection)
        self.home.mkdir(parents=True, exist_ok=True)
        intent.write_text(json.dumps({"slot": self.slot.name, "publication": self.slot.publication}), "utf-8")

    def _changes(self, connection: Any, position: Position, write: Write) -> Position:
        """What has happened since."""
        lsn = int(position["lsn"])
        confirmed = self.slot.confirmed(connection)
        if confirmed is None:
            raise DatabaseError(
                f"slot {self.slot.name} is gone, and with it what has happened since; begin anew under another name, with a new snapshot"
            )
        if confirmed > lsn:
            raise DatabaseError(
                f"slot {self.slot.name} was moved on past the checkpoint, which is an old copy: changes in between are gone; restore "
                "the newest one, or begin anew under another name"
            )
        self.slot.wait_until_free(connection)
        flushed = self.slot.flushed(connection)
        if self._is_frozen:
            self._end = self._end or flushed
            if lsn >= self._end:
                return position
        envelope = self.envelope
        changes = Changes(envelope.schema, envelope.table.name.rpartition(".")[2], envelope.table.key, lsn)
        messages = self._messages(connection)
        try:
            for chunk in chunks(changes.of(messages), CHUNK):
                self._write(self._rows(connection, chunk), write)
        finally:
            self._check_columns(connection)  # says it best also where a value did not fit
        if changes.end is not None and changes.end > lsn:
            return {**position, "lsn": changes.end}
        return {**position, "lsn": flushed} if flushed - lsn > IDLE_BYTES else position

    def _messages(self, connection: Any) -> Iterator[tuple[int, Message]]:
        for lsn, data in self.slot.peek(connection, self.most, self._end):
            yield lsn, decode(data)

    def _rows(self, connection: Any, changes: Sequence[Change]) -> list[Out]:
        """The rows of some changes."""
        envelope, found = self.envelope, list[Out]()
        for change in changes:
            if change.op == "t" and not envelope.is_whole:
                raise DatabaseError(
                    f"table {envelope.table.name} was emptied by TRUNCATE, which its rows cannot say; begin anew under another name, or "
                    "with envelope: true, where it is a change"
                )
            before, after = (envelope.values(row, self._parse) for row in (change.before, change.after))
            found += envelope.rows(about(change), before, after)
        self._fill(connection, found)
        return found

    def _fill(self, connection: Any, rows: Sequence[Out]) -> None:
        """Put what the table has now in place of long values that were not sent; a later change corrects what is too new."""
        database, table = self.slot.database, self.envelope.table
        for row in rows:
            names = [name for name, value in row.items() if value is UNCHANGED]
            if names:
                wanted = database.selected(table.of(names))
                where = " and ".join(f"{database.identifier(name)}::text = %s" for name in table.key)
                query = f"select {wanted} from {database.quoted(table.name)} where {where}"
                found = (
                    connection.execute(query, [str(row[name]) for name in table.key]).fetchone() if table.key else None
                )
                row.update(zip(names, found or [None] * len(names), strict=True))

    def _parse(self, name: str, data: bytes) -> Any:
        """A value from its text."""
        if self._parsers is None:
            self._parsers = parsers(self._connected(), self.envelope)
        return self._parsers[name](data)

    _parsers: Any = None

    def _write(self, rows: Sequence[Out], write: Write) -> None:
        schema = to_arrow_schema(self.envelope.columns(), timezone="UTC")
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            arrays = [
                array_of(self.envelope.table.name, field, [row.get(field.name) for row in part]) for field in schema
            ]
            write(pa.RecordBatch.from_arrays(arrays, schema=schema))

    def _check_columns(self, connection: Any) -> None:
        """DatabaseError where the table is not what it was; asked after the changes, so that none of them has columns unseen."""
        now = self.slot.database.table(connection, self.envelope.table.name)
        for change in differences(self.envelope.table, now):
            raise DatabaseError(
                f"table {now.name} {change}; run the pipeline again, which goes on where it was with the columns that are there"
            )


def parsers(connection: Any, envelope: Envelope) -> dict[str, Any]:
    """What makes a value of each column from its text, as a query would have it."""
    from psycopg.adapt import Transformer
    from psycopg.pq import Format

    found: dict[str, Any] = {}
    transformer = Transformer.from_context(connection)
    for column in envelope.table.columns:
        kind = None if column.as_text else TYPES.get(type(column.kind))
        if kind is None:
            found[column.name] = lambda data: data.decode()
        else:
            found[column.name] = transformer.get_loader(connection.adapters.types[kind].oid, Format.TEXT).load
    return found


def chunks(changes: Iterator[Change], size: int) -> Iterator[list[Change]]:
    """So many at a time."""
    chunk: list[Change] = []
    for one in changes:
        chunk.append(one)
        if len(chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
