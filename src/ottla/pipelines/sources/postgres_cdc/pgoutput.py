"""The messages of PostgreSQL's output plugin `pgoutput`, protocol version 1: bytes to values. Pure.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from ottla.errors import OttlaError


class PgoutputError(OttlaError):
    """Bytes are not a valid message."""


class Unchanged:
    """The placeholder for a long value that an update did not change, and which PostgreSQL therefore does not send."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = Unchanged()
Value = bytes | Unchanged | None
"""A value in PostgreSQL's text format."""
Values = tuple[Value, ...]

EPOCH_MICROS = 946_684_800_000_000
"""The epoch of PostgreSQL is 2000-01-01."""


class Begin(NamedTuple):
    final_lsn: int
    """The position of the transaction's commit."""
    micros: int
    """The time of the commit in microseconds since 1970."""
    xid: int


class Commit(NamedTuple):
    lsn: int
    end_lsn: int
    micros: int


class RelationColumn(NamedTuple):
    name: str
    oid: int
    """The oid of the type."""
    is_key: bool


class Relation(NamedTuple):
    """The description of a table, sent before its first change and after each change of it."""

    oid: int
    schema: str
    table: str
    identity: str
    """`d`: the primary key, `f`: the whole row, `i`: an index, `n`: nothing identifies the changed row."""
    columns: tuple[RelationColumn, ...]


class Insert(NamedTuple):
    relation: int
    new: Values


class Update(NamedTuple):
    relation: int
    new: Values
    old: Values | None
    old_is_key: bool
    """True if `old` only has the columns of the identity."""


class Delete(NamedTuple):
    relation: int
    old: Values
    old_is_key: bool


class Truncate(NamedTuple):
    relations: tuple[int, ...]


class Other(NamedTuple):
    """Messages that are ignored: origins, types, messages of programs."""

    kind: str


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other


class PgoutputReader:
    """Reads values from a message, and never beyond its end."""

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
            raise PgoutputError(
                f"a name at byte {self._at} is not UTF-8; set the database's encoding to UTF8"
            ) from None

    def letter(self) -> str:
        return self.take(1).decode("latin-1")

    def values(self) -> Values:
        """Read a row."""
        return tuple(self.value() for _ in range(self.number("H")))

    def value(self) -> Value:
        kind = self.letter()
        if kind == "t":
            return self.take(self.number("i"))
        if kind == "n":
            return None
        if kind == "u":
            return UNCHANGED
        raise PgoutputError(f"a value of kind {kind!r} at byte {self._at}: expected t, n or u")

    def end(self) -> None:
        if self._at != len(self._data):
            raise PgoutputError(f"{len(self._data) - self._at} bytes are left at the end of a message")


def decode(data: bytes) -> Message:
    """Return the message in `data`; PgoutputError if it is not valid."""
    reader = PgoutputReader(data)
    kind = reader.letter()
    if kind in ("O", "Y", "M"):
        return Other(kind)
    read = READERS.get(kind)
    if read is None:
        raise PgoutputError(f"a message of kind {kind!r}, which protocol version 1 does not have")
    message = read(reader)
    reader.end()
    return message


def begin(reader: PgoutputReader) -> Begin:
    return Begin(reader.number("Q"), EPOCH_MICROS + reader.number("q"), reader.number("I"))


def commit(reader: PgoutputReader) -> Commit:
    reader.take(1)
    return Commit(reader.number("Q"), reader.number("Q"), EPOCH_MICROS + reader.number("q"))


def relation(reader: PgoutputReader) -> Relation:
    oid, schema, table, identity = reader.number("I"), reader.text(), reader.text(), reader.letter()
    columns = tuple(relation_column(reader) for _ in range(reader.number("H")))
    return Relation(oid, schema, table, identity, columns)


def relation_column(reader: PgoutputReader) -> RelationColumn:
    flags, name, oid = reader.number("B"), reader.text(), reader.number("I")
    reader.take(4)  # the modifier of its type
    return RelationColumn(name, oid, bool(flags & 1))


def insert(reader: PgoutputReader) -> Insert:
    oid = reader.number("I")
    expect(reader, "N")
    return Insert(oid, reader.values())


def update(reader: PgoutputReader) -> Update:
    oid, kind = reader.number("I"), reader.letter()
    old = None
    if kind in ("K", "O"):
        old = reader.values()
        expect(reader, "N")
    elif kind != "N":
        raise PgoutputError(f"an update has {kind!r}: expected K, O or N")
    return Update(oid, reader.values(), old, kind == "K")


def delete(reader: PgoutputReader) -> Delete:
    oid, kind = reader.number("I"), reader.letter()
    if kind not in ("K", "O"):
        raise PgoutputError(f"a deletion has {kind!r}: expected K or O")
    return Delete(oid, reader.values(), kind == "K")


def truncate(reader: PgoutputReader) -> Truncate:
    count = reader.number("I")
    reader.take(1)  # the flag for CASCADE
    if count > 100_000:
        raise PgoutputError(f"a message has {count} truncated tables")
    return Truncate(tuple(reader.number("I") for _ in range(count)))


def expect(reader: PgoutputReader, letter: str) -> None:
    found = reader.letter()
    if found != letter:
        raise PgoutputError(f"a change has {found!r}: expected {letter}")


READERS: dict[str, Callable[[PgoutputReader], Message]] = {
    "B": begin,
    "C": commit,
    "R": relation,
    "I": insert,
    "U": update,
    "D": delete,
    "T": truncate,
}
