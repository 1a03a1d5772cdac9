"""A table's rows as they are, and then each change of them, without a gap and without a row twice.

The slot keeps what is not in the sink yet: it is read without being moved, and moved on when Spark says that a batch is done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from ottla.pipelines.databases.arrow_rows import UNFIT, arrow_of
from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.databases.table import differences
from ottla.pipelines.dead_letters import BadRow, BadRowError, BadRows, DeadLetterTopic, shown
from ottla.pipelines.feeds.feed import Position, Write
from ottla.pipelines.sources.postgres_cdc.captured import Captured
from ottla.pipelines.sources.postgres_cdc.changes import Change, Changes, Row
from ottla.pipelines.sources.postgres_cdc.envelope import About, Envelope, Out, about
from ottla.pipelines.sources.postgres_cdc.pgoutput import UNCHANGED, Message, Value, decode
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

    def __init__(
        self,
        slot: Slot,
        captured: Captured,
        envelope: Envelope,
        home: Path,
        most: int,
        letters: DeadLetterTopic | None = None,
    ) -> None:
        self.bad_rows = BadRows(letters)
        self.slot, self.captured, self.envelope, self.home = slot, captured, envelope, home
        self.most = self.portion = most
        self._connection: Any = None
        self._is_frozen = False
        self._end: int | None = None

    @property
    def dead_letters(self) -> int:
        return self.bad_rows.count

    def poll(self, position: Position | None, write: Write) -> Position | None:
        try:
            with self.slot.database.telling():
                connection = self._connected()
                self.bad_rows.begin()
                if position is None:
                    after = self._snapshot(connection, write)
                else:
                    after = self._changes(connection, position, write)
                self.bad_rows.send()
                return after
        except (DatabaseError, BadRowError):
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
        """Write all rows that the publication sends, as they are when the slot is made."""
        database = self.slot.database
        self.slot.check(connection)
        self._make_way(connection)
        self.slot.ensure_publication(connection)
        with self.slot.made() as made, connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            connection.execute(f"set transaction snapshot '{made.snapshot}'")
            connection.execute("set local row_security = off")  # an error, where a policy would leave out rows
            captured = self.slot.captured(connection)
            self._check_columns(captured)
            captured.ensure_published()
            query = f"select {database.selected(captured.table)} from {captured.source(database)}"
            if captured.publication is not None and captured.publication.row_filter is not None:
                query += f" where {captured.publication.row_filter}"
            names = [one.name for one in captured.table.columns]
            read_at = About("r", int(time.time() * 1000), "true", None, made.lsn)
            for chunk in database.rows(connection, query, None):
                rows = [dict(zip(names, values, strict=True)) for values in chunk]
                self._write([each for row in rows for each in self.envelope.rows(read_at, None, row)], write)
            return {"lsn": made.lsn, "slot": self.slot.name, "table": captured.mark()}

    def _make_way(self, connection: Any) -> None:
        """Drop a slot of ours that was made and never used; ConfigError where it is another's."""
        if self.slot.confirmed(connection) is not None:
            if read_intent(self.home).get("slot") != self.slot.name:
                raise ConfigError(
                    f"slot {self.slot.name} is there already and was not made for this pipeline: if nobody reads it any more, "
                    f"drop it with `select pg_drop_replication_slot('{self.slot.name}')`, or set another slot.name"
                )
            self.slot.wait_until_free(connection)
            self.slot.drop(connection)
        self.home.mkdir(parents=True, exist_ok=True)
        self._write_intent({})

    def _write_intent(self, table: Mapping[str, Any]) -> None:
        """Note the slot, and once the snapshot is in the sink the table of the position, for the check before a start."""
        known = {"slot": self.slot.name, "publication": self.slot.publication} | ({"table": table} if table else {})
        (self.home / INTENT).write_text(json.dumps(known), "utf-8")

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
        changes = Changes(self.captured.oid, self.captured.table.key, lsn)
        messages = self._messages(connection)
        try:
            for chunk in chunks(changes.of(messages), CHUNK):
                self._write(self._rows(connection, chunk), write)
        finally:
            # After the changes, so that none of them has columns unseen; it is also the better reason where a value did not fit.
            mark = self._check_table(connection, position.get("table"))
        if changes.end is not None and changes.end > lsn:
            return {**position, "lsn": changes.end, "table": mark}
        return {**position, "lsn": flushed, "table": mark} if flushed - lsn > IDLE_BYTES else position

    def _check_table(self, connection: Any, kept: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the mark of the table; DatabaseError where it, or what the publication sends of it, is not what it was."""
        captured = self.slot.captured(connection)
        mark: Mapping[str, Any] = kept or captured.mark()  # positions of earlier versions have none
        loss = captured.loss_since(mark)
        if loss is not None:
            raise DatabaseError(loss)
        self._check_columns(captured)
        captured.ensure_published()
        if mark != self._noted:
            self._write_intent(mark)
            self._noted = mark
        return mark

    _noted: Mapping[str, Any] | None = None

    def _messages(self, connection: Any) -> Iterator[tuple[int, Message]]:
        for lsn, data in self.slot.peek(connection, self.most, self._end):
            yield lsn, decode(data)

    def _rows(self, connection: Any, changes: Sequence[Change]) -> list[Out]:
        """The rows of some changes."""
        import psycopg

        envelope, found = self.envelope, list[Out]()
        for change in changes:
            if change.op == "t" and not envelope.is_whole:
                raise DatabaseError(
                    f"table {envelope.table.name} was emptied by TRUNCATE, which its rows cannot say; begin anew under another name, or "
                    "with envelope: true, where it is a change"
                )
            try:
                before, after = (envelope.values(row, self._parse) for row in (change.before, change.after))
            except (psycopg.DataError, *UNFIT) as error:
                self._put_aside(change.after or change.before or {}, change._asdict(), " ".join(str(error).split()))
                continue
            if change.after is not None and after is not None and not envelope.is_whole:
                self._fill(connection, after, change.after)
            found += envelope.rows(about(change), before, after)
        return found

    def _fill(self, connection: Any, values: Out, raw: Row) -> None:
        """Put what the table has now in place of long values that were not sent; a later change corrects what is too new.

        The key is compared as the type that it has, from the text that PostgreSQL itself wrote: the text of a value is not the same
        in Python, and an index on the column is of no use for text.
        """
        names = [name for name, value in values.items() if value is UNCHANGED]
        if not names:
            return
        database, table = self.slot.database, self.captured.table
        wanted = database.selected(table.of(names))
        where = " and ".join(f"{database.identifier(name)} = %s::{table.column(name).type}" for name in table.key)
        query = f"select {wanted} from {self.captured.source(database)} where {where}"
        key = [text_of(raw[name]) for name in table.key]
        found = connection.execute(query, key).fetchone()
        values.update(zip(names, found or [None] * len(names), strict=True))

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
            good, bad = arrow_of([[row.get(name) for name in schema.names] for row in part], schema)
            for row, _, cause in bad:
                values = part[row]
                self._put_aside(values.get("after") or values.get("before") or values, values, cause)
            write(good)

    def _put_aside(self, row: Mapping[str, Any], values: Mapping[str, Any], cause: str) -> None:
        """Put a change aside; BadRowError, with the key of its row, if there are no dead letters."""
        table = self.envelope.table
        key = ", ".join(f"{name} = {shown(decoded(row.get(name)))}" for name in table.key) or "without a key"
        remedy = "leave the column out of the publication, or correct the row and begin anew under another name"
        self.bad_rows.add(f"table {table.name}: row {key}", BadRow(decoded(values), cause), remedy)

    def _check_columns(self, now: Captured) -> None:
        """DatabaseError where the columns are not those that the rows have."""
        for change in differences(self.captured.table, now.table):
            raise DatabaseError(
                f"table {now.table.name} {change}; the next attempt goes on where it was with the columns that are there"
            )


def read_intent(home: Path) -> Any:
    """What is known of the slot that was made for the pipeline."""
    intent = home / INTENT
    return json.loads(intent.read_text("utf-8")) if intent.exists() else {}


def noted_table(home: Path, slot: Slot) -> Mapping[str, Any] | None:
    """Return the mark of the table whose snapshot is in the sink, if there is one."""
    known = read_intent(home)
    found: Mapping[str, Any] | None = known.get("table") if known.get("slot") == slot.name else None
    return found


def decoded(value: Any) -> Any:
    """Return what PostgreSQL wrote of a row as text."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, Mapping):
        return {name: decoded(one) for name, one in value.items()}
    return value


def text_of(value: Value) -> str:
    """The text of a value of a key, as PostgreSQL wrote it."""
    assert isinstance(value, bytes)
    return value.decode()


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
