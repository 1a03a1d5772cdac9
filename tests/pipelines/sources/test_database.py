"""Tables as sources: what is there, then what comes; nothing is lost and nothing is read twice."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import TypeAdapter, ValidationError
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.errors import ConfigError
from ottla.pipelines.databases.copying import numbers_of
from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.dead_letters import BadRowError
from ottla.pipelines.feeds.feed_reader import FeedReader
from ottla.pipelines.feeds.spool import SpoolError
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.place import KeyMistake
from ottla.pipelines.sources.database import DatabaseSource
from tests.mysql import MySql
from tests.patience import eventually
from tests.pipelines.either import Either, Lite, either_of
from tests.pipelines.sources.asked import Asked
from tests.postgres import Sql

pytestmark = pytest.mark.behaviour("D5")

MODEL: TypeAdapter[DatabaseSource] = TypeAdapter(DatabaseSource)
BY_ID = {"incrementing": "id"}
BY_TIME = {"timestamp": "at", "timestamp.delay.interval.ms": 0}
BY_BOTH = BY_ID | BY_TIME


def source(url: str, **more: Any) -> DatabaseSource:
    return MODEL.validate_python({"type": "database", "url": url, "table": "orders"} | more)


TABLE = "create table orders (id integer primary key, item text, at timestamp not null default current_timestamp)"


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Either:
    found = either_of(request.param, request, tmp_path)
    found.run(TABLE)
    return found


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    found = Asked(tmp_path)
    yield found
    found.stop()


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def insert(*numbers: int, at: str = "2026-05-01 10:00:00") -> list[str]:
    return [f"insert into orders values ({one}, 'x', '{at}')" for one in numbers]


WRONG: dict[str, dict[str, Any]] = {
    "url": {"url": "postgresql://127.0.0.1:1/gone"},
    "table": {"table": "ordres"},
    "columns": {"columns": ["id", "itme"]},
    "incrementing": {"incrementing": "item"},
    "timestamp": {"timestamp": "ta"},
}


@pytest.mark.parametrize("key", WRONG)
def test_a_mistake_is_reported_at_its_key(tmp_path: Path, key: str) -> None:
    lite = Lite(tmp_path)
    lite.run(TABLE)
    model = source(**({"url": lite.url} | BY_ID | WRONG[key]))
    with pytest.raises(KeyMistake) as error:
        model.feed(PipelineContext(folder=tmp_path))
    assert error.value.key == key


@pytest.mark.parametrize("way", [BY_ID, BY_TIME, BY_BOTH], ids=["id", "time", "both"])
def test_existing_rows_are_read_first_and_then_each_new_row_once(
    either: Either, asked: Asked, way: dict[str, Any]
) -> None:
    either.run(*insert(1, 2), *insert(3, at="2026-05-01 10:00:01"))
    model = source(either.url, **way)
    first = asked.reader(model)
    assert ids(asked.awaited(first, 3)) == [1, 2, 3]
    either.run(*insert(4, 5, at="2026-05-01 10:00:02"))
    assert ids(asked.awaited(first, 2)) == [4, 5]
    either.run(*insert(6, at="2026-05-01 10:00:03"))
    assert ids(asked.awaited(asked.reader(model), 1)) == [6]  # another process continues from the position


@pytest.mark.parametrize("way", [BY_TIME, BY_BOTH], ids=["time", "both"])
def test_a_changed_row_is_read_again(either: Either, asked: Asked, way: dict[str, Any]) -> None:
    either.run(*insert(1, 2))
    reader = asked.reader(source(either.url, **way))
    assert ids(asked.awaited(reader, 2)) == [1, 2]
    either.run("update orders set item = 'y', at = '2026-05-02 10:00:00' where id = 1")
    assert [(row["id"], row["item"]) for row in asked.all(reader)] == [(1, "y")]


@pytest.mark.parametrize("way", [BY_ID, BY_TIME, BY_BOTH], ids=["id", "time", "both"])
def test_a_batch_has_room_for_so_many_rows_also_where_all_have_the_same_time(
    either: Either, asked: Asked, way: dict[str, Any]
) -> None:
    either.run(*insert(1, 2, 3, 4), *insert(5, at="2026-05-01 10:00:01"))
    reader = asked.reader(source(either.url, **way, **{"batch.max.rows": 2}))
    found = [asked.next(reader) for _ in range(4)]
    assert [len(rows) for rows in found] == [2, 2, 1, 0]
    assert sorted(row["id"] for rows in found for row in rows) == [1, 2, 3, 4, 5]


def test_a_repeated_batch_has_the_same_rows_although_the_table_has_changed(either: Either, asked: Asked) -> None:
    either.run(*insert(1, 2, 3))
    model = source(either.url, **BY_ID)
    found = asked.next(asked.reader(model))
    either.run("delete from orders where id = 2", "update orders set item = 'y'")
    assert asked.again(asked.reader(model)) == found


def test_rows_are_kept_only_until_spark_requests_the_next_ones(either: Either, asked: Asked, tmp_path: Path) -> None:
    either.run(*insert(1))
    reader = asked.reader(source(either.url, **BY_ID))
    asked.next(reader)
    assert len(list((tmp_path / "spool").iterdir())) == 1
    assert asked.next(reader) == []
    assert list((tmp_path / "spool").iterdir()) == []
    with pytest.raises(SpoolError, match="which does not exist: the checkpoint is an old copy"):
        asked.again(reader)


@pytest.mark.parametrize("way", [BY_ID, BY_TIME, BY_BOTH], ids=["id", "time", "both"])
def test_a_transaction_that_commits_late_with_an_earlier_number_and_time_is_not_lost(
    sql: Sql, asked: Asked, way: dict[str, Any]
) -> None:
    sql.run("create table orders (id serial primary key, item text, at timestamptz not null default now())")
    reader = asked.reader(source(sql.url, **way))
    with sql.connect() as slow:
        slow.execute("insert into orders (item) values ('late')")
        sql.run("insert into orders (item) values ('early')")
        assert asked.next(reader) == []
        slow.commit()
    found: list[Any] = []

    def both() -> bool:
        found.extend(asked.next(reader))
        return len(found) == 2

    eventually(both)
    assert sorted(row["item"] for row in found) == ["early", "late"]
    assert asked.next(reader) == []


def test_an_endless_transaction_delays_only_the_rows_written_after_its_start(sql: Sql, asked: Asked) -> None:
    sql.run("create table orders (id serial primary key, item text)", "insert into orders (item) values ('before')")
    reader = asked.reader(source(sql.url, **BY_ID))
    assert ids(asked.next(reader)) == [1]
    with sql.connect() as writer, sql.connect() as other:
        writer.execute("insert into orders (item) values ('a')")
        assert asked.next(reader) == []
        other.execute("insert into orders (item) values ('b')")
        writer.commit()
        assert ids(asked.next(reader)) == []  # 3 is under way, and 2 was seen only now
        other.commit()
    assert ids(asked.next(reader)) == [2, 3]


def test_a_time_younger_than_the_delay_waits(sql: Sql, asked: Asked) -> None:
    sql.run("create table orders (id serial primary key, at timestamptz not null)")
    sql.run("insert into orders (at) values (now()), (now() - interval '2 hours')")
    reader = asked.reader(source(sql.url, **BY_BOTH | {"timestamp.delay.interval.ms": 3_600_000}))
    assert ids(asked.awaited(reader, 1)) == [2]


def test_a_single_run_reads_the_present_rows(either: Either, asked: Asked) -> None:
    either.run(*insert(1, 2, 3))
    reader = asked.reader(source(either.url, **BY_ID, **{"batch.max.rows": 2}))
    reader.prepareForTriggerAvailableNow()
    assert ids(asked.next(reader)) == [1, 2]
    either.run(*insert(4))
    assert ids(asked.awaited(reader, 1)) == [3]


VALUES = {
    "bigint": ("9007199254740993", 9007199254740993),
    "smallint": ("-7", -7),
    "numeric(10,2)": ("5.50", Decimal("5.50")),
    "numeric": ("1234567890123456789012345678901234567890.5", "1234567890123456789012345678901234567890.5"),
    "double precision": ("0.1", 0.1),
    "boolean": ("true", True),
    "bytea": ("'\\x00ff'", b"\x00\xff"),
    "date": ("'2026-05-01'", datetime.date(2026, 5, 1)),
    "timestamp": ("'2026-05-01 10:00:00.123456'", datetime.datetime(2026, 5, 1, 10, 0, 0, 123456)),
    "timestamptz": ("'2026-05-01 10:00:00+02'", datetime.datetime(2026, 5, 1, 8, tzinfo=datetime.UTC)),
    "jsonb": ("""'{"a": 1}'""", '{"a": 1}'),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "int[]": ("'{1,2}'", "{1,2}"),
    "interval": ("'1 day'", "1 day"),
    "text": ("'naïve 🚀'", "naïve 🚀"),
}


def test_values_of_every_type_are_what_they_were(sql: Sql, asked: Asked) -> None:
    columns = [f"c{number} {kind}" for number, kind in enumerate(VALUES)]
    sql.run(f"create table orders (id int primary key, {', '.join(columns)})")
    sql.run(
        f"insert into orders values (1, {', '.join(text for text, _ in VALUES.values())})",
        "insert into orders (id) values (2)",
    )
    full, empty = asked.all(asked.reader(source(sql.url, **BY_ID)))
    assert list(full.values())[1:] == [value for _, value in VALUES.values()]
    assert set(list(empty.values())[1:]) == {None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "alter table orders add column gift text",
            "table orders gained the column 'gift'; the next attempt continues",
        ),
        ("alter table orders rename column item to thing", "table orders gained the column 'thing'"),
        ("alter table orders drop column item", "table orders lost the column 'item'; the next attempt continues"),
        ("drop table orders", "unknown table 'orders'"),
    ],
)
def test_a_changed_table_stops_the_pipeline_with_the_remedies(
    either: Either, asked: Asked, change: str, message: str
) -> None:
    either.run(*insert(1))
    reader = asked.reader(source(either.url, **BY_ID))
    asked.all(reader)
    either.run(change)
    with pytest.raises((DatabaseError, ConfigError)) as error:
        asked.next(reader)
    assert message in str(error.value)


def test_it_continues_with_the_columns_that_are_there_when_it_is_run_again(either: Either, asked: Asked) -> None:
    either.run(*insert(1))
    model = source(either.url, **BY_ID)
    asked.all(asked.reader(model))
    either.run("alter table orders add column gift text", "insert into orders (id, gift) values (2, 'yes')")
    assert [(row["id"], row["gift"]) for row in asked.all(asked.reader(model))] == [(2, "yes")]


def test_only_the_named_columns_are_read_and_others_may_be_added(either: Either, asked: Asked) -> None:
    either.run(*insert(1))
    reader = asked.reader(source(either.url, **BY_BOTH, columns=["item"]))
    assert asked.next(reader) == [{"item": "x"}]
    either.run(
        "alter table orders add column gift text",
        *[one.replace(" values", " (id, item, at) values") for one in insert(2)],
    )
    assert asked.next(reader) == [{"item": "x"}]


def test_a_column_of_another_type_stops_the_pipeline(sql: Sql, asked: Asked) -> None:
    sql.run(TABLE, *insert(1))
    reader = asked.reader(source(sql.url, **BY_ID))
    asked.all(reader)
    sql.run("alter table orders alter item type varchar(9)")
    with pytest.raises(
        DatabaseError, match=r"has the column 'item' as character varying.9., which was text; the next attempt"
    ):
        asked.next(reader)


def test_a_value_that_does_not_match_its_column_type_is_reported(asked: Asked, tmp_path: Path) -> None:
    lite = Lite(tmp_path)
    lite.run("create table orders (id integer primary key, amount int)", "insert into orders values (1, 'many')")
    message = "table orders: row id = 1: value 'many' of column 'amount' is not of type int64; correct the row, leave the column"
    with pytest.raises(BadRowError, match=f"{message} out of columns, or set errors: "):
        asked.next(asked.reader(source(lite.url, **BY_ID)))


@pytest.mark.behaviour("D8")
def test_a_disconnected_database_is_an_error_and_the_stream_continues_after_its_return(sql: Sql, asked: Asked) -> None:
    sql.run(TABLE, *insert(1))
    reader = asked.reader(source(sql.url, **BY_ID))
    assert ids(asked.next(reader)) == [1]
    sql.server.kill()
    with pytest.raises(DatabaseError) as gone:
        asked.next(reader)
    with pytest.raises(DatabaseError) as refused:
        asked.next(reader)
    sql.server.start()
    sql.run(*insert(2))
    assert ids(asked.next(reader)) == [2]
    for error in (gone, refused):
        assert str(error.value).startswith(f"database {sql.shown}: ")
        assert "s3cret" not in str(error.value)


@pytest.mark.behaviour("D8")
def test_a_missing_database_file_is_an_error_and_the_stream_continues_after_its_return(
    asked: Asked, tmp_path: Path
) -> None:
    lite = Lite(tmp_path)
    lite.run(TABLE, *insert(1))
    model = source(lite.url, **BY_ID)
    assert ids(asked.next(asked.reader(model))) == [1]
    reader = asked.reader(model)
    asked.stop()
    away = lite.file.rename(tmp_path / "away.db")
    for _ in range(2):
        with pytest.raises(DatabaseError, match=r"file .*shop.db does not exist; create it, or correct url"):
            asked.next(reader)
    away.rename(lite.file)
    lite.run(*insert(2))
    assert ids(asked.next(reader)) == [2]


REFUSED: dict[str, dict[str, Any]] = {
    "unknown table 'ordres'; did you mean 'orders'?": {"table": "ordres", **BY_ID},
    "unknown column 'idd'; did you mean 'id'?": {"incrementing": "idd"},
    "incrementing: column 'item' is text; choose one of integers": {"incrementing": "item"},
    "; choose one with times": {"timestamp": "id"},
    "timestamp: column 'item' of table orders may be null": {"timestamp": "item"},
    "unknown column 'itme'; did you mean 'item'?": {"columns": ["itme"], **BY_ID},
}


@pytest.mark.parametrize(("message", "given"), REFUSED.items(), ids=[one[:40] for one in REFUSED])
def test_an_invalid_configuration_is_refused_before_anything_runs(
    either: Either, message: str, given: dict[str, Any], asked: Asked
) -> None:
    with pytest.raises(ConfigError) as error:
        asked.reader(source(either.url, **given))
    assert message.lower() in str(error.value).lower()


URLS = {
    "oracle://h/d": "unknown kind of database 'oracle'; write for example sqlite:///orders.db",
    "postgrseql://h/d": "unknown kind of database 'postgrseql'; did you mean 'postgresql'?",
    "jdbc:postgresql://h/d": "url starts with jdbc:, the prefix of Java's drivers",
    "shop.db": "url is not the address of a database; write for example",
}


@pytest.mark.parametrize("url", URLS)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValidationError) as error:
        source(url, **BY_ID)
    assert URLS[url] in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give incrementing or timestamp, the column that identifies new rows, or both"),
        ({**BY_ID, "db.timezone": "Mars"}, "'Mars' is not a time zone; write for example `Europe/Berlin`"),
    ],
)
def test_a_pipeline_file_without_a_mode_of_reading_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        source("sqlite:///a.db", **given)
    assert message in str(error.value)


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, asked: Asked) -> None:
    with pytest.raises(
        KeyMistake, match=r"database sqlite:///no.db: file .*no.db does not exist; create it, or correct url"
    ):
        asked.reader(source("sqlite:///no.db", **BY_ID))
    assert list(tmp_path.iterdir()) == []


def test_a_clock_behind_the_rows_already_read_stops_the_pipeline(sql: Sql, asked: Asked) -> None:
    sql.run("create table orders (id serial primary key, at timestamptz not null)")
    reader = asked.reader(source(sql.url, **BY_BOTH))
    asked.log.append(
        {"number": 1, "position": {"timestamp": "2126-05-01 10:00:00+00", "incrementing": 1}, "file": "x", "rest": []}
    )
    with pytest.raises(DatabaseError, match=r"its clock is behind 2126-05-01 10:00:00.00, the last time read"):
        asked.next(reader)


NUMBERS = {
    "postgresql": "serial primary key",
    "mysql": "bigint unsigned auto_increment primary key",
    "sqlite": "integer primary key autoincrement",
}
ANEW = {
    "postgresql": [
        "truncate orders restart identity",
        "drop table orders; create table orders (id serial primary key, item text)",
        "delete from orders; alter sequence orders_id_seq restart",
    ],
    "mysql": [
        "truncate orders",
        "drop table orders; create table orders (id bigint unsigned auto_increment primary key, item text)",
        "delete from orders; alter table orders auto_increment = 1",
    ],
    "sqlite": [
        "drop table orders; create table orders (id integer primary key autoincrement, item text)",
        "delete from orders; delete from sqlite_sequence",
    ],
}
"""Numbers that the database gives, and how they come to begin again."""
SET_ON = {
    "postgresql": ["alter sequence orders_id_seq restart with 3"],
    "mysql": ["alter table orders auto_increment = 3"],
    "sqlite": ["update sqlite_sequence set seq = 2"],
}


@pytest.mark.parametrize(("kind", "anew"), [(kind, one) for kind, ways in ANEW.items() for one in ways])
def test_numbers_that_begin_again_stop_the_pipeline_and_rows_that_are_deleted_do_not(
    request: pytest.FixtureRequest, tmp_path: Path, asked: Asked, kind: str, anew: str
) -> None:
    database = either_of(kind, request, tmp_path)
    add = "insert into orders (item) values ('x')"
    database.run(f"create table orders (id {NUMBERS[kind]}, item text)", add, add)
    reader = asked.reader(source(database.url, **BY_ID))
    assert ids(asked.awaited(reader, 2)) == [1, 2]
    database.run("delete from orders where id = 2")
    assert asked.next(reader) == []
    database.run(*anew.split("; "))
    message = "numbers of column 'id' start again below 2, the last number read"
    with pytest.raises(DatabaseError, match=message):  # before there is a row that would be passed over
        asked.next(reader)
    database.run(add)
    with pytest.raises(DatabaseError, match=message):
        asked.next(reader)
    database.run(*SET_ON[kind])
    asked.stop()
    reader = asked.reader(source(database.url, **BY_ID))
    assert asked.next(reader) == []
    database.run(add)
    eventually(lambda: ids(asked.next(reader)) == [3])


def test_a_table_of_sqlite_that_gives_the_number_of_a_deleted_row_again_stops_the_pipeline(
    tmp_path: Path, asked: Asked
) -> None:
    lite = Lite(tmp_path)
    lite.run("create table orders (id integer primary key, item text)", "insert into orders values (1, 'x'), (2, 'y')")
    reader = asked.reader(source(lite.url, **BY_ID))
    assert ids(asked.awaited(reader, 2)) == [1, 2]
    lite.run("delete from orders where id = 2")
    with pytest.raises(
        DatabaseError, match=r"start again below 2, .*; give the next row a greater one, or start again"
    ):
        asked.next(reader)
    lite.run("insert into orders values (3, 'z')")
    assert ids(asked.next(asked.reader(source(lite.url, **BY_ID)))) == [3]


@pytest.mark.parametrize(
    "declared",
    ["(id int primary key)", "(id integer primary key) without rowid", "(id integer, n integer, primary key (id, n))"],
)
def test_numbers_that_other_programs_assign_may_decrease(tmp_path: Path, asked: Asked, declared: str) -> None:
    """The next number is not known."""
    lite = Lite(tmp_path)
    lite.run(f"create table orders {declared}", "insert into orders (id) values (1), (2)")
    reader = asked.reader(source(lite.url, **BY_ID, **{"validate.non.null": False}))
    assert ids(asked.awaited(reader, 2)) == [1, 2]
    lite.run("delete from orders where id = 2")
    assert asked.next(reader) == []


def test_a_position_has_no_secret(sql: Sql, asked: Asked) -> None:
    sql.run(TABLE, *insert(1))
    url = sql.url.replace("s3cret", "${env:PW}")
    model = source(url, **BY_BOTH)
    assert len(asked.all(asked.reader(model, PW="s3cret"))) == 1
    assert "s3cret" not in f"{asked.log} {model.describe()} {model.identity()} {model!r}"


def closed(reader: FeedReader) -> bool:
    reader.stop()
    return True


def test_a_stopped_reader_can_be_used_again(either: Either, asked: Asked) -> None:
    either.run(*insert(1))
    reader = asked.reader(source(either.url, **BY_ID))
    assert ids(asked.next(reader)) == [1]
    assert closed(reader)
    assert asked.next(reader) == []


def test_the_next_batch_is_fetched_while_a_full_one_is_on_its_way(either: Either, asked: Asked, tmp_path: Path) -> None:
    either.run(*insert(1, 2, 3))
    reader = asked.reader(source(either.url, **BY_ID, **{"batch.max.rows": 2}))
    assert ids(asked.next(reader)) == [1, 2]
    eventually(lambda: len(list((tmp_path / "spool").glob("*.arrows"))) == 2)
    either.run("delete from orders where id = 3")
    assert ids(asked.next(reader)) == [3]


def test_a_batch_has_the_portions_that_were_there_when_it_began_also_when_it_is_done_again(
    either: Either, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.pipelines.sources.database.model.PORTION", 2)
    either.run(*insert(*range(1, 10)))
    way = source(either.url, **BY_ID, **{"batch.max.rows": 7})
    reader = asked.reader(way)
    first = ids(asked.next(reader))
    eventually(lambda: len(list((tmp_path / "spool").glob("*.arrows"))) >= len(first) // 2 + 2)
    reader.prepareForTriggerAvailableNow()  # in the thread of the fetches, after those that are there
    second = ids(asked.next(reader))
    assert 2 < len(second) <= 6
    either.run("delete from orders where id <= 6")
    assert ids(asked.again(asked.reader(way))) == second
    assert first + second + ids(asked.all(reader)) == list(range(1, 10))


def test_a_batch_of_an_earlier_version_with_one_file_is_run_again(either: Either, asked: Asked) -> None:
    either.run(*insert(1, 2))
    reader = asked.reader(source(either.url, **BY_ID))
    asked.next(reader)
    (name,) = asked.log[-1].pop("files")
    asked.log[-1]["file"] = name
    assert ids(asked.again(reader)) == [1, 2]
    either.run(*insert(3))
    assert ids(asked.next(reader)) == [3]


def test_rows_prefetched_by_an_ended_query_are_neither_lost_nor_read_twice(
    either: Either, asked: Asked, tmp_path: Path
) -> None:
    either.run(*insert(1, 2, 3))
    model = source(either.url, **BY_ID, **{"batch.max.rows": 2})
    assert ids(asked.next(asked.reader(model))) == [1, 2]
    eventually(lambda: len(list((tmp_path / "spool").glob("*.arrows"))) == 2)
    other = asked.reader(model)
    assert [ids(asked.next(other)) for _ in range(2)] == [[3], []]
    assert list((tmp_path / "spool").iterdir()) == []


SAME_TIME = {
    "text": "'2026-05-01 10:00:00'",
    "text of ISO 8601": "'2026-05-01T10:00:00Z'",
    "a date": "'2026-05-01'",
    "seconds": "1777629600",
    "seconds with parts": "1777629600.25",
    "milliseconds": "1777629600250",
    "a Julian day": "2461161.9166667",
}


@pytest.mark.parametrize("way", [BY_TIME, BY_BOTH], ids=["time", "both"])
@pytest.mark.parametrize("declared", ["timestamp", "text"])
def test_times_of_sqlite_are_read_in_every_form(tmp_path: Path, asked: Asked, way: Any, declared: str) -> None:
    lite = Lite(tmp_path)
    lite.run(f"create table orders (id integer primary key, at {declared} not null)")
    reader = asked.reader(source(lite.url, **way))
    found: list[Any] = []
    for number, value in enumerate(SAME_TIME.values()):
        lite.run(f"insert into orders values ({number}, {value})")
    found += asked.all(reader)
    lite.run("insert into orders values (100, 1777640400250)", "insert into orders values (101, '2026-05-01 13:00:01')")
    assert sorted(ids(found)) == list(range(len(SAME_TIME)))
    assert [(row["id"], row["at"]) for row in asked.all(reader)] == [
        (100, "1777640400250"),
        (101, "2026-05-01 13:00:01"),
    ]


@pytest.mark.parametrize(
    "value", ["'soon'", "''", "'12:00'", "'now'", "'01.05.2026'", "2026", "20260501", "20260501100000", "-5", "x'00'"]
)
@pytest.mark.parametrize("when", ["first", "later"])
def test_a_time_of_sqlite_that_cannot_be_read_is_not_skipped_in_silence(
    tmp_path: Path, asked: Asked, value: str, when: str
) -> None:
    lite = Lite(tmp_path)
    lite.run("create table orders (id integer primary key, at timestamp not null)")
    lite.run("insert into orders values (1, '2026-05-01')")
    reader = asked.reader(source(lite.url, **BY_TIME))
    if when == "later":
        assert ids(asked.all(reader)) == [1]
    lite.run(f"insert into orders values (7, {value})")
    with pytest.raises(
        DatabaseError, match=r"table orders: .* in column 'at' of the row id = 7 is not a time, so the row"
    ):
        asked.next(reader)
    lite.run("update orders set at = '2026-05-02' where id = 7")
    assert ids(asked.all(reader))[-1] == 7


@pytest.mark.parametrize("value", ["infinity", "-infinity"])
@pytest.mark.parametrize("declared", ["timestamp", "timestamptz", "date"])
def test_a_row_with_an_infinite_time_is_not_skipped_in_silence(
    sql: Sql, asked: Asked, declared: str, value: str
) -> None:
    sql.run(f"create table orders (id int primary key, at {declared} not null)")
    sql.run("insert into orders values (1, '2026-05-01')")
    reader = asked.reader(source(sql.url, **BY_TIME))
    assert ids(asked.all(reader)) == [1]
    sql.run(f"insert into orders values (7, '{value}')")
    with pytest.raises(DatabaseError, match=f"'{value}' in column 'at' of the row id = 7 is not a time, so the row"):
        asked.next(reader)


def test_a_row_with_a_zero_date_of_mysql_is_not_skipped_in_silence(mysql: MySql, asked: Asked) -> None:
    mysql.run("create table orders (id int primary key, at datetime not null)")
    mysql.run("insert into orders values (1, '2026-05-01')")
    reader = asked.reader(source(mysql.url, **BY_TIME))
    assert ids(asked.all(reader)) == [1]
    mysql.run("set sql_mode = ''", "insert into orders values (7, 0)")
    with pytest.raises(
        DatabaseError, match="'0000-00-00 00:00:00' in column 'at' of the row id = 7 is not a time, so the row"
    ):
        asked.next(reader)


def test_a_number_of_sqlite_that_is_text_is_not_skipped_in_silence(tmp_path: Path, asked: Asked) -> None:
    lite = Lite(tmp_path)
    lite.run("create table orders (id int not null, item text)", "insert into orders values (1, 'x')")
    reader = asked.reader(source(lite.url, **BY_ID))
    assert ids(asked.all(reader)) == [1]
    lite.run("insert into orders values ('two', 'y')")
    with pytest.raises(DatabaseError, match="'two' in column 'id' is not a number, so the row would never be read"):
        asked.next(reader)


PERCENTS = ("100%", "%s", "a%b", "%(x)s", "%%")


@pytest.mark.parametrize("way", [BY_ID, BY_TIME, BY_BOTH], ids=["id", "time", "both"])
@pytest.mark.parametrize("kind", ["text", "blob"])
def test_columns_may_have_a_percent_sign_in_their_names(either: Either, asked: Asked, way: Any, kind: str) -> None:
    quote = "`" if isinstance(either, MySql) else '"'
    kind = "bytea" if kind == "blob" and isinstance(either, Sql) else kind  # which is not read by COPY
    given = {
        name: value.replace("id", "i%d").replace("at", "a%t") if name in BY_BOTH else value
        for name, value in way.items()
        if isinstance(value, str)
    }
    columns = ", ".join(f"{quote}{name}{quote} {kind}" for name in PERCENTS)
    either.run("drop table orders")
    either.run(f"create table orders ({quote}i%d{quote} int not null, {quote}a%t{quote} timestamp not null, {columns})")
    row = ", ".join(f"'{number}'" for number in range(len(PERCENTS)))
    reader = asked.reader(source(either.url, **given, **{"timestamp.delay.interval.ms": 0}))
    for number in (1, 2):
        either.run(f"insert into orders values ({number}, '2026-05-0{number} 10:00:00', {row})")
        (found,) = asked.awaited(reader, 1)
        assert found["i%d"] == number
        assert [str(found[name]).strip("b'") for name in PERCENTS] == ["0", "1", "2", "3", "4"]


LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
SPECIAL = {
    "infinity": ((LAST, LAST.replace(tzinfo=datetime.UTC), LAST.date()), None),
    "-infinity": (
        (datetime.datetime(1, 1, 1), datetime.datetime(1, 1, 1, tzinfo=datetime.UTC), datetime.date(1, 1, 1)),
        None,
    ),
    "0044-03-15 BC": (None, -735160),
    "57000-01-01": (None, 20099295),
}


@pytest.mark.parametrize("more", ["", ", b bytea"], ids=["by COPY", "by a cursor"])
@pytest.mark.parametrize("value", SPECIAL)
def test_times_that_python_does_not_have_are_read_from_postgresql(
    sql: Sql, asked: Asked, value: str, more: str
) -> None:
    columns = "plain timestamp not null, zoned timestamptz not null, day date not null, price numeric(5,2) not null"
    sql.run(f"create table orders (id int primary key, {columns}{more})")
    sql.run(f"insert into orders values (1, '{value}', '{value}', '{value}', 'NaN'), (2, now(), now(), now(), 1.5)")
    first, second = numbers(asked, source(sql.url, **BY_ID))
    known, days = SPECIAL[value]
    if days is None:
        assert known is not None
        days = (known[2] - datetime.date(1970, 1, 1)).days
    assert (first["day"], first["price"], second["price"]) == (days, None, Decimal("1.50"))
    micros = days * 86_400_000_000 + (86_399_999_999 if value == "infinity" else 0)
    assert (first["plain"], first["zoned"]) == (micros, micros)


def numbers(asked: Asked, model: DatabaseSource) -> list[dict[str, Any]]:
    """The rows of a table, times as days and microseconds since 1970."""
    reader = asked.reader(model)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    (part,) = reader.partitions(start, end)
    (batch,) = reader.read(part)
    kinds = [numbers_of(column) if pa.types.is_temporal(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(kinds, names=batch.schema.names).to_pylist()


def test_zero_dates_of_mysql_are_null(mysql: MySql, asked: Asked) -> None:
    mysql.run(
        "create table orders (id int primary key, d date not null, t datetime(3) not null, z timestamp(6) not null)"
    )
    connection = mysql.connect()
    connection.cursor().execute("set sql_mode = 'ALLOW_INVALID_DATES'")
    connection.cursor().execute("insert into orders values (1, 0, 0, 0), (2, '2026-00-10', '2026-05-00', '2026-05-01')")
    connection.commit()
    connection.close()
    first, second = asked.awaited(asked.reader(source(mysql.url, **BY_ID)), 2)
    assert (first["d"], first["t"], first["z"]) == (None, None, None)
    assert (second["d"], second["t"], str(second["z"])) == (None, None, "2026-05-01 00:00:00+00:00")
