"""The messages of PostgreSQL's output plugin `pgoutput`, protocol version 1: bytes to values. Pure.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from ottla.errors import OttlaError


class PgoutputError(OttlaError):
    """Bytes that are no message."""


class Unchanged:
    """Stands for a long value that an update did not touch, and which PostgreSQL therefore does not send."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = Unchanged()
Value = bytes | Unchanged | None
"""A value as PostgreSQL writes it, in text."""
Values = tuple[Value, ...]

EPOCH_MICROS = 946_684_800_000_000
"""PostgreSQL counts time from 2000."""


class Begin(NamedTuple):
    final_lsn: int
    """Where the commit of the transaction stands."""
    micros: int
    """When it was committed, since 1970."""
    xid: int


class Commit(NamedTuple):
    lsn: int
    end_lsn: int
    micros: int


class RelationColumn(NamedTuple):
    name: str
    oid: int
    """Of its type."""
    is_key: bool


class Relation(NamedTuple):
    """What a table is like, told before its first change and after each change of it."""

    oid: int
    schema: str
    table: str
    identity: str
    """`d`: the primary key, `f`: the whole row, `i`: an index, `n`: nothing tells which row was changed."""
    columns: tuple[RelationColumn, ...]


class Insert(NamedTuple):
    relation: int
    new: Values


class Update(NamedTuple):
    relation: int
    new: Values
    old: Values | None
    old_is_key: bool
    """Whether `old` has the columns of the identity alone."""


class Delete(NamedTuple):
    relation: int
    old: Values
    old_is_key: bool


class Truncate(NamedTuple):
    relations: tuple[int, ...]


class Other(NamedTuple):
    """What is of no use here: origins, types, messages that programs write."""

    kind: str


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other


class Reader:
    """Takes values out of a message, and never more than there are."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise PgoutputError(f"{count} bytes are missing at byte {self._at} of a message of {len(self._data)}")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, form: str) -> int:
        found: int = struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))[0]
        return found

    def text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise PgoutputError(f"a name at byte {self._at} does not end")
        text = self.take(end - self._at)
        self.take(1)
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise PgoutputError(f"a name at byte {self._at} is no UTF-8; set the database's encoding to UTF8") from None

    def letter(self) -> str:
        return self.take(1).decode("latin-1")

    def values(self) -> Values:
        """A row."""
        return tuple(self.value() for _ in range(self.number("H")))

    def value(self) -> Value:
        kind = self.letter()
        if kind == "t":
            return self.take(self.number("i"))
        if kind == "n":
            return None
        if kind == "u":
            return UNCHANGED
        raise PgoutputError(f"a value of kind {kind!r} at byte {self._at}, and there are t, n and u")

    def end(self) -> None:
        if self._at != len(self._data):
            raise PgoutputError(f"{len(self._data) - self._at} bytes are left at the end of a message")


def decode(data: bytes) -> Message:
    """One message; PgoutputError for bytes that are none."""
    reader = Reader(data)
    kind = reader.letter()
    if kind in ("O", "Y", "M"):
        return Other(kind)
    read = READERS.get(kind)
    if read is None:
        raise PgoutputError(f"a message of kind {kind!r}, which protocol version 1 does not have")
    message = read(reader)
    reader.end()
    return message


def begin(reader: Reader) -> Begin:
    return Begin(reader.number("Q"), EPOCH_MICROS + reader.number("q"), reader.number("I"))


def commit(reader: Reader) -> Commit:
    reader.take(1)
    return Commit(reader.number("Q"), reader.number("Q"), EPOCH_MICROS + reader.number("q"))


def relation(reader: Reader) -> Relation:
    oid, schema, table, identity = reader.number("I"), reader.text(), reader.text(), reader.letter()
    columns = tuple(relation_column(reader) for _ in range(reader.number("H")))
    return Relation(oid, schema, table, identity, columns)


def relation_column(reader: Reader) -> RelationColumn:
    flags, name, oid = reader.number("B"), reader.text(), reader.number("I")
    reader.take(4)  # the modifier of its type
    return RelationColumn(name, oid, bool(flags & 1))


def insert(reader: Reader) -> Insert:
    oid = reader.number("I")
    expect(reader, "N")
    return Insert(oid, reader.values())


def update(reader: Reader) -> Update:
    oid, kind = reader.number("I"), reader.letter()
    old = None
    if kind in ("K", "O"):
        old = reader.values()
        expect(reader, "N")
    elif kind != "N":
        raise PgoutputError(f"an update has {kind!r} where K, O or N stands")
    return Update(oid, reader.values(), old, kind == "K")


def delete(reader: Reader) -> Delete:
    oid, kind = reader.number("I"), reader.letter()
    if kind not in ("K", "O"):
        raise PgoutputError(f"a deletion has {kind!r} where K or O stands")
    return Delete(oid, reader.values(), kind == "K")


def truncate(reader: Reader) -> Truncate:
    count = reader.number("I")
    reader.take(1)  # whether it cascades
    if count > 100_000:
        raise PgoutputError(f"a message says that {count} tables were emptied")
    return Truncate(tuple(reader.number("I") for _ in range(count)))


def expect(reader: Reader, letter: str) -> None:
    found = reader.letter()
    if found != letter:
        raise PgoutputError(f"a change has {found!r} where {letter} stands")


READERS: dict[str, Callable[[Reader], Message]] = {
    "B": begin,
    "C": commit,
    "R": relation,
    "I": insert,
    "U": update,
    "D": delete,
    "T": truncate,
}
