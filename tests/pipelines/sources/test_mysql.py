"""Tables of MySQL as sources: what only it has. What all databases have is in `test_database`, which asks it too."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ConfigError
from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.databases.mysql import address_of
from ottla.pipelines.sources.database.dialects.mysql import written
from tests.mysql import MySql
from tests.patience import eventually
from tests.pipelines.sources.asked import Asked
from tests.pipelines.sources.test_database import BY_BOTH, BY_ID, BY_TIME, ids, insert, source

pytestmark = pytest.mark.behaviour("D5")

TABLE = """create table orders (id bigint unsigned auto_increment primary key, item text,
at timestamp(6) not null default current_timestamp(6), key (at))"""


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    found = Asked(tmp_path)
    yield found
    found.stop()


def items(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["item"] for row in rows)


@pytest.mark.parametrize("way", [BY_ID, BY_TIME, BY_BOTH], ids=["id", "time", "both"])
def test_a_transaction_that_commits_late_with_an_earlier_number_and_time_is_not_lost(
    mysql: MySql, asked: Asked, way: dict[str, Any]
) -> None:
    mysql.run(TABLE)
    reader = asked.reader(source(mysql.url, **way))
    with closing(mysql.connect()) as slow:
        slow.cursor().execute("insert into orders (item) values ('late')")
        mysql.run("insert into orders (item) values ('early')")
        assert asked.next(reader) == []
        slow.commit()
    found: list[Any] = []

    def both() -> bool:
        found.extend(asked.next(reader))
        return len(found) == 2

    eventually(both)
    assert items(found) == ["early", "late"]
    assert asked.next(reader) == []


@pytest.mark.parametrize("way", [BY_ID, BY_TIME, BY_BOTH], ids=["id", "time", "both"])
def test_a_statement_that_has_its_number_and_has_not_written_its_row_is_waited_for(
    mysql: MySql, asked: Asked, way: dict[str, Any]
) -> None:
    """A trigger holds it up, after the number was taken."""
    name = mysql.name
    mysql.run(
        TABLE,
        "create trigger slow before insert on orders for each row set new.item = "
        f"if(new.item = 'late', (select concat(new.item, get_lock('{name}', 60)) from dual), new.item)",
    )
    reader = asked.reader(source(mysql.url, **way))
    slow = threading.Thread(target=mysql.run, args=("insert into orders (item) values ('late')",))
    with closing(mysql.connect()) as gate:
        gate.cursor().execute(f"select get_lock('{name}', 60)")
        slow.start()
        waits = f"select count(*) from information_schema.processlist where state = 'User lock' and db = '{name}'"
        eventually(lambda: mysql.rows(waits) == [(1,)])
        mysql.run("insert into orders (item) values ('early')")
        assert asked.next(reader) == []
    slow.join(60)
    found: list[Any] = []

    def both() -> bool:
        found.extend(asked.next(reader))
        return len(found) == 2

    eventually(both)
    assert items(found) == ["early", "late1"]


def test_an_endless_transaction_delays_only_the_rows_written_after_its_start(mysql: MySql, asked: Asked) -> None:
    mysql.run(TABLE, "insert into orders (item) values ('before')")
    reader = asked.reader(source(mysql.url, **BY_ID))
    assert ids(asked.next(reader)) == [1]
    with closing(mysql.connect()) as writer:
        writer.cursor().execute("insert into orders (item) values ('a')")
        mysql.run("insert into orders (item) values ('b')")
        assert asked.next(reader) == []
        writer.rollback()
    eventually(lambda: ids(asked.next(reader)) == [3])


@pytest.mark.behaviour("D8")
def test_a_disconnected_server_is_an_error_and_the_stream_continues_after_its_return(
    mysql: MySql, asked: Asked
) -> None:
    mysql.run(TABLE, *insert(1))
    reader = asked.reader(source(mysql.url, **BY_ID))
    assert ids(asked.next(reader)) == [1]
    mysql.server.kill()
    with pytest.raises(DatabaseError) as gone:
        asked.next(reader)
    with pytest.raises(DatabaseError) as refused:
        asked.next(reader)
    mysql.server.start()
    mysql.run(*insert(2))
    eventually(lambda: ids(asked.next(reader)) == [2])
    for error in (gone, refused):
        assert str(error.value).startswith(f"database {mysql.shown}: ")
        assert "s3cret" not in str(error.value)


VALUES: dict[str, tuple[str, Any]] = {
    "bigint": ("9007199254740993", 9007199254740993),
    "bigint unsigned": ("18446744073709551615", Decimal(18446744073709551615)),
    "int unsigned": ("4294967295", 4294967295),
    "tinyint unsigned": ("255", 255),
    "boolean": ("2", 2),
    "decimal(10,2)": ("5.50", Decimal("5.50")),
    "decimal(50,1)": ("1234567890123456789012345678901234567890.5", "1234567890123456789012345678901234567890.5"),
    "float": ("16777215", 16777215.0),
    "double": ("0.1", 0.1),
    "varbinary(9)": ("x'00ff'", b"\x00\xff"),
    "date": ("'2026-05-01'", datetime.date(2026, 5, 1)),
    "datetime(6)": ("'2026-05-01 10:00:00.123456'", datetime.datetime(2026, 5, 1, 10, 0, 0, 123456)),
    "timestamp(6) null": ("'2026-05-01 10:00:00.1'", datetime.datetime(2026, 5, 1, 10, 0, 0, 100000, datetime.UTC)),
    "time(1)": ("'-26:00:00.5'", "-26:00:00.5"),
    "year": ("2026", "2026"),
    "bit(9)": ("b'100000001'", "100000001"),
    "enum('a','b')": ("'b'", "b"),
    "set('a','b')": ("'a,b'", "a,b"),
    "json": ("""'{"a": 1}'""", '{"a": 1}'),
    "text character set utf8mb4": ("'naïve 🚀'", "naïve 🚀"),
}


def test_values_of_every_type_are_what_they_were(mysql: MySql, asked: Asked) -> None:
    columns = [f"c{number} {kind}" for number, kind in enumerate(VALUES)]
    mysql.run(
        f"create table orders (id int primary key, {', '.join(columns)})",
        f"insert into orders values (1, {', '.join(text for text, _ in VALUES.values())})",
        "insert into orders (id) values (2)",
    )
    full, empty = asked.all(asked.reader(source(mysql.url, **BY_ID)))
    assert list(full.values())[1:] == [value for _, value in VALUES.values()]
    assert set(list(empty.values())[1:]) == {None}


def test_a_user_that_does_not_see_what_others_do_is_refused(mysql: MySql, asked: Asked) -> None:
    mysql.run(TABLE)
    reader = asked.reader(source(mysql.url.replace("tester", "blind"), **BY_ID))
    with pytest.raises(
        DatabaseError, match=r"the user cannot see running statements.*; GRANT PROCESS ON \*\.\* to the user"
    ):
        asked.next(reader)


def test_a_clock_behind_the_rows_already_read_stops_the_pipeline(mysql: MySql, asked: Asked) -> None:
    mysql.run(TABLE)
    reader = asked.reader(source(mysql.url, **BY_BOTH))
    last = {"timestamp": "2126-05-01 10:00:00.000000", "incrementing": 1}
    asked.log.append({"number": 1, "position": last, "file": "x", "rest": []})
    with pytest.raises(DatabaseError, match=r"its clock is behind 2126-05-01 10:00:00\.000000, the last time read"):
        asked.next(reader)


MOMENT = datetime.datetime(2026, 7, 1, 23, 30, 0, 987654)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("timestamp(6)", "2026-07-01 23:30:00.987654"),
        ("timestamp", "2026-07-01 23:30:00"),
        ("datetime(3)", "2026-07-02 01:30:00.987"),
        ("datetime", "2026-07-02 01:30:00"),
        ("date", "2026-07-02"),
        ("varchar(30)", "2026-07-02 01:30:00.987654"),
    ],
)
def test_a_bound_is_never_later_than_its_column_can_express(declared: str, text: str) -> None:
    """A row of a column of whole seconds may come until its second has passed."""
    assert written(MOMENT, declared, "Europe/Berlin") == text


WRONG = {
    "mysql://h": "url needs a host and a database; write for example mysql://user@host/name",
    "mysql://h:port/d": "url: Port could not be cast to integer value",
    "mysql://u:s3cret@/d": "url needs a host and a database",
    "mysql://h/d?ssl_cb=x": "url: unknown option of MySQL 'ssl_cb'; did you mean 'ssl_ca'?",
}


@pytest.mark.parametrize("url", WRONG)
def test_an_invalid_address_is_an_error(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        address_of(url)
    assert str(error.value).startswith(WRONG[url])
    assert "s3cret" not in str(error.value)


def test_an_address_may_have_any_letters_in_its_password() -> None:
    assert address_of("mysql://me:p%40ss%2F@[::1]:3307/shop?ssl_ca=/ca.pem") == {
        "host": "::1",
        "port": 3307,
        "user": "me",
        "password": "p@ss/",
        "database": "shop",
        "ssl_ca": "/ca.pem",
    }


@given(st.text())
def test_any_address_is_one_or_one_clear_error(text: str) -> None:
    with suppress(ConfigError):
        assert {"host", "port", "database"} <= address_of(f"mysql://{text}").keys()
