"""A table that is asked for its next rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.pipelines.databases.arrow_rows import arrow_of
from ottla.pipelines.databases.copying import can_be_copied, copied_rows
from ottla.pipelines.databases.database import Database, DatabaseError
from ottla.pipelines.databases.table import differences
from ottla.pipelines.dead_letters import BadRow, BadRowError, BadRows, DeadLetterTopic, shown
from ottla.pipelines.feeds.feed import Position, Write
from ottla.pipelines.sources.database.dialects import DIALECTS
from ottla.pipelines.sources.database.polled import Polled, Query, UpTo
from ottla.pipelines.sources.database.writers import Writers

PATIENCE_SECONDS = 10.0
"""How long a pipeline that runs once waits for transactions that have begun to write."""
PAUSE_SECONDS = 0.05


class TableFeed:
    """The rows of one table."""

    goes_ahead = True

    def __init__(self, database: Database, polled: Polled, most: int, letters: DeadLetterTopic | None = None) -> None:
        self.database, self.polled = database, polled
        self.most, self.portion = most, polled.most
        self.dialect = DIALECTS[database.kind]
        self.writers = Writers()
        self.bad_rows = BadRows(letters)
        self._connection: Any = None
        self._frozen: Any = None
        self._is_frozen = False

    @property
    def dead_letters(self) -> int:
        return self.bad_rows.count

    def poll(self, position: Position | None, write: Write) -> Position | None:
        try:
            connection = self._connection = self._connection or self.database.open()
            self.bad_rows.begin()
            after = self._poll(connection, position, write)
            self.bad_rows.send()
            return after
        except (DatabaseError, BadRowError):
            self.close()  # the next attempt has a connection of its own
            raise

    def settle(self, position: Position | None) -> None:
        """There is nothing to tell a table."""

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
        for rows in database.rows(connection, *query):
            good, bad = arrow_of([row[:width] for row in rows], schema)
            for row, _, cause in bad:
                self._put_aside(rows[row], cause)
            write(good)
            position = polled.position(rows[-1])
        return position

    def _put_aside(self, row: Sequence[Any], cause: str) -> None:
        """Put a row aside; BadRowError, with its key, if there are no dead letters."""
        polled = self.polled
        names = [*(one.name for one in polled.table.columns), *(field.name for field in polled.kept())]
        values = dict(zip(names, row, strict=True))
        key = {name: values[name] for name in polled.table.key if name in values} or polled.position(row)
        found = ", ".join(f"{name} = {shown(value)}" for name, value in key.items())
        whole = {one.name: values[one.name] for one in polled.table.columns}
        remedy = "correct the row, leave the column out of columns"
        self.bad_rows.add(f"table {polled.table.name}: row {found}", BadRow(whole, cause), remedy)

    def _copy(
        self, connection: Any, query: Query, schema: pa.Schema, position: Position | None, write: Write
    ) -> Position | None:
        """Fetch like `_poll`, for columns that Arrow reads itself."""
        polled, width = self.polled, len(schema)
        whole = pa.schema([*schema, *polled.kept()])
        with self.database.telling(), connection.transaction():
            for rows, bad, last in copied_rows(connection, query.text, query.values, whole):
                for row, cause in bad:
                    self._put_aside(row, cause)
                write(rows.select(range(width)))
                position = polled.position(last)
        return position

    def _bound(self, connection: Any, position: Position | None) -> Any:
        """Up to where no row can come any more that is not there; None where nothing is sure."""
        if self._frozen is not None:
            return self._frozen
        self.database.table(connection, self.polled.table.name)  # says it best where there is none any more
        with self.database.telling():
            by_number = self.polled.timestamp is None
            bound = self._number(connection, position) if by_number else self._time(connection, position)
        if self._is_frozen:
            self._frozen = bound
        return bound

    def _number(self, connection: Any, position: Position | None) -> Any:
        """The highest number whose rows are all there."""
        name = self.database.identifier(str(self.polled.incrementing))
        table = self.database.quoted(self.polled.table.name)
        (highest,) = connection.execute(f"select max({name}) from {table}").fetchone()
        if isinstance(highest, str | bytes):  # which SQLite keeps in a column of numbers, too
            raise DatabaseError(
                f"table {self.polled.table.name}: {highest!r} in column {self.polled.incrementing!r} is no number by which rows are found, so "
                "that it would never be read; write a whole number"
            )
        if position is not None:
            self._check_numbers(connection, highest, position["incrementing"])
        self.writers.look(highest, self.dialect.writing(connection, table))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._is_frozen and self.writers.waits and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
            self.writers.look(None, self.dialect.writing(connection, table))
        return self.writers.settled

    def _check_numbers(self, connection: Any, highest: int | None, last: int) -> None:
        """DatabaseError where numbers are given anew, as after TRUNCATE … RESTART IDENTITY: their rows would be passed over."""
        if (highest or 0) >= last:
            return
        name, column = self.polled.table.name, str(self.polled.incrementing)
        following = self.dialect.next_number(connection, name, self.database.quoted(name), column)
        if following is not None and following <= last:
            raise DatabaseError(
                f"table {name}: the numbers of column {column!r} begin again below {last}, the last that was read, so that new rows would "
                f"be passed over; {self.dialect.setting_on}, or begin anew under another name"
            )

    def _time(self, connection: Any, position: Position | None) -> str:
        """The time before which no row can come any more."""
        polled = self.polled
        self._check_times(connection)
        bound = self.dialect.bound(connection, polled.time_type, polled.zone, polled.delay_ms / 1000)
        if position is not None:
            self._check_clock(connection, str(position["timestamp"]))
        return bound

    def _check_times(self, connection: Any) -> None:
        """DatabaseError for a row whose time has no place among the others: it would never be read."""
        table = self.database.table(connection, self.polled.table.name)
        query = self.polled.without_order(self.database, table.key)
        found = None if query is None else connection.execute(query.text, query.values).fetchone()
        if found is not None:
            row = ", ".join(f"{name} = {value!r}" for name, value in zip(table.key, found[:-1], strict=True))
            raise DatabaseError(
                f"table {table.name}: {str(found[-1]).rstrip()!r} in column {self.polled.timestamp!r} of the row {row or 'without a key'} is no time by which "
                f"rows are found, so that it would never be read; write one such as {self.dialect.example}"
            )

    def _check_clock(self, connection: Any, last: str) -> None:
        """DatabaseError where the clock is behind what was read: rows of now would be passed over."""
        if self.dialect.is_behind(connection, self.polled.time_type, self.polled.zone, last):
            raise DatabaseError(
                f"database {self.database.name}: its clock is behind {last}, the last time that was read, so that rows which are "
                "written now would be passed over; set it right, or begin anew under another name"
            )

    def _is_settled(self, connection: Any, query: Query) -> bool:
        """Whether the rows up to the bound are all committed; one that runs once waits for those that are not."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self.database.telling():
            while not (settled := self.dialect.is_settled(connection, *query)):
                if not self._is_frozen or time.monotonic() > deadline:
                    break
                time.sleep(PAUSE_SECONDS)
        return settled

    def _shortened(self, connection: Any, position: Position | None, bound: str) -> str:
        """The bound, or the time where a batch is full."""
        query = self.polled.last_time(self.database, position, bound)
        with self.database.telling():
            found = connection.execute(query.text, query.values).fetchone()
        return bound if found is None else UpTo(found[0])

    def _check_columns(self, connection: Any) -> None:
        """DatabaseError where the table is not what it was; asked after the bound, so that no row is read without its columns."""
        polled = self.polled
        now = self.database.table(connection, polled.table.name)
        changes = list(differences(polled.table, now))
        if not polled.whole:
            changes = [one for one in changes if not one.startswith("gained")]
        if changes:
            raise DatabaseError(
                f"table {polled.table.name} {changes[0]}; the next attempt goes on where it was with the columns that "
                "are there, or name those that it is to read under columns"
            )
