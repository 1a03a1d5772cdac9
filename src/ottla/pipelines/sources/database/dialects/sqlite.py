"""SQLite: one writer at a time, and times that are text in several forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NUMBERED = """
select 1 from pragma_table_info(:table) where lower(name) = lower(:column) and pk and lower(type) = 'integer'
and (select sum(pk) from pragma_table_info(:table)) = 1
and not exists (select 1 from pragma_index_list(:table) where origin = 'pk')
"""
"""Whether a column is an INTEGER PRIMARY KEY, to which SQLite gives numbers: such a key has no index of its own."""


class SqliteDialect:
    """A row that is there was committed after all that were there before."""

    setting_on = "give the next row a greater one"

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

    def next_number(self, connection: Any, name: str, table: str, column: str) -> int | None:
        if connection.execute(NUMBERED, {"table": name, "column": column}).fetchone() is None:
            return None
        (highest,) = connection.execute(f"select coalesce(max(rowid), 0) from {table}").fetchone()
        kept = None  # a table that is declared AUTOINCREMENT gives no number twice, also where its row was deleted
        if connection.execute("select 1 from sqlite_master where name = 'sqlite_sequence'").fetchone():
            kept = connection.execute(
                "select seq from sqlite_sequence where lower(name) = lower(?)", (name,)
            ).fetchone()
        return max(int(highest), int(kept[0]) if kept else 0) + 1

    def writing(self, connection: Any, table: str) -> set[str]:
        return set()

    def is_settled(self, connection: Any, query: str, values: Sequence[Any]) -> bool:
        return True
