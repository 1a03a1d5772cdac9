"""The dialect of MySQL. Uncommitted rows are found by their locks, and rows being written by the running statements.

One statement takes a number, sets the row's time and writes the row. So the rows up to a number or time are final when
all statements have ended that ran when it was read, and a locking read (`FOR SHARE NOWAIT`) then finds no locked row.
Outside of an explicit transaction such a read takes no gap locks and releases its own locks at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ottla.pipelines.databases.database import DatabaseError

IDLE = "('Sleep', 'Daemon', 'Binlog Dump', 'Connect', 'Slave_IO', 'Slave_SQL', 'Slave_worker')"
RUNNING = f"from information_schema.processlist where id <> connection_id() and command not in {IDLE}"
CLOCK = f"select utc_timestamp(6), (select max(time) {RUNNING})"
"""The server's clock, read before the running statements, and the age of the oldest statement in whole seconds."""
MAY_SEE = """
select 1 from information_schema.user_privileges where privilege_type = 'PROCESS'
and grantee = concat("'", replace(current_user(), '@', "'@'"), "'") limit 1
"""
NEXT_NUMBER = """
select coalesce(t.auto_increment, 1) from information_schema.tables t join information_schema.columns c using (table_schema, table_name)
where table_schema = coalesce(%s, database()) and table_name = %s and c.column_name = %s and c.extra like '%%auto_increment%%'
"""
"""MySQL returns no number for a table that was never written to."""
FRESH = "set session information_schema_stats_expiry = 0"
"""Disable the cache of table statistics, which is up to a day old."""
LOCKED = (1205, 3572)
"""The error codes of MariaDB and MySQL for a row locked by another transaction."""


class MysqlDialect:
    """Sessions are in UTC. So are columns of type timestamp; all others are in the zone of the pipeline file."""

    example = "2026-05-01 10:00:00"
    setting_on = "set its AUTO_INCREMENT on"

    def moment(self, of: str) -> str:
        return of

    def as_text(self, name: str) -> str:
        return f"cast({name} as char) as `ottla time`"

    def mark(self, declared: str) -> str:
        return "cast(%s as datetime(6))" if declared.startswith(("date", "timestamp")) else "%s"

    def without_order(self, name: str, declared: str) -> str | None:
        return f"{name} < '0001-01-01'" if declared.startswith(("date", "timestamp")) else None  # MySQL's zero dates

    def bound(self, connection: Any, declared: str, zone: str, delay_seconds: float) -> str:
        self.ensure_sight(connection)
        now, oldest = connection.execute(CLOCK).fetchone()
        running = 0 if oldest is None else float(oldest) + 1
        return written(now - timedelta(seconds=max(delay_seconds, running)), declared, zone)

    def is_behind(self, connection: Any, declared: str, zone: str, last: str) -> bool:
        (now,) = connection.execute("select utc_timestamp(6)").fetchone()
        return last > written(now, declared, zone)

    def next_number(self, connection: Any, name: str, table: str, column: str) -> int | None:
        if not connection.is_mariadb:
            connection.execute(FRESH)
        database, _, own = name.rpartition(".")
        found = connection.execute(NEXT_NUMBER, (database or None, own, column)).fetchone()
        return None if found is None else int(found[0])

    def writing(self, connection: Any, table: str) -> set[str]:
        self.ensure_sight(connection)
        which = "id, query_id" if connection.is_mariadb else "id"
        return {" ".join(map(str, one)) for one in connection.execute(f"select {which} {RUNNING}").fetchall()}

    def is_settled(self, connection: Any, query: str, values: Sequence[Any]) -> bool:
        import pymysql

        lock = "lock in share mode nowait" if connection.is_mariadb else "for share nowait"
        try:
            connection.execute(f"select count(*) from ({query} {lock}) as ottla_rows", values).fetchall()
        except pymysql.OperationalError as error:
            if error.args and error.args[0] in LOCKED:
                return False
            raise
        return True

    def ensure_sight(self, connection: Any) -> None:
        """Raise DatabaseError if the user cannot see the statements of other users."""
        if connection.execute(MAY_SEE).fetchone() is None:
            raise DatabaseError(
                "the user cannot see running statements, so rows that are committed late would be lost; GRANT PROCESS ON *.* to the user"
            )


def written(moment: datetime, declared: str, zone: str) -> str:
    """Return a UTC time as text for such a column, truncated to the column's precision."""
    if not declared.startswith("timestamp"):
        moment = moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    text = f"{moment:%Y-%m-%d %H:%M:%S.%f}"
    if declared == "date":
        return text[:10]
    digits = digits_of(declared)
    return text[: 20 + digits] if digits else text[:19]


def digits_of(declared: str) -> int:
    """Return the fractional digits: 3 for `datetime(3)`, 0 for `datetime`, 6 for types without times, such as text."""
    if not declared.startswith(("datetime", "timestamp")):
        return 6
    inside = declared.partition("(")[2].partition(")")[0]
    return int(inside) if inside.isdigit() else 0
