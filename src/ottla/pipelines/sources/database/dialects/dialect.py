"""The differences between databases when tables are read in the order of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Dialect(Protocol):
    """The SQL of a database for times, numbers and open transactions. Names are quoted by the caller."""

    setting_on: str
    """The remedy for a column with restarted numbers."""

    example: str
    """A time that the database can compare."""

    def moment(self, of: str) -> str:
        """Return a time in the form that the database compares."""

    def as_text(self, name: str) -> str:
        """Return a column's time in the form stored in positions."""

    def mark(self, declared: str) -> str:
        """Return the placeholder for such a time in the form that the database compares, for a column with this declared type."""

    def without_order(self, name: str, declared: str) -> str | None:
        """Return the condition for rows with a time that has no order: infinite or not comparable.

        None if there cannot be any.
        """

    def bound(self, connection: Any, declared: str, zone: str, delay_seconds: float) -> str:
        """Return the time before which no more rows can appear; `zone` is that of columns without one."""

    def is_behind(self, connection: Any, declared: str, zone: str, last: str) -> bool:
        """Return True if the database's clock is behind a time that was read."""

    def next_number(self, connection: Any, name: str, table: str, column: str) -> int | None:
        """Return the number that the database would give the column in the next row; None if it gives none or does not show it.

        `name` and `column` are not quoted.
        """

    def writing(self, connection: Any, table: str) -> set[str]:
        """Return the transactions that may have taken a number of the table without having committed its row."""

    def is_settled(self, connection: Any, query: str, values: Sequence[Any]) -> bool:
        """Return True if all rows of the query are committed by transactions that are not in `writing`."""
