"""The feed of a table."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.pipelines.databases.arrow_rows import arrow_of
from ottla.pipelines.databases.copying import can_be_copied, copied_rows
from ottla.pipelines.databases.database import Database, DatabaseError
from ottla.pipelines.databases.table import describe_differences
from ottla.pipelines.dead_letters import BadRow, BadRowError, BadRows, DeadLetterTopic, short_repr
from ottla.pipelines.feeds.feed import Position, Write
from ottla.pipelines.sources.database.dialects import DIALECTS
from ottla.pipelines.sources.database.polled import PolledTable, PollQuery, UpTo

PATIENCE_SECONDS = 10.0
"""The time that a pipeline that runs once waits for transactions that are writing."""
PAUSE_SECONDS = 0.05


class TableFeed:
    """The rows of one table."""

    fetches_ahead = True

    def __init__(
        self, database: Database, polled: PolledTable, most: int, dead_letters: DeadLetterTopic | None = None
    ) -> None:
        self.database, self.polled = database, polled
        self.most, self.portion = most, polled.most
        self.dialect = DIALECTS[database.kind]
        self.writers = SettledNumbers()
        self.bad_rows = BadRows(dead_letters)
        self._connection: Any = None
        self._frozen: Any = None
        self._is_frozen = False

    @property
    def dead_letters(self) -> int:
        return self.bad_rows.count

    def poll(self, position: Position | None, write: Write) -> Position | None:
        try:
            connection = self._connection = self._connection or self.database.open()
            self.bad_rows.clear()
            after = self._poll(connection, position, write)
            self.bad_rows.send()
            return after
        except (DatabaseError, BadRowError):
            self.close()  # the next attempt opens a new connection
            raise

    def release(self, position: Position | None) -> None:
        """Do nothing: a table does not store positions."""

    def freeze(self) -> None:
        self._is_frozen = True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _poll(self, connection: Any, position: Position | None, write: Write) -> Position | None:
        bound = self._bound(connection, position)
        self._check_columns(connection)
        if bound is None:
            return position
        database, polled = self.database, self.polled
        if polled.incrementing is None:
            bound = self._shortened(connection, position, bound)
        if not self._is_settled(connection, polled.next_keys(database, position, bound)):
            return position
        schema = to_arrow_schema(polled.table.schema(), timezone="UTC")
        query = polled.next_rows(database, position, bound)
        if database.kind == "postgresql" and can_be_copied(schema):
            return self._copy(connection, query, schema, position, write)
        width = len(schema)
        for rows in database.iter_rows(connection, *query):
            good, bad = arrow_of([row[:width] for row in rows], schema)
            for row, _, cause in bad:
                self._put_aside(rows[row], cause)
            write(good)
            position = polled.position(rows[-1])
        return position

    def _put_aside(self, row: Sequence[Any], cause: str) -> None:
        """Put a row aside; BadRowError, with the row's key, if there is no dead-letter topic."""
        polled = self.polled
        names = [*(one.name for one in polled.table.columns), *(field.name for field in polled.kept())]
        values = dict(zip(names, row, strict=True))
        key = {name: values[name] for name in polled.table.key if name in values} or polled.position(row)
        found = ", ".join(f"{name} = {short_repr(value)}" for name, value in key.items())
        whole = {one.name: values[one.name] for one in polled.table.columns}
        remedy = "correct the row, leave the column out of columns"
        self.bad_rows.add(f"table {polled.table.name}: row {found}", BadRow(whole, cause), remedy)

    def _copy(
        self, connection: Any, query: PollQuery, schema: pa.Schema, position: Position | None, write: Write
    ) -> Position | None:
        """Fetch as `_poll` does, by COPY, for column types that can be converted to Arrow directly."""
        polled, width = self.polled, len(schema)
        whole = pa.schema([*schema, *polled.kept()])
        with self.database.translated_errors(), connection.transaction():
            for rows, bad, last in copied_rows(connection, query.text, query.values, whole):
                for row, cause in bad:
                    self._put_aside(row, cause)
                write(rows.select(range(width)))
                position = polled.position(last)
        return position

    def _bound(self, connection: Any, position: Position | None) -> Any:
        """Return the bound up to which no more rows can appear; None if it is not known yet."""
        if self._frozen is not None:
            return self._frozen
        self.database.describe_table(
            connection, self.polled.table.name
        )  # raises the best error if the table was dropped
        with self.database.translated_errors():
            by_number = self.polled.timestamp is None
            bound = self._number(connection, position) if by_number else self._time(connection, position)
        if self._is_frozen:
            self._frozen = bound
        return bound

    def _number(self, connection: Any, position: Position | None) -> Any:
        """Return the highest number up to which all rows are committed."""
        name = self.database.quote_column(str(self.polled.incrementing))
        table = self.database.quote_table(self.polled.table.name)
        (highest,) = connection.execute(f"select max({name}) from {table}").fetchone()
        if isinstance(highest, str | bytes):  # SQLite stores these in integer columns too
            raise DatabaseError(
                f"table {self.polled.table.name}: {highest!r} in column {self.polled.incrementing!r} is not a number, so the row "
                "would never be read; write an integer"
            )
        if position is not None:
            self._check_numbers(connection, highest, position["incrementing"])
        self.writers.observe(highest, self.dialect.writing(connection, table))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._is_frozen and self.writers.has_unsettled and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
            self.writers.observe(None, self.dialect.writing(connection, table))
        return self.writers.settled

    def _check_numbers(self, connection: Any, highest: int | None, last: int) -> None:
        """Raise DatabaseError if numbers are assigned again, as after TRUNCATE … RESTART IDENTITY: their rows would be skipped."""
        if (highest or 0) >= last:
            return
        name, column = self.polled.table.name, str(self.polled.incrementing)
        following = self.dialect.next_number(connection, name, self.database.quote_table(name), column)
        if following is not None and following <= last:
            raise DatabaseError(
                f"table {name}: the numbers of column {column!r} start again below {last}, the last number read, so new rows would "
                f"be skipped; {self.dialect.setting_on}, or start again under another name"
            )

    def _time(self, connection: Any, position: Position | None) -> str:
        """Return the time before which no more rows can appear."""
        polled = self.polled
        self._check_times(connection)
        bound = self.dialect.bound(connection, polled.time_type, polled.zone, polled.delay_ms / 1000)
        if position is not None:
            self._check_clock(connection, str(position["timestamp"]))
        return bound

    def _check_times(self, connection: Any) -> None:
        """Raise DatabaseError for a row with a time that cannot be ordered: it would never be read."""
        table = self.database.describe_table(connection, self.polled.table.name)
        query = self.polled.without_order(self.database, table.key)
        found = None if query is None else connection.execute(query.text, query.values).fetchone()
        if found is not None:
            row = ", ".join(f"{name} = {value!r}" for name, value in zip(table.key, found[:-1], strict=True))
            raise DatabaseError(
                f"table {table.name}: {str(found[-1]).rstrip()!r} in column {self.polled.timestamp!r} of the row {row or 'without a key'} is not a time, so "
                f"the row would never be read; write for example {self.dialect.example}"
            )

    def _check_clock(self, connection: Any, last: str) -> None:
        """Raise DatabaseError if the database's clock is behind the last time read: new rows would be skipped."""
        if self.dialect.is_behind(connection, self.polled.time_type, self.polled.zone, last):
            raise DatabaseError(
                f"database {self.database.name}: its clock is behind {last}, the last time read, so rows that are "
                "written now would be skipped; correct the clock, or start again under another name"
            )

    def _is_settled(self, connection: Any, query: PollQuery) -> bool:
        """Return True if the rows up to the bound are all committed. A pipeline that runs once waits for those that are not."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self.database.translated_errors():
            while not (settled := self.dialect.is_settled(connection, *query)):
                if not self._is_frozen or time.monotonic() > deadline:
                    break
                time.sleep(PAUSE_SECONDS)
        return settled

    def _shortened(self, connection: Any, position: Position | None, bound: str) -> str:
        """Return the bound, or the time at which a batch is full."""
        query = self.polled.last_time(self.database, position, bound)
        with self.database.translated_errors():
            found = connection.execute(query.text, query.values).fetchone()
        return bound if found is None else UpTo(found[0])

    def _check_columns(self, connection: Any) -> None:
        """Raise DatabaseError if the columns of the table changed.

        Checked after the bound, so that no row is read without its columns.
        """
        polled = self.polled
        now = self.database.describe_table(connection, polled.table.name)
        changes = list(describe_differences(polled.table, now))
        if not polled.whole:
            changes = [one for one in changes if not one.startswith("gained")]
        if changes:
            raise DatabaseError(
                f"table {polled.table.name} {changes[0]}; the next attempt continues with the columns that "
                "exist now; or list the columns to read under columns"
            )


class SettledNumbers:
    """The numbers and open transactions seen so far."""

    def __init__(self) -> None:
        self.settled: Any = None
        self._seen: list[tuple[Any, frozenset[str]]] = []

    @property
    def has_unsettled(self) -> bool:
        """True if a number was seen that is not settled yet."""
        return bool(self._seen)

    def observe(self, highest: Any, writing: Set[str]) -> None:
        """Record the current state: the highest number, which was read first, and the transactions that may write."""
        if highest is not None and highest != self.settled:
            self._seen.append((highest, frozenset(writing)))
        seen = [(number, before & writing) for number, before in self._seen]
        done = [number for number, before in seen if not before]
        if done:
            self.settled = max(done)
        self._seen = [(number, before) for number, before in seen if before]
