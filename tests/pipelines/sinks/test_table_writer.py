"""A batch and its mark are in the table together, or neither is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.databases.url import database_of
from ottla.pipelines.sinks.database.statements import Statements
from ottla.pipelines.sinks.database.table_writer import TableWriter
from ottla.pipelines.sinks.upserts import DELETED
from tests.pipelines.either import Either, Lite
from tests.postgres import Sql

pytestmark = pytest.mark.behaviour("D5")


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Either:
    found: Either = Lite(tmp_path) if request.param == "sqlite" else request.getfixturevalue("sql")
    found.run("create table orders (id integer primary key, item text)")
    return found


def writer(either: Either, folder: Path, *, upsert: bool = False, query: str = "q") -> TableWriter:
    database = database_of(either.url, folder)
    statements = Statements(database, "orders", ("id", "item"), ("id",) if upsert else ())
    either.run(statements.create_marks())
    return TableWriter(database, statements, query)


def rows(*pairs: tuple[Any, Any], deleted: tuple[int, ...] = ()) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array([one for one, _ in pairs], pa.int64()),
            "item": pa.array([item for _, item in pairs], pa.string()),
            DELETED: pa.array([at in deleted for at in range(len(pairs))]),
        }
    )


def there(either: Either) -> list[Any]:
    return either.rows("select id, item from orders order by id")


def test_a_batch_is_written_once_however_often_it_is_done(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path)
    assert [one.write(0, [rows((1, "a"), (2, "b"))]) for _ in range(3)] == [2, 0, 0]
    assert one.write(1, [rows((3, "c"))]) == 1
    assert there(either) == [(1, "a"), (2, "b"), (3, "c")]


def test_what_fails_in_the_middle_leaves_neither_rows_nor_mark(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path)
    with pytest.raises(DatabaseError):
        one.write(0, [rows((1, "a")), rows((1, "twice"))])
    assert there(either) == []
    assert one.write(0, [rows((1, "a"))]) == 1


def test_an_upsert_takes_the_place_of_its_key_and_the_last_of_a_batch_counts(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path, upsert=True)
    one.write(0, [rows((1, "a"), (2, "b"))])
    one.write(1, [rows((1, "c"), (2, None), (1, "d"))])
    assert there(either) == [(1, "d"), (2, None)]


def test_a_tombstone_deletes_in_its_turn(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path, upsert=True)
    one.write(0, [rows((1, "a"), (2, "b"), (1, None), (3, "c"), (3, None), (3, "again"), deleted=(2, 4))])
    assert there(either) == [(2, "b"), (3, "again")]


def test_an_old_checkpoint_is_refused(either: Either, tmp_path: Path) -> None:
    one = writer(either, tmp_path)
    one.write(7, [rows((1, "a"))])
    with pytest.raises(
        DatabaseError, match="table orders has batch 7 of this pipeline already, so batch 6 comes too late"
    ):
        one.write(6, [rows((2, "b"))])


def test_queries_do_not_know_each_other(either: Either, tmp_path: Path) -> None:
    writer(either, tmp_path).write(0, [rows((1, "a"))])
    assert writer(either, tmp_path, query="another").write(0, [rows((2, "b"))]) == 1


def test_a_row_without_a_key_is_told(either: Either, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"table orders: a row has no id, which pk\.fields names"):
        writer(either, tmp_path, upsert=True).write(0, [rows((None, "a"))])


def test_two_attempts_at_once_write_once(sql: Sql, tmp_path: Path) -> None:
    sql.run("create table orders (id integer, item text)")
    one = writer(sql, tmp_path)
    first_has_begun, second_waits = threading.Event(), threading.Event()
    counts: list[int] = []

    def slow() -> Any:
        first_has_begun.set()
        assert second_waits.wait(60)
        yield rows((1, "a"))

    first = threading.Thread(target=lambda: counts.append(one.write(0, slow())))
    first.start()
    assert first_has_begun.wait(60)
    second = threading.Thread(target=lambda: counts.append(one.write(0, [rows((1, "a"))])))
    second.start()
    second_waits.set()
    first.join(60)
    second.join(60)
    assert (sorted(counts), there(sql)) == ([0, 1], [(1, "a")])


@pytest.mark.parametrize("name", ['we"ird', "has space", "select", "naïve"])
def test_names_are_taken_as_they_are(either: Either, tmp_path: Path, name: str) -> None:
    database = database_of(either.url, tmp_path)
    statements = Statements(database, name, ("id", name), ("id",))
    either.run(statements.create(["integer", "text"]), statements.create_marks())
    batch = pa.RecordBatch.from_pydict({"id": [1], name: ["x"]})
    assert TableWriter(database, statements, "q").write(0, [batch]) == 1
    assert either.rows(f"select * from {database.quoted(name)}") == [(1, "x")]
