"""The dialect of SQLite: it has one writer at a time, and times in several text forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NUMBERED = """
select 1 from pragma_table_info(:table) where lower(name) = lower(:column) and pk and lower(type) = 'integer'
and (select sum(pk) from pragma_table_info(:table)) = 1
and not exists (select 1 from pragma_index_list(:table) where origin = 'pk')
"""
"""Select a row if the column is an INTEGER PRIMARY KEY, to which SQLite assigns numbers: such a key has no index of its
own.
"""

MOMENT = (
    """
case typeof({it})
when 'blob' then null
when 'text' then case when {it} glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' then julianday({it})
                      when {it} <> '' and {it} not glob '*[^0-9.]*' then """
    + (
        NUMBER := """
     case when {number} >= 1721425.5 and {number} < 5373484.5 then julianday({number})
          when {number} >= 1e8 and {number} < 1e10 then julianday({number}, 'unixepoch')
          when {number} >= 1e11 and {number} < 1e13 then julianday({number} / 1000.0, 'unixepoch') end"""
    )
    + """ end
else """
    + NUMBER
    + """
end"""
)
"""A time as Julian day. A date in text, a Julian day from the year 1 on, and seconds or milliseconds since 1970 (from
1973 to 2286) cannot be confused with each other, or with numbers such as 20260501. All other values are null and
reported: `julianday` itself would read '12:00' as a day of 2000 and 2026 as a day of the year -4707, and does not
support seconds.
"""


class SqliteDialect:
    """A visible row was committed after all rows that were visible before it."""

    example = "2026-05-01 10:00:00, or seconds or milliseconds since 1970"
    setting_on = "give the next row a greater one"

    def moment(self, of: str) -> str:
        return MOMENT.format(it=of, number=f"cast({of} as real)")

    def as_text(self, name: str) -> str:
        return f"strftime('%Y-%m-%d %H:%M:%f', {self.moment(name)})"

    def mark(self, declared: str) -> str:
        return "julianday(?)"

    def without_order(self, name: str, declared: str) -> str | None:
        return f"{name} is not null and {self.moment(name)} is null"

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
        kept = None  # a table with AUTOINCREMENT does not reuse numbers of deleted rows
        if connection.execute("select 1 from sqlite_master where name = 'sqlite_sequence'").fetchone():
            kept = connection.execute(
                "select seq from sqlite_sequence where lower(name) = lower(?)", (name,)
            ).fetchone()
        return max(int(highest), int(kept[0]) if kept else 0) + 1

    def writing(self, connection: Any, table: str) -> set[str]:
        return set()

    def is_settled(self, connection: Any, query: str, values: Sequence[Any]) -> bool:
        return True
