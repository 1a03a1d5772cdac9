"""The dialect of PostgreSQL.

A transaction locks a table before it takes a number from a sequence, and `now()` is the start of the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WRITES = "('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')"
WRITING = f"""
select virtualtransaction from pg_locks where locktype = 'relation' and relation = to_regclass(%s)
and database = (select oid from pg_database where datname = current_database())
and pid is distinct from pg_backend_pid() and mode in {WRITES}
"""
TIME = """
select (least(
  clock_timestamp() - make_interval(secs => %s),
  (select min(xact_start) from pg_stat_activity
   where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')
) {zone})::{kind}::text
"""
"""If rows have the time of their transaction, no row can appear with a time before the start of the oldest transaction."""
SEQUENCE = "select name from pg_get_serial_sequence(%s, %s) name where has_sequence_privilege(name, 'SELECT')"
"""The column's own sequence, if there is one and the user may read it."""
WITH_ZONE = "timestamp with time zone"


class PostgresqlDialect:
    """Compares times in the declared type of their columns."""

    example = "2026-05-01 10:00:00"
    setting_on = "set its sequence on"

    def moment(self, of: str) -> str:
        return of

    def as_text(self, name: str) -> str:
        return f'{name}::text as "ottla time"'

    def mark(self, declared: str) -> str:
        return f"%s::{declared}"

    def without_order(self, name: str, declared: str) -> str | None:
        return f"{name} in ('infinity', '-infinity')" if declared.startswith(("date", "timestamp")) else None

    def bound(self, connection: Any, declared: str, zone: str, delay_seconds: float) -> str:
        at_zone = "" if declared == WITH_ZONE else f" at time zone '{zone}'"
        query = TIME.format(zone=at_zone, kind=declared)
        (bound,) = connection.execute(query, (delay_seconds,)).fetchone()
        return str(bound)

    def is_behind(self, connection: Any, declared: str, zone: str, last: str) -> bool:
        now = "clock_timestamp()" if declared == WITH_ZONE else f"clock_timestamp() at time zone '{zone}'"
        (behind,) = connection.execute(f"select {self.mark(declared)} > {now}", (last,)).fetchone()
        return bool(behind)

    def next_number(self, connection: Any, name: str, table: str, column: str) -> int | None:
        found = connection.execute(SEQUENCE, (table, column)).fetchone()
        if found is None:
            return None
        (number,) = connection.execute(f"select last_value + is_called::int from {found[0]}").fetchone()
        return int(number)

    def writing(self, connection: Any, table: str) -> set[str]:
        return {one for (one,) in connection.execute(WRITING, (table,))}

    def is_settled(self, connection: Any, query: str, values: Sequence[Any]) -> bool:
        return True
