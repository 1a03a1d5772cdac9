"""MySQL: what was written and is not committed is found by its locks, what is being written by the statements that run.

A number is taken and its row written in one statement, which also says the row's time. So a number or time is as it will be when the
statements have ended that ran as it was looked up, and when a read that takes locks finds no row that is locked. Such a read
takes none of the gaps between rows, and gives up its own at once.
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
"""Its clock, read before it is looked who runs; whole seconds that the oldest statement has taken."""
MAY_SEE = """
select 1 from information_schema.user_privileges where privilege_type = 'PROCESS'
and grantee = concat("'", replace(current_user(), '@', "'@'"), "'") limit 1
"""
NEXT_NUMBER = """
select coalesce(t.auto_increment, 1) from information_schema.tables t join information_schema.columns c using (table_schema, table_name)
where table_schema = coalesce(%s, database()) and table_name = %s and c.column_name = %s and c.extra like '%%auto_increment%%'
"""
"""MySQL has none for a table into which nothing was written yet."""
FRESH = "set session information_schema_stats_expiry = 0"
"""What MySQL says of tables is else up to a day old."""
LOCKED = (1205, 3572)
"""How MariaDB and MySQL say that somebody has a lock."""


class MysqlDialect:
    """Sessions are in UTC: so are columns of the type timestamp, and all others in the zone that the file says."""

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
        """DatabaseError for a user who would not see the statements of others."""
        if connection.execute(MAY_SEE).fetchone() is None:
            raise DatabaseError(
                "the user may not see which statements run, so that rows which are committed late would be lost; GRANT PROCESS ON *.* to it"
            )


def written(moment: datetime, declared: str, zone: str) -> str:
    """A moment of UTC as such a column has it, cut to what it has of a second."""
    if not declared.startswith("timestamp"):
        moment = moment.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    text = f"{moment:%Y-%m-%d %H:%M:%S.%f}"
    if declared == "date":
        return text[:10]
    digits = digits_of(declared)
    return text[: 20 + digits] if digits else text[:19]


def digits_of(declared: str) -> int:
    """3 of `datetime(3)`, 0 of `datetime`; 6 of what is no time, such as text."""
    if not declared.startswith(("datetime", "timestamp")):
        return 6
    inside = declared.partition("(")[2].partition(")")[0]
    return int(inside) if inside.isdigit() else 0
