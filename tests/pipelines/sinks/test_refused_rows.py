"""Rows that a table refuses are put aside with their cause, and all others are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla import Broker, Consumer, TopicPartition
from ottla.pipelines.databases.database import RefusedRowError
from ottla.pipelines.databases.url import database_of
from ottla.pipelines.dead_letters import REMEDY
from ottla.pipelines.sinks.database.statements import Statements
from ottla.pipelines.sinks.database.table_writer import DatabaseTableWriter
from ottla.pipelines.sinks.upserts import DELETED
from tests.mysql import MySql
from tests.pipelines.dead_letters import broker_of_letters, letters_at, topic_at
from tests.pipelines.either import Either, either_of


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Either:
    found = either_of(request.param, request, tmp_path)
    strict = (
        " check (typeof(n) <> 'text' and n between -2147483648 and 2147483647)" if request.param == "sqlite" else ""
    )
    found.run(
        f"create table orders (id int not null primary key, item varchar(5) check (length(item) <= 5), n int{strict}, at timestamp null)"
    )
    return found


@pytest.fixture
def broker() -> Iterator[Broker]:
    with broker_of_letters() as broker:
        yield broker


def writer(either: Either, folder: Path, broker: Broker, *, upsert: bool = False) -> DatabaseTableWriter:
    statements = Statements(database_of(either.url, folder), "orders", ("id", "item", "n"), ("id",) if upsert else ())
    either.run(statements.create_marks())
    return DatabaseTableWriter(statements.database, statements, "q", topic_at(broker))


def rows(*values: tuple[Any, Any, Any]) -> pa.RecordBatch:
    kinds = {"id": pa.int64(), "item": pa.string(), "n": pa.int64()}
    columns: dict[str, Any] = {
        name: pa.array([value[at] for value in values], kind) for at, (name, kind) in enumerate(kinds.items())
    }
    return pa.RecordBatch.from_pydict(columns | {DELETED: pa.array([False] * len(values))})


@pytest.mark.parametrize("upsert", [False, True], ids=["added", "by key"])
def test_rows_that_a_table_rejects_are_set_aside_and_the_others_are_written_once(
    either: Either, tmp_path: Path, broker: Broker, upsert: bool
) -> None:
    one = writer(either, tmp_path, broker, upsert=upsert)
    good = [(number, "good", number) for number in range(1, 51)]
    bad: list[tuple[Any, Any, Any]] = [(100, "too long", 0), (102, "big", 2**31)]
    if not upsert:
        bad.append((7, "twice", 7))
    values = [*good[:20], bad[0], *good[20:], *bad[1:]]
    assert [one.write(0, [rows(*values[:30]), rows(*values[30:])]) for _ in range(2)] == [(50, len(bad)), (0, 0)]
    assert either.rows("select id, item, n from orders order by id") == good
    found = letters_at(broker)
    assert [row for row, _ in found] == [dict(zip(("id", "item", "n"), each, strict=True)) for each in bad]
    assert "item" in found[0][1]
    assert "'n'" in found[1][1] or "n between" in found[1][1]
    assert one.write(1, [rows((200, "later", 1))]).rows == 1


def test_text_with_a_nul_is_put_aside_with_its_column(either: Either, tmp_path: Path, broker: Broker) -> None:
    one = writer(either, tmp_path, broker)
    assert one.write(0, [rows((1, "a", 1), (2, "b\0c", 2), (3, "d", 3))]).rows in (2, 3)
    there = either.rows("select id from orders order by id")
    if len(there) == 3:  # SQLite and MySQL have room for it
        assert letters_at(broker) == []
        return
    assert there == [(1,), (3,)]
    ((row, cause),) = letters_at(broker)
    assert row == {"id": 2, "item": "b\0c", "n": 2}
    assert cause.startswith("column 'item' has the character NUL: database ")


def test_a_row_without_a_key_is_put_aside(either: Either, tmp_path: Path, broker: Broker) -> None:
    one = writer(either, tmp_path, broker, upsert=True)
    assert one.write(0, [rows((1, "a", 1), (None, "b", 2))]).rows == 1
    ((row, cause),) = letters_at(broker)
    assert (row["item"], "a row has no id, a column of pk.fields" in cause) == ("b", True)


def test_a_time_that_a_table_does_not_have_is_put_aside(mysql: MySql, tmp_path: Path, broker: Broker) -> None:
    mysql.run("create table orders (id int primary key, at datetime(6))")
    statements = Statements(database_of(mysql.url, tmp_path), "orders", ("id", "at"))
    mysql.run(statements.create_marks())
    one = DatabaseTableWriter(statements.database, statements, "q", topic_at(broker))
    times = pa.array([0, 1_777_629_600_000_000_000], pa.timestamp("us"))
    assert one.write(0, [pa.RecordBatch.from_pydict({"id": pa.array([1, 2]), "at": times})]).rows == 1
    ((row, cause),) = letters_at(broker)
    assert row == {"id": 2, "at": "58300-11-03 16:00:00.000000"}
    assert "at" in cause


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300])
def test_a_number_that_mysql_does_not_have_is_put_aside(
    mysql: MySql, tmp_path: Path, broker: Broker, number: float
) -> None:
    mysql.run("create table orders (id int primary key, n float)")
    statements = Statements(database_of(mysql.url, tmp_path), "orders", ("id", "n"))
    mysql.run(statements.create_marks())
    one = DatabaseTableWriter(statements.database, statements, "q", topic_at(broker))
    assert one.write(0, [pa.RecordBatch.from_pydict({"id": [1, 2, 3], "n": [1.0, number, 3.0]})]) == (2, 1)
    assert mysql.rows("select id from orders order by id") == [(1,), (3,)]
    ((row, _),) = letters_at(broker)
    assert row["id"] == 2


def test_without_dead_letters_a_refused_row_is_the_batch_s(either: Either, tmp_path: Path, broker: Broker) -> None:
    one = writer(either, tmp_path, broker)
    strict = DatabaseTableWriter(one.database, one.statements, "q")
    with pytest.raises(RefusedRowError) as error:
        strict.write(0, [rows((1, "a", 1), (2, "too long", 2), (3, "b", 3))])
    message = str(error.value)
    assert message.startswith("table orders: row id = 2, item = 'too long', n = 2: ")
    assert "item" in message.partition("n = 2: ")[2]
    assert message.endswith(f"; correct such rows or filter them out in a transform, or {REMEDY}")
    assert either.rows("select * from orders") == []
    assert strict.write(0, [rows((1, "a", 1))]).rows == 1


def test_a_key_that_two_parts_of_a_batch_have_is_refused_with_the_remedy(
    either: Either, tmp_path: Path, broker: Broker
) -> None:
    one = writer(either, tmp_path, broker)
    strict = DatabaseTableWriter(one.database, one.statements, "q")
    with pytest.raises(RefusedRowError, match="correct such rows or filter them out in a transform, or set errors:"):
        strict.write(0, [rows((1, "a", 1)), rows((1, "b", 2))])
    assert either.rows("select * from orders") == []


def test_a_row_that_is_too_large_for_the_dead_letters_is_cut_there(
    either: Either, tmp_path: Path, broker: Broker
) -> None:
    one = writer(either, tmp_path, broker)
    assert one.write(0, [rows((1, "a", 1), (2, "b" * 2_000_000, 2))]) == (1, 1)
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("dead", 0)])
        consumer.seek_to_beginning()
        (letter,) = consumer.poll(timeout=60)
    assert letter.raw_value is not None
    assert letter.raw_value.startswith(b'{"id": 2, "item": "bbb')
    assert b"(cut here from 2,000,0" in (dict(letter.headers)["__connect.errors.exception.message"] or b"")
