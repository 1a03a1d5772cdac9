"""What has to be known of a kind of database to read its tables in the order of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Dialect(Protocol):
    """Its SQL of times, and what it knows of numbers and of those who write. Names are quoted by the caller."""

    setting_on: str
    """What helps where a column's numbers begin again."""

    example: str
    """A time that it can compare."""

    def moment(self, of: str) -> str:
        """A time as the database compares it."""

    def as_text(self, name: str) -> str:
        """A column's time as positions have it."""

    def mark(self, declared: str) -> str:
        """The placeholder of such a time, for a column that is declared so, as the database compares it."""

    def without_order(self, name: str, declared: str) -> str | None:
        """The condition of rows whose time is before or after all others, or cannot be compared; None where there are none."""

    def bound(self, connection: Any, declared: str, zone: str, delay_seconds: float) -> str:
        """The time before which no row can come any more; the zone is that of columns that have none."""

    def is_behind(self, connection: Any, declared: str, zone: str, last: str) -> bool:
        """Whether its clock is behind a time that was read."""

    def next_number(self, connection: Any, name: str, table: str, column: str) -> int | None:
        """What the database would give the column of a next row by itself; None where it gives none, or does not tell.

        The name is the table's as the file has it, not quoted, and so is the column's.
        """

    def writing(self, connection: Any, table: str) -> set[str]:
        """Those who may have taken a number of the table, and not have committed its row."""

    def is_settled(self, connection: Any, query: str, values: Sequence[Any]) -> bool:
        """Whether all rows that the query would give are committed, by those who are not `writing`."""
