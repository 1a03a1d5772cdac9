"""A commit tried again while others commit, whichever format the table has."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ottla.spark.tables.errors import TableError
from ottla.spark.tables.guard import BatchMark, gap, is_due

log = logging.getLogger(__name__)
ATTEMPTS = 20
"""How often a commit is tried while others commit."""
T = TypeVar("T")


def commit_once(
    name: str,
    open_table: Callable[[], T | None],
    done: Callable[[T, BatchMark], BatchMark | None],
    add: Callable[[T], None],
    lost_race: type[Exception] | tuple[type[Exception], ...],
    mark: BatchMark | None,
) -> bool:
    """`add` to the table as it is then, anew for each error of `lost_race`; False if the table has `mark` already."""
    refusal: Exception | None = None
    for _ in range(ATTEMPTS):
        table = open_table()
        if table is None:
            raise TableError(f"table {name} is gone; it was there when the write began")
        if mark:
            known = done(table, mark)
            if not is_due(mark, known, name):
                return False
            if (said := gap(mark, known, name)) is not None:
                log.warning("%s", said)
        try:
            add(table)
            return True
        except lost_race as error:
            refusal = error
    raise TableError(f"table {name} refused {ATTEMPTS} commits, the last because: {refusal}")
