"""Converts messages to changes of one table, each with its transaction. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.pipelines.sources.postgres_cdc.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    PgoutputError,
    Relation,
    Truncate,
    Unchanged,
    Update,
    Values,
)

Row = dict[str, bytes | Unchanged | None]


class Change(NamedTuple):
    """A change of one row."""

    op: str
    """`c`, `u`, `d` as in Debezium, and `t` for TRUNCATE."""
    before: Row | None
    after: Row | None
    begin: Begin
    lsn: int


class TableChanges:
    """The changes of one table from the messages of a slot, of transactions that end after the position `after`."""

    def __init__(self, oid: int, key: Sequence[str], after: int = 0) -> None:
        self.oid, self.key, self.after = oid, key, after
        self.end: int | None = None
        """The end of the last transaction that was read completely."""
        self._begin: Begin | None = None
        self._lsn = 0
        self._relations: dict[int, Relation] = {}

    def from_messages(self, messages: Iterable[tuple[int, Message]]) -> Iterator[Change]:
        """Yield the changes of messages with their positions in the log."""
        for self._lsn, message in messages:
            match message:
                case Begin():
                    self._begin = message
                case Commit():
                    self._begin, self.end = None, message.end_lsn
                case Relation():
                    self._relations[message.oid] = message
                case _ if self._begin is None or self._begin.final_lsn >= self.after:
                    yield from self._change(message)

    def _change(self, message: Message) -> Iterator[Change]:
        match message:
            case Insert(oid, new):
                yield from self._make_change(oid, "c", None, new)
            case Update(oid, new, old, old_is_key):
                yield from self._update_changes(oid, new, old, old_is_key)
            case Delete(oid, old, old_is_key):
                if (relation := self._relation(oid)) is not None:
                    self._ensure_key(relation)
                    yield from self._make_change(oid, "d", old, None, old_is_key)
            case Truncate(oids):
                for oid in oids:
                    yield from self._make_change(oid, "t", None, None)

    def _update_changes(self, oid: int, new: Values, old: Values | None, old_is_key: bool) -> Iterator[Change]:
        """Yield one change, or two if the key changed: as in Debezium, the row of the old key is deleted and a new one created."""
        relation = self._relation(oid)
        if relation is None:
            return
        self._ensure_key(relation)
        if old is not None and len(old) == len(new) == len(relation.columns):
            # The old row is complete, or has only the key. It includes a long key value even if that did not change.
            known = [not old_is_key or column.is_key for column in relation.columns]
            pairs = zip(new, old, known, strict=True)
            new = tuple(was if there and is_now is UNCHANGED else is_now for is_now, was, there in pairs)
        before, after = row_by_column(relation, old, old_is_key), row_by_column(relation, new)
        if before is not None and after is not None and any(before.get(one) != after[one] for one in self.key):
            yield from self._make_change(oid, "d", old, None, old_is_key)
            yield from self._make_change(oid, "c", None, new)
        else:
            yield from self._make_change(oid, "u", old, new, old_is_key)

    def _ensure_key(self, relation: Relation) -> None:
        """Raise PgoutputError if the log does not identify the changed row by the key."""
        there = {column.name for column in relation.columns if column.is_key or relation.identity == "f"}
        missing = [one for one in self.key if one not in there]
        if missing:
            raise PgoutputError(
                f"table {relation.table}: its replica identity was altered, so changed rows do not have {', '.join(missing)} of the key "
                f"({', '.join(self.key)}); start again under another name, with a new snapshot"
            )

    def _make_change(
        self, oid: int, op: str, old: Values | None, new: Values | None, old_is_key: bool = False
    ) -> Iterator[Change]:
        relation = self._relation(oid)
        if relation is None:
            return
        if self._begin is None:
            raise PgoutputError("a change is outside of any transaction")
        yield Change(op, row_by_column(relation, old, old_is_key), row_by_column(relation, new), self._begin, self._lsn)

    def _relation(self, oid: int) -> Relation | None:
        """Return the description of the captured table; None for other tables of the publication."""
        found = self._relations.get(oid)
        if found is None:
            raise PgoutputError(f"a change of table {oid}, which was not described by an earlier message")
        return found if oid == self.oid else None


def row_by_column(relation: Relation, values: Values | None, keys_only: bool = False) -> Row | None:
    """Return values by column name."""
    if values is None:
        return None
    if len(values) != len(relation.columns):
        raise PgoutputError(f"a row of {len(values)} values for {len(relation.columns)} columns of {relation.table}")
    pairs = zip(relation.columns, values, strict=True)
    return {column.name: value for column, value in pairs if column.is_key or not keys_only}
