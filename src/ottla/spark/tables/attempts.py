"""Retries a commit while other writers commit, for both table formats."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ottla.spark.tables.errors import TableError
from ottla.spark.tables.guard import BatchMark, describe_gap, is_due

log = logging.getLogger(__name__)
ATTEMPTS = 20
"""The most attempts of a commit."""
T = TypeVar("T")


def commit_once(
    name: str,
    open_table: Callable[[], T | None],
    done: Callable[[T, BatchMark], BatchMark | None],
    add: Callable[[T], None],
    lost_race: type[Exception] | tuple[type[Exception], ...],
    mark: BatchMark | None,
) -> bool:
    """Call `add` with the current table, again after each error of `lost_race`; return False if the table already has `mark`."""
    refusal: Exception | None = None
    for _ in range(ATTEMPTS):
        table = open_table()
        if table is None:
            raise TableError(f"table {name} does not exist any more; it existed when the write started")
        if mark:
            known = done(table, mark)
            if not is_due(mark, known, name):
                return False
            if (warning := describe_gap(mark, known, name)) is not None:
                log.warning("%s", warning)
        try:
            add(table)
            return True
        except lost_race as error:
            refusal = error
    raise TableError(f"table {name} rejected {ATTEMPTS} commits, the last with: {refusal}")
