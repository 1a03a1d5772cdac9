"""Messages one after the other become changes of one table, each with what is known of its transaction. Pure."""

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
    """What happened to one row."""

    op: str
    """`c`, `u`, `d`, as Debezium has it, and `t` where the table was emptied."""
    before: Row | None
    after: Row | None
    begin: Begin
    lsn: int


class Changes:
    """The changes of one table out of the messages of a slot; of transactions that end after the place `after`."""

    def __init__(self, oid: int, key: Sequence[str], after: int = 0) -> None:
        self.oid, self.key, self.after = oid, key, after
        self.end: int | None = None
        """Where the last transaction that was read to its end, ends."""
        self._begin: Begin | None = None
        self._lsn = 0
        self._relations: dict[int, Relation] = {}

    def of(self, messages: Iterable[tuple[int, Message]]) -> Iterator[Change]:
        """Messages come with their places in the log."""
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
                yield from self._made(oid, "c", None, new)
            case Update(oid, new, old, old_is_key):
                yield from self._updated(oid, new, old, old_is_key)
            case Delete(oid, old, old_is_key):
                if (relation := self._relation(oid)) is not None:
                    self._ensure_key(relation)
                    yield from self._made(oid, "d", old, None, old_is_key)
            case Truncate(oids):
                for oid in oids:
                    yield from self._made(oid, "t", None, None)

    def _updated(self, oid: int, new: Values, old: Values | None, old_is_key: bool) -> Iterator[Change]:
        """One change; two where the key is another, as Debezium has it: the row of the old one is gone."""
        relation = self._relation(oid)
        if relation is None:
            return
        self._ensure_key(relation)
        if old is not None and len(old) == len(new) == len(relation.columns):
            # The old row is whole, or has the key alone; a long value of a key is in it even where it was not changed.
            known = [not old_is_key or column.is_key for column in relation.columns]
            pairs = zip(new, old, known, strict=True)
            new = tuple(was if there and is_now is UNCHANGED else is_now for is_now, was, there in pairs)
        before, after = row(relation, old, old_is_key), row(relation, new)
        if before is not None and after is not None and any(before.get(one) != after[one] for one in self.key):
            yield from self._made(oid, "d", old, None, old_is_key)
            yield from self._made(oid, "c", None, new)
        else:
            yield from self._made(oid, "u", old, new, old_is_key)

    def _ensure_key(self, relation: Relation) -> None:
        """PgoutputError where the log does not say which row of the key was changed."""
        there = {column.name for column in relation.columns if column.is_key or relation.identity == "f"}
        missing = [one for one in self.key if one not in there]
        if missing:
            raise PgoutputError(
                f"table {relation.table}: its replica identity was altered, so that changed rows come without {', '.join(missing)} of the key "
                f"({', '.join(self.key)}); begin anew under another name, with a new snapshot"
            )

    def _made(
        self, oid: int, op: str, old: Values | None, new: Values | None, old_is_key: bool = False
    ) -> Iterator[Change]:
        relation = self._relation(oid)
        if relation is None:
            return
        if self._begin is None:
            raise PgoutputError("a change stands outside of any transaction")
        yield Change(op, row(relation, old, old_is_key), row(relation, new), self._begin, self._lsn)

    def _relation(self, oid: int) -> Relation | None:
        """Return the description of the captured table; None for other tables that the publication has."""
        found = self._relations.get(oid)
        if found is None:
            raise PgoutputError(f"a change of table {oid}, which no message has described")
        return found if oid == self.oid else None


def row(relation: Relation, values: Values | None, keys_only: bool = False) -> Row | None:
    """Values by the names of their columns."""
    if values is None:
        return None
    if len(values) != len(relation.columns):
        raise PgoutputError(f"a row of {len(values)} values for {len(relation.columns)} columns of {relation.table}")
    pairs = zip(relation.columns, values, strict=True)
    return {column.name: value for column, value in pairs if column.is_key or not keys_only}
