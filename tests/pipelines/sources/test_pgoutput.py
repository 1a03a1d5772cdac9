"""Messages of pgoutput are read as they were written, and damaged ones are one clear error."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.sources.postgres_cdc.changes import Change, TableChanges
from ottla.pipelines.sources.postgres_cdc.pgoutput import (
    EPOCH_MICROS,
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Other,
    PgoutputError,
    Relation,
    RelationColumn,
    Truncate,
    Update,
    Value,
    Values,
    decode,
)

OID = st.integers(0, 2**32 - 1)
LSN = st.integers(0, 2**64 - 1)
MICROS = st.integers(-(2**62), 2**62)
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
VALUE: st.SearchStrategy[Value] = st.none() | st.just(UNCHANGED) | st.binary(max_size=20)
VALUES = st.lists(VALUE, max_size=5).map(tuple)
COLUMN = st.builds(RelationColumn, NAME, OID, st.booleans())

MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Begin, LSN, MICROS, OID),
    st.builds(Commit, LSN, LSN, MICROS),
    st.builds(Relation, OID, NAME, NAME, st.sampled_from("dfin"), st.lists(COLUMN, max_size=4).map(tuple)),
    st.builds(Insert, OID, VALUES),
    st.builds(
        lambda oid, new, old, key: Update(oid, new, old, key and old is not None),
        OID,
        VALUES,
        st.none() | VALUES,
        st.booleans(),
    ),
    st.builds(Delete, OID, VALUES, st.booleans()),
    st.builds(Truncate, st.lists(OID, max_size=4).map(tuple)),
)


def values(row: Values) -> bytes:
    parts = [
        b"n" if one is None else b"t" + struct.pack(">i", len(one)) + one if isinstance(one, bytes) else b"u"
        for one in row
    ]
    return struct.pack(">H", len(row)) + b"".join(parts)


def text(name: str) -> bytes:
    return name.encode() + b"\0"


def encode(message: Message) -> bytes:
    """Return a message encoded like PostgreSQL's."""
    match message:
        case Begin(lsn, micros, xid):
            return b"B" + struct.pack(">QqI", lsn, micros - EPOCH_MICROS, xid)
        case Commit(lsn, end, micros):
            return b"C\0" + struct.pack(">QQq", lsn, end, micros - EPOCH_MICROS)
        case Relation(oid, schema, table, identity, columns):
            parts = [struct.pack(">B", c.is_key) + text(c.name) + struct.pack(">Ii", c.oid, -1) for c in columns]
            head = b"R" + struct.pack(">I", oid) + text(schema) + text(table) + identity.encode()
            return head + struct.pack(">H", len(columns)) + b"".join(parts)
        case Insert(oid, new):
            return b"I" + struct.pack(">I", oid) + b"N" + values(new)
        case Update(oid, new, old, is_key):
            before = b"" if old is None else (b"K" if is_key else b"O") + values(old)
            return b"U" + struct.pack(">I", oid) + before + b"N" + values(new)
        case Delete(oid, old, is_key):
            return b"D" + struct.pack(">I", oid) + (b"K" if is_key else b"O") + values(old)
        case Truncate(oids):
            return b"T" + struct.pack(">IB", len(oids), 0) + b"".join(struct.pack(">I", oid) for oid in oids)
        case Other(kind):
            return kind.encode()


@given(MESSAGES)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    assert decode(encode(message)) == message


@given(MESSAGES, st.data())
def test_damaged_bytes_are_another_message_or_one_clear_error(message: Message, data: st.DataObject) -> None:
    found = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(found) - 1)) if found else 0
        match data.draw(st.integers(0, 2)):
            case 0 if found:
                found[at] = data.draw(st.integers(0, 255))
            case 1:
                del found[at:]
            case _:
                found[at:at] = data.draw(st.binary(max_size=3))
    try:
        decode(bytes(found))
    except PgoutputError:
        pass


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_one_clear_error(data: bytes) -> None:
    try:
        decode(data)
    except PgoutputError:
        pass


@pytest.mark.parametrize("kind", ["O", "Y", "M"])
def test_messages_of_no_use_are_passed_over(kind: str) -> None:
    assert decode(kind.encode() + b"whatever") == Other(kind)


TABLE = Relation(1, "public", "t", "d", (RelationColumn("id", 23, True), RelationColumn("a", 25, False)))
WHOLE = TABLE._replace(identity="f", columns=tuple(one._replace(is_key=True) for one in TABLE.columns))


def changes(*messages: Message, relation: Relation = TABLE, after: int = 0) -> list[Change]:
    """Return the changes of one transaction that ends at 100."""
    whole = [Begin(100, 0, 7), relation, *messages, Commit(100, 108, 0)]
    return list(TableChanges(1, ("id",), after).from_messages((lsn, one) for lsn, one in enumerate(whole)))


def shown(change: Change) -> tuple[Any, ...]:
    return change.op, change.before, change.after


def test_an_update_without_an_old_row_has_no_before() -> None:
    (found,) = changes(Update(1, (b"1", b"x"), None, False))
    assert shown(found) == ("u", None, {"id": b"1", "a": b"x"})


def test_unchanged_values_of_an_update_are_taken_from_a_complete_old_row() -> None:
    (found,) = changes(Update(1, (b"1", UNCHANGED), (b"1", b"long"), False), relation=WHOLE)
    assert shown(found) == ("u", {"id": b"1", "a": b"long"}, {"id": b"1", "a": b"long"})
    (found,) = changes(Update(1, (b"1", UNCHANGED), None, False))
    assert shown(found) == ("u", None, {"id": b"1", "a": UNCHANGED})


@pytest.mark.parametrize(
    ("relation", "old", "is_key", "before"),
    [(TABLE, (b"1", None), True, {"id": b"1"}), (WHOLE, (b"1", b"x"), False, {"id": b"1", "a": b"x"})],
)
def test_another_key_is_a_deleted_row_and_a_new_one(
    relation: Relation, old: Values, is_key: bool, before: dict[str, Any]
) -> None:
    gone, made = changes(Update(1, (b"2", b"x"), old, is_key), relation=relation)
    assert (shown(gone), shown(made)) == (("d", before, None), ("c", None, {"id": b"2", "a": b"x"}))


def test_changes_of_transactions_before_the_position_are_left_out() -> None:
    assert changes(Insert(1, (b"1", b"x")), after=108) == []
    assert len(changes(Insert(1, (b"1", b"x")), after=100)) == 1


def test_other_tables_of_the_publication_are_left_out() -> None:
    other = TABLE._replace(oid=2, table="other")
    assert changes(other, Insert(2, (b"1", b"x"))) == []


@pytest.mark.parametrize(
    "message",
    [Insert(9, (b"1", b"x")), Insert(1, (b"1",)), Delete(9, (b"1", None), True)],
    ids=["table", "row", "deletion"],
)
def test_a_change_that_does_not_fit_is_an_error(message: Message) -> None:
    with pytest.raises(PgoutputError):
        changes(message)
