"""The feed of a table's changes: the existing rows, followed by each change, without a gap and without duplicates.

The order of steps matters. `CREATE_REPLICATION_SLOT` exports a snapshot that shows exactly the state at which the
slot's changes start, so the snapshot is read in a transaction of that snapshot. Changes are peeked
(`pg_logical_slot_peek_binary_changes`), which does not move the slot. The slot advances in `release`, when Spark has
committed the batch. So the server keeps each change until it is in the sink, and a position behind the slot's confirmed
position is detected as an old copy of the checkpoint.
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
from ottla.pipelines.databases.table import describe_differences
from ottla.pipelines.dead_letters import BadRow, BadRowError, BadRows, DeadLetterTopic, short_repr
from ottla.pipelines.feeds.feed import Position, Write
from ottla.pipelines.sources.postgres_cdc.captured import Captured
from ottla.pipelines.sources.postgres_cdc.changes import Change, Row, TableChanges
from ottla.pipelines.sources.postgres_cdc.envelope import About, Envelope, Out, about_change
from ottla.pipelines.sources.postgres_cdc.pgoutput import UNCHANGED, Message, Value, decode
from ottla.pipelines.sources.postgres_cdc.slot import Slot

CHUNK = 5000
INTENT = "replication.json"
"""The file next to the checkpoint that names the slot made for the pipeline."""
IDLE_BYTES = 16 * 1024 * 1024
"""The size of log for other tables after which the slot is advanced past it."""

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
"""The PostgreSQL type that parses a value's text; all other types are text."""


class ChangeFeed:
    """The changes of one table."""

    fetches_ahead = False  # it reads from the slot's position, which advances when rows are in the sink

    def __init__(
        self,
        slot: Slot,
        captured: Captured,
        envelope: Envelope,
        home: Path,
        most: int,
        dead_letters: DeadLetterTopic | None = None,
    ) -> None:
        self.bad_rows = BadRows(dead_letters)
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
            with self.slot.database.translated_errors():
                connection = self._connected()
                self.bad_rows.clear()
                if position is None:
                    after = self._snapshot(connection, write)
                else:
                    after = self._changes(connection, position, write)
                self.bad_rows.send()
                return after
        except (DatabaseError, BadRowError):
            self.close()  # the next attempt opens a new connection
            raise

    def release(self, position: Position | None) -> None:
        if position is None:
            return
        try:
            with self.slot.database.translated_errors():
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
        """Write all rows that the publication sends, as of the creation of the slot."""
        database = self.slot.database
        self.slot.check(connection)
        self._drop_unused_slot(connection)
        self.slot.ensure_publication(connection)
        with self.slot.create_in_block() as made, connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            connection.execute(f"set transaction snapshot '{made.snapshot}'")
            connection.execute("set local row_security = off")  # raises an error if a policy would hide rows
            captured = self.slot.describe_captured(connection)
            self._check_columns(captured)
            captured.ensure_published()
            query = f"select {database.select_list(captured.table)} from {captured.source(database)}"
            if captured.publication is not None and captured.publication.row_filter is not None:
                query += f" where {captured.publication.row_filter}"
            names = [one.name for one in captured.table.columns]
            read_at = About("r", int(time.time() * 1000), "true", None, made.lsn)
            for chunk in database.iter_rows(connection, query, None):
                rows = [dict(zip(names, values, strict=True)) for values in chunk]
                self._write([each for row in rows for each in self.envelope.rows(read_at, None, row)], write)
            return {"lsn": made.lsn, "slot": self.slot.name, "table": captured.mark()}

    def _drop_unused_slot(self, connection: Any) -> None:
        """Drop an unused slot of this pipeline; ConfigError if it belongs to another one."""
        if self.slot.confirmed_position(connection) is not None:
            if read_intent(self.home).get("slot") != self.slot.name:
                raise ConfigError(
                    f"slot {self.slot.name} exists already and was not made for this pipeline: if it is unused, "
                    f"drop it with `select pg_drop_replication_slot('{self.slot.name}')`, or set another slot.name"
                )
            self.slot.wait_until_free(connection)
            self.slot.drop(connection)
        self.home.mkdir(parents=True, exist_ok=True)
        self._write_intent({})

    def _write_intent(self, table: Mapping[str, Any]) -> None:
        """Record the slot, and when the snapshot is in the sink also the table of the position, for the check at the next start."""
        known = {"slot": self.slot.name, "publication": self.slot.publication} | ({"table": table} if table else {})
        (self.home / INTENT).write_text(json.dumps(known), "utf-8")

    def _changes(self, connection: Any, position: Position, write: Write) -> Position:
        """Write the changes after a position, and return the new position."""
        lsn = int(position["lsn"])
        confirmed = self.slot.confirmed_position(connection)
        if confirmed is None:
            raise DatabaseError(
                f"slot {self.slot.name} does not exist any more, and later changes are lost; start again under another name, with a new snapshot"
            )
        if confirmed > lsn:
            raise DatabaseError(
                f"slot {self.slot.name} has advanced past the checkpoint, which is an old copy: changes in between are lost; restore "
                "the newest one, or start again under another name"
            )
        self.slot.wait_until_free(connection)
        flushed = self.slot.flushed_position(connection)
        if self._is_frozen:
            self._end = self._end or flushed
            if lsn >= self._end:
                return position
        changes = TableChanges(self.captured.oid, self.captured.table.key, lsn)
        messages = self._messages(connection)
        try:
            for chunk in split_changes(changes.from_messages(messages), CHUNK):
                self._write(self._rows(connection, chunk), write)
        finally:
            # After the changes, so that none has unknown columns. This is also the better error if a value did not fit.
            mark = self._check_table(connection, position.get("table"))
        if changes.end is not None and changes.end > lsn:
            return {**position, "lsn": changes.end, "table": mark}
        return {**position, "lsn": flushed, "table": mark} if flushed - lsn > IDLE_BYTES else position

    def _check_table(self, connection: Any, kept: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the mark of the table; DatabaseError if the table, or the data that the publication sends, changed."""
        captured = self.slot.describe_captured(connection)
        mark: Mapping[str, Any] = kept or captured.mark()  # positions of earlier versions have no mark
        loss = captured.loss_since(mark)
        if loss is not None:
            raise DatabaseError(loss)
        self._check_columns(captured)
        captured.ensure_published()
        if mark != self._recorded:
            self._write_intent(mark)
            self._recorded = mark
        return mark

    _recorded: Mapping[str, Any] | None = None

    def _messages(self, connection: Any) -> Iterator[tuple[int, Message]]:
        for lsn, data in self.slot.peek(connection, self.most, self._end):
            yield lsn, decode(data)

    def _rows(self, connection: Any, changes: Sequence[Change]) -> list[Out]:
        """Return the rows of some changes."""
        import psycopg

        envelope, found = self.envelope, list[Out]()
        for change in changes:
            if change.op == "t" and not envelope.is_whole:
                raise DatabaseError(
                    f"table {envelope.table.name} was emptied by TRUNCATE, which cannot be written as rows; start again under another name, or "
                    "with envelope: true, which has a change for it"
                )
            try:
                before, after = (envelope.values(row, self._parse) for row in (change.before, change.after))
            except (psycopg.DataError, *UNFIT) as error:
                self._put_aside(change.after or change.before or {}, change._asdict(), " ".join(str(error).split()))
                continue
            if change.after is not None and after is not None and not envelope.is_whole:
                self._fill(connection, after, change.after)
            found += envelope.rows(about_change(change), before, after)
        return found

    def _fill(self, connection: Any, values: Out, raw: Row) -> None:
        """Replace long values that were not sent by the table's current values; a later change corrects a value that is too new.

        The key is compared in its own type, from PostgreSQL's text: Python's text of a value may differ, and the index
        of the column does not support a comparison of text.
        """
        names = [name for name, value in values.items() if value is UNCHANGED]
        if not names:
            return
        database, table = self.slot.database, self.captured.table
        wanted = database.select_list(table.select_columns(names))
        where = " and ".join(f"{database.quote_column(name)} = %s::{table.column(name).type}" for name in table.key)
        query = f"select {wanted} from {self.captured.source(database)} where {where}"
        key = [text_of(raw[name]) for name in table.key]
        found = connection.execute(query, key).fetchone()
        values.update(zip(names, found or [None] * len(names), strict=True))

    def _parse(self, name: str, data: bytes) -> Any:
        """Return a value parsed from its text."""
        if self._parsers is None:
            self._parsers = column_parsers(self._connected(), self.envelope)
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
        """Put a change aside; BadRowError, with the key of its row, if there is no dead-letter topic."""
        table = self.envelope.table
        key = ", ".join(f"{name} = {short_repr(decode_values(row.get(name)))}" for name in table.key) or "without a key"
        remedy = "leave the column out of the publication, or correct the row and start again under another name"
        self.bad_rows.add(f"table {table.name}: row {key}", BadRow(decode_values(values), cause), remedy)

    def _check_columns(self, now: Captured) -> None:
        """Raise DatabaseError if the table's columns changed."""
        for change in describe_differences(self.captured.table, now.table):
            raise DatabaseError(
                f"table {now.table.name} {change}; the next attempt continues with the columns that exist now"
            )


def read_intent(home: Path) -> Any:
    """Return the record of the slot that was made for the pipeline."""
    intent = home / INTENT
    return json.loads(intent.read_text("utf-8")) if intent.exists() else {}


def read_table_mark(home: Path, slot: Slot) -> Mapping[str, Any] | None:
    """Return the mark of the table with a snapshot in the sink, if there is one."""
    known = read_intent(home)
    found: Mapping[str, Any] | None = known.get("table") if known.get("slot") == slot.name else None
    return found


def decode_values(value: Any) -> Any:
    """Return PostgreSQL's values of a row as text."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, Mapping):
        return {name: decode_values(one) for name, one in value.items()}
    return value


def text_of(value: Value) -> str:
    """Return the text of a key's value, as PostgreSQL wrote it."""
    assert isinstance(value, bytes)
    return value.decode()


def column_parsers(connection: Any, envelope: Envelope) -> dict[str, Any]:
    """Return the parser of each column: it converts text to the value that a query would return."""
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


def split_changes(changes: Iterator[Change], size: int) -> Iterator[list[Change]]:
    """Yield the changes in lists of `size`."""
    chunk: list[Change] = []
    for one in changes:
        chunk.append(one)
        if len(chunk) >= size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
