"""A commit tried again while others commit, whichever format the table has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.spark.tables.errors import TableError
from ottla.spark.tables.guard import Mark, is_due

ATTEMPTS = 20
"""How often a commit is tried while others commit."""
T = TypeVar("T")


def commit_once(
    name: str,
    open_table: Callable[[], T | None],
    done: Callable[[T, Mark], Mark | None],
    add: Callable[[T], None],
    lost_race: type[Exception] | tuple[type[Exception], ...],
    mark: Mark | None,
) -> bool:
    """`add` to the table as it is then, anew for each error of `lost_race`; False if the table has `mark` already."""
    refusal: Exception | None = None
    for _ in range(ATTEMPTS):
        table = open_table()
        if table is None:
            raise TableError(f"table {name} is gone; it was there when the write began")
        if mark and not is_due(mark, done(table, mark), name):
            return False
        try:
            add(table)
            return True
        except lost_race as error:
            refusal = error
    raise TableError(f"table {name} refused {ATTEMPTS} commits, the last because: {refusal}")
