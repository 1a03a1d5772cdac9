"""A replication slot and its publication: creates, reads, advances and drops them.

The server keeps the log from a slot's position on, so a slot that is not read fills the server's disk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ottla.errors import ConfigError
from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.databases.postgresql import Postgresql
from ottla.pipelines.sources.postgres_cdc.captured import Captured, find_captured

ITEMS = 2000
BUSY_SECONDS = 30.0
"""The time to wait for a previous reader of the slot that the server has not yet detected as gone."""
PEEK = (
    "select lsn - '0/0'::pg_lsn, data from pg_logical_slot_peek_binary_changes"
    "(%s, {end}, {most}, 'proto_version', '1', 'publication_names', %s)"
)


class Made(NamedTuple):
    """A slot that was created, and the name of a snapshot of the state before its changes."""

    lsn: int
    snapshot: str


class Slot:
    """One slot and one publication, both for one table."""

    def __init__(self, database: Postgresql, name: str, publication: str, table: str) -> None:
        self.database, self.name, self.publication, self.table = database, name, publication, table

    def __repr__(self) -> str:
        return f"Slot({self.name!r})"

    def check(self, connection: Any) -> None:
        """Raise ConfigError if the server is not configured for logical replication."""
        (level,) = connection.execute("show wal_level").fetchone()
        if level != "logical":
            raise ConfigError(
                f"database {self.database.name}: wal_level is {level}; set wal_level = logical in postgresql.conf, and restart it"
            )
        (encoding,) = connection.execute("show server_encoding").fetchone()
        if encoding != "UTF8":
            raise ConfigError(
                f"database {self.database.name}: its encoding is {encoding}; changes can only be read from UTF8"
            )

    def confirmed_position(self, connection: Any) -> int | None:
        """Return the slot's confirmed position; None if there is no slot."""
        found = connection.execute(
            "select confirmed_flush_lsn - '0/0'::pg_lsn, wal_status, plugin from pg_replication_slots where slot_name = %s",
            (self.name,),
        ).fetchone()
        if found is None:
            return None
        lsn, status, plugin = found
        if status == "lost" or plugin != "pgoutput":
            raise DatabaseError(
                f"slot {self.name} cannot be used: its plugin is {plugin}, and its log is {status}; start again under another name"
            )
        return int(lsn)

    def ensure_publication(self, connection: Any) -> None:
        """Create the publication for the table unless it exists; ConfigError if an existing one leaves out changes."""
        captured = self.describe_captured(connection)
        if captured.publication is not None:
            captured.ensure_published()
            return
        captured.ensure_identity()
        # Without this option, changes of a partitioned table are sent as changes of its partitions.
        connection.execute(
            f"create publication {self.database.quote_column(self.publication)} for table {captured.source(self.database)} "
            "with (publish_via_partition_root = true)"
        )

    def describe_captured(self, connection: Any) -> Captured:
        """Return the table as captured now; ConfigError if it cannot be captured."""
        return find_captured(self.database, connection, self.table, self.publication)

    @contextmanager
    def create_in_block(self) -> Iterator[Made]:
        """Create the slot.

        Within the block, its snapshot shows the state before the slot's changes: no change is missing between the two,
        and none is in both.
        """
        connection = self.database.open(replication="database")
        try:
            name = self.database.quote_column(self.name)
            result = connection.pgconn.exec_(f"CREATE_REPLICATION_SLOT {name} LOGICAL pgoutput".encode())
            if result.nfields < 3 or not result.ntuples:
                text = " ".join(result.error_message.decode(errors="replace").split())
                raise DatabaseError(f"database {self.database.name}: slot {self.name} cannot be created: {text}")
            yield Made(lsn_of(text_at(result, 1)), text_at(result, 2))
        finally:
            connection.close()

    def peek(self, connection: Any, most: int, end: int | None) -> Iterator[tuple[int, bytes]]:
        """Yield messages of whole transactions with their positions, at least `most` if there are as many, and only up to `end` if given."""
        place = "null" if end is None else f"'{lsn_text(end)}'::pg_lsn"
        query = PEEK.format(end=place, most=most)
        with self.database.translated_errors(), connection.transaction(), connection.cursor("ottla_changes") as cursor:
            cursor.itersize = ITEMS
            cursor.execute(query, (self.name, self.publication))
            for lsn, data in cursor:
                yield int(lsn), bytes(data)

    def advance(self, connection: Any, lsn: int) -> None:
        """Advance the slot, so that the server can delete the log before `lsn`."""
        confirmed = self.confirmed_position(connection)
        if confirmed is not None and lsn > confirmed:
            connection.execute("select pg_replication_slot_advance(%s, %s::pg_lsn)", (self.name, lsn_text(lsn)))

    def has_publication(self, connection: Any) -> bool:
        query = "select 1 from pg_publication where pubname = %s"
        return connection.execute(query, (self.publication,)).fetchone() is not None

    def drop_publication(self, connection: Any) -> None:
        connection.execute(f"drop publication if exists {self.database.quote_column(self.publication)}")

    @contextmanager
    def connection(self) -> Iterator[tuple[Slot, Any]]:
        """Open a connection to the server of the slot."""
        connection = self.database.open()
        try:
            with self.database.translated_errors():
                yield self, connection
        finally:
            connection.close()

    def drop(self, connection: Any) -> None:
        """Drop the slot and its changes."""
        connection.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", (self.name,)
        )

    def held_back_bytes(self, connection: Any) -> int | None:
        """Return the bytes of log that the server keeps for the slot; None if there is no slot."""
        query = "select pg_current_wal_lsn() - restart_lsn from pg_replication_slots where slot_name = %s"
        found = connection.execute(query, (self.name,)).fetchone()
        return None if found is None else int(found[0] or 0)

    def flushed_position(self, connection: Any) -> int:
        """Return the current end of the flushed log."""
        (lsn,) = connection.execute("select pg_current_wal_flush_lsn() - '0/0'::pg_lsn").fetchone()
        return int(lsn)

    def wait_until_free(self, connection: Any) -> None:
        """Wait until the slot has no reader; DatabaseError if it still has one after `BUSY_SECONDS`."""
        deadline = time.monotonic() + BUSY_SECONDS
        query = "select active_pid from pg_replication_slots where slot_name = %s and active"
        while found := connection.execute(query, (self.name,)).fetchone():
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"slot {self.name} is being read by process {found[0]} of the server; stop it first"
                )
            time.sleep(0.1)


def text_at(result: Any, column: int) -> str:
    return str(result.get_value(0, column).decode())


def lsn_text(lsn: int) -> str:
    """Return a position in the log in PostgreSQL's notation."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)
