"""Rows of a source that cannot be read are put aside once, with their cause, and all others are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from ottla import Broker
from ottla.pipelines.databases.arrow_rows import arrow_of
from ottla.pipelines.dead_letters import BadRowError
from ottla.pipelines.http_calls import connection_pool
from ottla.pipelines.sources.database import DatabaseSource
from ottla.pipelines.sources.http import HttpSource
from tests.mysql import MySql
from tests.pipelines.dead_letters import broker_of_letters, letters_at, topic_at
from tests.pipelines.either import Lite
from tests.pipelines.sources.asked import Asked
from tests.pipelines.web import Answer, web
from tests.postgres import Sql

MODEL: TypeAdapter[DatabaseSource] = TypeAdapter(DatabaseSource)
TABLE = "create table orders (id integer primary key, item text, n int, price double)"
GOOD = "insert into orders values ({0}, 'x', {0}, {0}.5)"
BAD = {
    "insert into orders values (2, 'text', 'many', 1)": "value 'many' of column 'n' is not of type int64",
    "insert into orders values (4, 'fraction', 1.5, 1)": "value 1.5 of column 'n' is not of type int64",
    "insert into orders values (6, cast(x'61ff62' as text), 1, 1)": r"value b'a\xffb' of column 'item' is not of type string",
    "insert into orders values (8, 'large', 1, 'much')": "value 'much' of column 'price' is not of type double",
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with broker_of_letters() as found:
        yield found


@pytest.fixture
def asked(tmp_path: Path, broker: Broker) -> Iterator[Asked]:
    found = Asked(tmp_path, topic_at(broker))
    yield found
    found.stop()


def source(url: str, **more: Any) -> DatabaseSource:
    return MODEL.validate_python({"type": "database", "url": url, "table": "orders", "incrementing": "id"} | more)


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def test_rows_of_sqlite_that_cannot_be_read_are_put_aside_once_and_the_others_are_read(
    asked: Asked, tmp_path: Path, broker: Broker
) -> None:
    lite = Lite(tmp_path)
    lite.run(TABLE, *BAD, *(GOOD.format(number) for number in (1, 3, 5, 7)))
    reader = asked.reader(source(lite.url))
    assert ids(asked.all(reader)) == [1, 3, 5, 7]
    assert asked.log[-1]["deadLetters"] == 4
    found = letters_at(broker)
    assert [cause for _, cause in found] == [
        f"table orders: row id = {number}: {cause}" for number, cause in zip((2, 4, 6, 8), BAD.values(), strict=True)
    ]
    assert found[1][0] == {"id": 4, "item": "fraction", "n": 1.5, "price": 1.0}
    lite.run(GOOD.format(9))
    assert ids(asked.all(asked.reader(source(lite.url)))) == [9]
    assert len(letters_at(broker)) == 4, "also the last row, which was bad, is put aside once"


@pytest.mark.parametrize("statement", BAD)
def test_without_dead_letters_the_row_its_column_and_value_and_the_remedy_are_named(
    tmp_path: Path, statement: str
) -> None:
    lite, asked = Lite(tmp_path), Asked(tmp_path)
    lite.run(TABLE, GOOD.format(1), statement)
    with pytest.raises(BadRowError) as error:
        asked.next(asked.reader(source(lite.url)))
    message = str(error.value)
    assert message.startswith(
        f"table orders: row id = {statement[27]}: {BAD[statement]}; correct the row, leave the column"
    )
    assert message.endswith("set errors: {tolerance: all, deadLetterTopic: …}, which puts such rows aside")
    lite.run(f"delete from orders where id = {statement[27]}", GOOD.format(9))
    assert ids(asked.all(asked.reader(source(lite.url)))) == [1, 9]


def test_text_of_postgresql_that_is_not_utf8_is_put_aside(asked: Asked, sql: Sql, broker: Broker) -> None:
    sql.run("create database ascii encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0")
    url = sql.url.rpartition("/")[0] + "/ascii"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "create table orders (id int primary key, item text, price numeric(9, 2), at timestamp, b bool)"
        )
        connection.execute("insert into orders select n, 'x', 1.5, now(), true from generate_series(1, 3000) n")
        connection.execute(r"update orders set item = convert_from('\x61ff62', 'SQL_ASCII') where id in (7, 3000)")
        connection.execute("create table bytes as select *, '\\x01'::bytea as data from orders")
        connection.execute("alter table bytes add primary key (id)")
    good = [number for number in range(1, 3000) if number != 7]
    assert ids(asked.all(asked.reader(source(url)))) == good
    causes = [cause for _, cause in letters_at(broker)]
    message = r"value b'a\xffb' of column 'item' is not of type string"
    assert causes == [f"table orders: row id = {number}: {message}" for number in (7, 3000)]
    assert asked.all(asked.reader(source(url))) == []
    others = Asked(asked.folder / "bytes", topic_at(broker))
    assert ids(others.all(others.reader(source(url, table="bytes")))) == good
    others.stop()
    sql.run("drop database ascii with (force)")


def test_a_shape_of_mysql_is_read_as_text(asked: Asked, mysql: MySql) -> None:
    mysql.run(
        "create table orders (id int primary key, at point, kind enum('a', 'b'), days set('x', 'y'), y year, bits bit(3))",
        "insert into orders values (1, point(1, 2), 'a', 'x,y', 0, b'101'), (2, null, null, '', 2026, null)",
    )
    rows = asked.all(asked.reader(source(mysql.url)))
    assert [row["at"] for row in rows] == ["POINT(1 2)", None]


def test_objects_of_a_response_that_do_not_match_the_schema_are_set_aside(asked: Asked, broker: Broker) -> None:
    with web() as server:
        server.answers += [Answer([{"id": 1}, {"id": "one"}, {"id": 3}]), Answer([])]
        model = TypeAdapter(HttpSource).validate_python(
            {
                "type": "http",
                "url": server.url,
                "schema": "id bigint",
                "cursor.parameter": "after",
                "cursor.field": "id",
            }
        )
        assert ids(asked.next(asked.reader(model))) == [1, 3]
        connection_pool().clear()
    ((row, cause),) = letters_at(broker)
    assert row == {"value": '{"id": "one"}'}
    assert "does not match schema" in cause


def test_rows_without_a_bad_value_are_converted_as_they_are() -> None:
    fields: list[Any] = [pa.field("n", pa.int64()), pa.field("x", pa.float64())]
    good, bad = arrow_of([(1, 1.5), (2.0, None), (None, float("nan"))], pa.schema(fields))
    assert (good.column("n").to_pylist(), bad) == ([1, 2, None], [])
