"""A replication slot and its publication: made for a pipeline, asked for changes, moved on, dropped.

What a slot has is kept by the server until it is moved on, so a slot that nobody reads fills the server's disk.
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
"""How long it waits for a reader before it that the server has not missed yet."""
PEEK = (
    "select lsn - '0/0'::pg_lsn, data from pg_logical_slot_peek_binary_changes"
    "(%s, {end}, {most}, 'proto_version', '1', 'publication_names', %s)"
)


class Made(NamedTuple):
    """A slot that was made, and the name of a snapshot of all that came before it."""

    lsn: int
    snapshot: str


class Slot:
    """One slot and one publication, both of this name."""

    def __init__(self, database: Postgresql, name: str, publication: str, table: str) -> None:
        self.database, self.name, self.publication, self.table = database, name, publication, table

    def __repr__(self) -> str:
        return f"Slot({self.name!r})"

    def check(self, connection: Any) -> None:
        """ConfigError where the server is not set up for this."""
        (level,) = connection.execute("show wal_level").fetchone()
        if level != "logical":
            raise ConfigError(
                f"database {self.database.name}: wal_level is {level}; set wal_level = logical in postgresql.conf, and restart it"
            )
        (encoding,) = connection.execute("show server_encoding").fetchone()
        if encoding != "UTF8":
            raise ConfigError(
                f"database {self.database.name}: its encoding is {encoding}; changes are read from UTF8 alone"
            )

    def confirmed(self, connection: Any) -> int | None:
        """Up to where the slot has been moved on; None where there is none."""
        found = connection.execute(
            "select confirmed_flush_lsn - '0/0'::pg_lsn, wal_status, plugin from pg_replication_slots where slot_name = %s",
            (self.name,),
        ).fetchone()
        if found is None:
            return None
        lsn, status, plugin = found
        if status == "lost" or plugin != "pgoutput":
            raise DatabaseError(
                f"slot {self.name} is of no use: its plugin is {plugin}, and its log {status}; begin anew under another name"
            )
        return int(lsn)

    def ensure_publication(self, connection: Any) -> None:
        """Make the publication for the table, unless it exists; ConfigError if one that exists leaves changes out."""
        captured = self.captured(connection)
        if captured.publication is not None:
            captured.ensure_published()
            return
        captured.ensure_identity()
        # Without this option, changes of a partitioned table are sent as those of its partitions.
        connection.execute(
            f"create publication {self.database.identifier(self.publication)} for table {captured.source(self.database)} "
            "with (publish_via_partition_root = true)"
        )

    def captured(self, connection: Any) -> Captured:
        """Return the table as it is captured now; ConfigError where it cannot be."""
        return find_captured(self.database, connection, self.table, self.publication)

    @contextmanager
    def made(self) -> Iterator[Made]:
        """Make the slot. As long as this lasts, its snapshot shows what the changes that it gives come after: nothing is missed
        between the two, and nothing is in both.
        """
        connection = self.database.open(replication="database")
        try:
            name = self.database.identifier(self.name)
            result = connection.pgconn.exec_(f"CREATE_REPLICATION_SLOT {name} LOGICAL pgoutput".encode())
            if result.nfields < 3 or not result.ntuples:
                told = " ".join(result.error_message.decode(errors="replace").split())
                raise DatabaseError(f"database {self.database.name}: slot {self.name} cannot be made: {told}")
            yield Made(lsn_of(text_at(result, 1)), text_at(result, 2))
        finally:
            connection.close()

    def peek(self, connection: Any, most: int, end: int | None) -> Iterator[tuple[int, bytes]]:
        """Messages, each with its place in the log, of whole transactions, at least `most` if there are as many; up to a place in the log if one is given."""
        place = "null" if end is None else f"'{lsn_text(end)}'::pg_lsn"
        query = PEEK.format(end=place, most=most)
        with self.database.telling(), connection.transaction(), connection.cursor("ottla_changes") as cursor:
            cursor.itersize = ITEMS
            cursor.execute(query, (self.name, self.publication))
            for lsn, data in cursor:
                yield int(lsn), bytes(data)

    def advance(self, connection: Any, lsn: int) -> None:
        """Let the server forget what came before."""
        confirmed = self.confirmed(connection)
        if confirmed is not None and lsn > confirmed:
            connection.execute("select pg_replication_slot_advance(%s, %s::pg_lsn)", (self.name, lsn_text(lsn)))

    def has_publication(self, connection: Any) -> bool:
        query = "select 1 from pg_publication where pubname = %s"
        return connection.execute(query, (self.publication,)).fetchone() is not None

    def drop_publication(self, connection: Any) -> None:
        connection.execute(f"drop publication if exists {self.database.identifier(self.publication)}")

    @contextmanager
    def asked(self) -> Iterator[tuple[Slot, Any]]:
        """A connection to ask about it."""
        connection = self.database.open()
        try:
            with self.database.telling():
                yield self, connection
        finally:
            connection.close()

    def drop(self, connection: Any) -> None:
        """Take the slot away; what it has is lost."""
        connection.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", (self.name,)
        )

    def held_back(self, connection: Any) -> int | None:
        """How many bytes of log the server keeps for it; None where there is no slot."""
        query = "select pg_current_wal_lsn() - restart_lsn from pg_replication_slots where slot_name = %s"
        found = connection.execute(query, (self.name,)).fetchone()
        return None if found is None else int(found[0] or 0)

    def flushed(self, connection: Any) -> int:
        """The end of the log as it is now."""
        (lsn,) = connection.execute("select pg_current_wal_flush_lsn() - '0/0'::pg_lsn").fetchone()
        return int(lsn)

    def wait_until_free(self, connection: Any) -> None:
        """DatabaseError where another reader stays."""
        deadline = time.monotonic() + BUSY_SECONDS
        query = "select active_pid from pg_replication_slots where slot_name = %s and active"
        while found := connection.execute(query, (self.name,)).fetchone():
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"slot {self.name} is being read by process {found[0]} of the server; stop that one first"
                )
            time.sleep(0.1)


def text_at(result: Any, column: int) -> str:
    return str(result.get_value(0, column).decode())


def lsn_text(lsn: int) -> str:
    """A place in the log as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)
