"""SQLite: one writer at a time, and times that are text in several forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SqliteDialect:
    """A row that is there was committed after all that were there before."""

    def moment(self, of: str) -> str:
        return f"julianday({of})"

    def as_text(self, name: str) -> str:
        return name

    def mark(self, declared: str) -> str:
        return "?"

    def bound(self, connection: Any, declared: str, zone: str, delay_seconds: float) -> str:
        delay = f"-{delay_seconds} seconds"
        (bound,) = connection.execute("select strftime('%Y-%m-%d %H:%M:%f', 'now', ?)", (delay,)).fetchone()
        return str(bound)

    def is_behind(self, connection: Any, declared: str, zone: str, last: str) -> bool:
        (behind,) = connection.execute("select julianday(?) > julianday('now')", (last,)).fetchone()
        return bool(behind)

    def begins_again(self, connection: Any, table: str, column: str, last: int) -> bool:
        return False  # a number that was deleted last is given again, so that nothing can be told from it

    def writing(self, connection: Any, table: str) -> set[str]:
        return set()

    def is_settled(self, connection: Any, query: str, values: Sequence[Any]) -> bool:
        return True
