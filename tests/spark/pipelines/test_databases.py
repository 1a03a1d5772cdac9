"""Tables through topics into tables, run by the manager."""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla import Broker
from ottla.pipelines.manager.lifecycle import PipelineState
from ottla.pipelines.manager.offsets import ResetTarget
from tests.mysql import MySql
from tests.patience import eventually
from tests.pipelines.either import Either, Lite
from tests.postgres import Sql
from tests.spark.pipelines.test_manager import Folder, committed, mistakes
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy


@pytest.fixture
def folder(spark: SparkSession, broker: Broker, tmp_path: Path) -> Folder:
    return Folder(spark, broker, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Either:
    found: Either = Lite(tmp_path) if request.param == "sqlite" else request.getfixturevalue("sql")
    found.run("create table orders (id integer primary key, item text)")
    return found


def table(either: Either, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "database", "url": either.url, "table": name, **more}


def topic(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "topic", "topic": name, **more}


@pytest.mark.behaviour("D1", "D2")
def test_a_table_is_copied_through_a_topic_into_another_table_each_row_once(
    folder: Folder, topics: Topics, either: Either
) -> None:
    name = topics.create("orders")
    out = {"source": table(either, "orders", incrementing="id"), "sink": topic(name, key="id")}
    records = topic(name, valueFormat="json", valueSchema="id int, item string")
    back = {
        "source": records,
        "sink": table(either, "copies", **{"auto.create": True, "insert.mode": "upsert", "pk.fields": ["id"]}),
    }
    for first in (1, 3):
        either.run(*(f"insert into orders values ({one}, 'item {one}')" for one in (first, first + 1)))
        assert folder.run(out=out, back=back), folder.reported
    assert [json.loads(record.value)["id"] for record in committed(topics.servers, name)] == [1, 2, 3, 4]
    assert either.rows("select * from copies order by id") == either.rows("select * from orders order by id")


def test_a_table_is_another_input_of_a_join_and_is_read_again_after_a_reset(
    folder: Folder, topics: Topics, tmp_path: Path
) -> None:
    lite, name, out = Lite(tmp_path), topics.create("orders"), f"{topics.prefix}-out"
    lite.run("create table items (id integer primary key, item text)", "insert into items values (1, 'a'), (2, 'b')")
    topics.send(name, '{"n": 1, "item_id": 2}')
    pipeline = {
        "source": topic(name, valueFormat="json", valueSchema="n int, item_id int"),
        "inputs": {"items": table(lite, "items", incrementing="id")},
        "transforms": [{"sql": "select n, item from input join items on item_id = items.id"}],
        "sink": topic(out),
    }
    assert folder.run(p=pipeline), folder.reported
    lite.run("insert into items values (3, 'c')")
    topics.send(name, '{"n": 2, "item_id": 3}', '{"n": 3, "item_id": 1}')
    assert folder.run(p=pipeline), folder.reported
    joined = [json.loads(record.value) for record in committed(topics.servers, out)]
    assert sorted((one["n"], one["item"]) for one in joined) == [(1, "b"), (2, "c"), (3, "a")]
    feed = {"source": table(lite, "items", incrementing="id"), "sink": topic(f"{topics.prefix}-items")}
    assert folder.run(feed=feed), folder.reported
    manager = folder.manager(feed=feed)
    try:
        manager.pause_or_stop("feed", PipelineState.STOPPED)
        assert manager.reset("feed", ResetTarget("earliest"), discard_state=False) == {}
    finally:
        manager.stop()
        manager.run()
    folder.reported.clear()
    (tmp_path / "state" / "feed" / "target.json").unlink()
    assert folder.run(feed=feed), folder.reported
    again = [json.loads(record.value)["id"] for record in committed(topics.servers, f"{topics.prefix}-items")]
    assert again == [1, 2, 3, 1, 2, 3]


def test_a_tombstone_deletes_a_row_by_the_key_of_its_record(folder: Folder, topics: Topics, either: Either) -> None:
    name = topics.create("orders")
    upsert = {"insert.mode": "upsert", "pk.fields": ["id"], "delete.enabled": True}
    pipeline = {
        "source": topic(name, valueFormat="json", valueSchema="id int, item string"),
        "sink": table(either, "orders", **upsert),
    }
    topics.send(name, '{"id": 1, "item": "a"}', key=b"1")
    topics.send(name, '{"id": 2, "item": "b"}', key=b"2")
    assert folder.run(p=pipeline), folder.reported
    topics.send(name, None, key=b"1")
    topics.send(name, '{"id": 2, "item": "c"}', key=b"2")
    assert folder.run(p=pipeline), folder.reported
    assert either.rows("select * from orders") == [(2, "c")]


@pytest.mark.behaviour("D5")
def test_a_table_of_mysql_follows_a_topic_and_is_read_into_another(
    folder: Folder, topics: Topics, mysql: MySql
) -> None:
    name, out = topics.create("orders"), f"{topics.prefix}-out"
    upsert = {"insert.mode": "upsert", "pk.fields": ["item"], "delete.enabled": True, "auto.create": True}
    mysql.run("create table log (id bigint unsigned auto_increment primary key, item text)")
    mysql.run("insert into log (item) values ('one'), ('two')")
    records = topic(name, valueFormat="json", valueSchema="item string, amount decimal(9,2)")
    pipelines = {
        "in": {"source": records, "sink": table(mysql, "copies", **upsert)},
        "out": {"source": table(mysql, "log", incrementing="id"), "sink": topic(out)},
    }
    for amount in ("1.50", None):
        topics.send(name, amount and f'{{"item": "a", "amount": {amount}}}', key=b"a")
        topics.send(name, '{"item": "A", "amount": 2}', key=b"A")
        assert folder.run(**pipelines), folder.reported
        mysql.run("insert into log (item) values ('three')")
    assert mysql.rows("select * from copies") == [("A", Decimal("2.00"))]
    read = [json.loads(record.value) for record in committed(topics.servers, out)]
    assert [(one["id"], one["item"]) for one in read] == [(1, "one"), (2, "two"), (3, "three")]


def test_a_table_without_transactions_is_refused(folder: Folder, mysql: MySql) -> None:
    mysql.run("create table orders (value bigint, timestamp datetime) engine=MyISAM")
    (found,) = mistakes(folder, p={"source": {"type": "rate"}, "sink": table(mysql, "orders")})
    assert (
        "table orders does not support transactions, so half of a batch could remain; alter table orders engine=InnoDB"
        in found
    )


def test_an_aggregation_that_changes_is_upserted(folder: Folder, topics: Topics, sql: Sql) -> None:
    name = topics.create("orders")
    pipeline = {
        "source": topic(name, valueFormat="json", valueSchema="item string"),
        "transforms": [{"sql": "select item, count(*) as n from input group by item"}],
        "sink": table(sql, "counts", **{"insert.mode": "upsert", "pk.fields": ["item"], "auto.create": True}),
        "outputMode": "update",
    }
    for _ in range(2):
        topics.send(name, '{"item": "a"}', '{"item": "b"}', '{"item": "a"}')
        assert folder.run(p=pipeline), folder.reported
    assert sql.rows("select item, n from counts order by item") == [("a", 4), ("b", 2)]


@pytest.mark.behaviour("D8")
def test_a_database_that_disappears_is_waited_for(folder: Folder, topics: Topics, sql: Sql) -> None:
    sql.run("create table orders (id int primary key)", "create table copies (id int)", "insert into orders values (1)")
    pipeline = {
        "source": table(sql, "orders", incrementing="id"),
        "sink": table(sql, "copies"),
        "trigger": "100 milliseconds",
    }
    manager = folder.manager(once=False, p=pipeline)
    try:
        eventually(lambda: manager.step() or sql.rows("select * from copies") == [(1,)])  # type: ignore[func-returns-value]
        sql.server.kill()
        eventually(lambda: manager.step() or "failed" in folder.events("p"))  # type: ignore[func-returns-value]
        sql.server.start()
        sql.run("insert into orders values (2)")
        eventually(lambda: manager.step() or len(sql.rows("select * from copies")) == 2)  # type: ignore[func-returns-value]
    finally:
        manager.stop()
        manager.run()
    (reason, *_) = [reported.facts["reason"] for reported in folder.reported if reported.event == "failed"]
    assert reason.startswith(f"database {sql.shown}: ")


UPSERT = {"insert.mode": "upsert", "pk.fields": ["item"]}
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "unknown table 'ordres'; did you mean 'orders'?; create it, or set auto.create: true": (
        "table",
        {"table": "ordres"},
    ),
    "table orders: unknown column 'timestamp'; the table has id, item; add it to the table": ("table", {}),
    "pk.fields: item is not unique in table orders, which has id; use that, or `create unique index": (
        "pk.fields",
        UPSERT,
    ),
    "unknown field 'itme'; did you mean 'item'?": ("pk.fields", {**UPSERT, "pk.fields": ["itme"]}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_table_that_does_not_fit_is_refused_before_anything_runs_at_the_place_of_its_key(
    folder: Folder, topics: Topics, either: Either, message: str
) -> None:
    key, more = REFUSED[message]
    fitting = [{"sql": "select cast(value as int) as id, 'a' as item from input"}] if key == "pk.fields" else []
    sink = {**table(either, "orders"), **more}
    (found,) = mistakes(folder, p={"source": {"type": "rate"}, "transforms": fitting, "sink": sink})
    file, line, column, sentence = found.split(":", 3)
    assert message in sentence
    assert (file, folder.text.splitlines()[int(line) - 1][int(column) - 1 :].split(":")[0]) == ("p.yaml", f'"{key}"')


def test_secrets_are_in_no_plan_and_no_checkpoint(folder: Folder, topics: Topics, sql: Sql) -> None:
    sql.run("create table orders (id int primary key)", "insert into orders values (1)")
    (folder.path / "password").write_text("s3cret")
    url = sql.url.replace("s3cret", "${file:password}")
    source = {"type": "database", "url": url, "table": "orders", "incrementing": "id"}
    manager = folder.manager(
        p={"source": source, "sink": {**table(sql, "copies", **{"auto.create": True}), "url": url}}
    )
    frame: Any = manager.runners[0].built.frame
    plan = frame._jdf.queryExecution().toString()
    assert manager.run(), folder.reported
    assert sql.rows("select * from copies") == [(1,)]
    kept = [file for file in folder.path.rglob("*") if file.is_file() and file.name != "password"]
    assert not [file for file in kept if b"s3cret" in file.read_bytes()]
    assert "s3cret" not in f"{plan} {folder.reported}"


def test_a_row_that_a_table_refuses_is_a_dead_letter_and_the_others_are_written(
    folder: Folder, topics: Topics, sql: Sql
) -> None:
    sql.run("create table orders (id integer primary key, item text)")
    name, dead = topics.create("orders"), f"{topics.prefix}-dead"
    topics.send(name, '{"id": 1, "item": "a"}', '{"id": 2, "item": "b\\u0000c"}', '{"id": 3, "item": "d"}', "no JSON")
    pipeline = {
        "source": topic(name, valueFormat="json", valueSchema="id int, item string"),
        "transforms": [{"sql": "select id, item from input"}],
        "sink": table(sql, "orders"),
        "errors": {"tolerance": "all", "deadLetterTopic": dead},
    }
    assert folder.run(p=pipeline), folder.reported
    assert sql.rows("select * from orders order by id") == [(1, "a"), (3, "d")]
    letters = {record.value: dict(record.headers) for record in committed(topics.servers, dead)}
    assert set(letters) == {b'{"id": 2, "item": "b\\u0000c"}', b"no JSON"}
    cause = letters[b'{"id": 2, "item": "b\\u0000c"}']["__connect.errors.exception.message"]
    assert cause is not None
    assert cause.startswith(b"column 'item' has the character NUL: database ")
    assert [one.facts for one in folder.reported if one.event == "progress"][-1]["dead_letters"] == 2


@pytest.mark.parametrize("kind", ["database", "postgres-cdc"])
def test_a_column_that_is_added_under_a_running_manager_is_read_by_the_next_attempt(
    folder: Folder, topics: Topics, sql: Sql, kind: str
) -> None:
    sql.run("create table orders (id integer primary key, item text)", "insert into orders values (1, 'a')")
    name = topics.create("orders")
    source = table(sql, "orders", incrementing="id")
    if kind == "postgres-cdc":
        source = {"type": kind, "url": sql.url, "table": "orders", "envelope": False, "slot.name": f"s_{sql.name}"}
    manager = folder.manager(once=False, p={"source": source, "sink": topic(name)})
    running = threading.Thread(target=manager.run)
    running.start()

    def come() -> list[Any]:
        return [json.loads(record.value) for record in committed(topics.servers, name)]

    try:
        eventually(lambda: len(come()) == 1, timeout=60)
        sql.run("alter table orders add gift text", "insert into orders values (2, 'b', 'yes')")
        eventually(lambda: len(come()) == 2, timeout=60)
    finally:
        manager.stop()
        running.join()
    assert come() == [{"id": 1, "item": "a"}, {"id": 2, "item": "b", "gift": "yes"}]
    assert any("gained the column 'gift'" in str(reported.facts.get("reason")) for reported in folder.reported)
    if kind == "postgres-cdc":
        sql.run(f"select pg_drop_replication_slot('s_{sql.name}')")


@pytest.mark.parametrize("to", ["topic", "delta"])
def test_a_row_of_a_table_that_cannot_be_read_is_a_dead_letter_and_is_counted(
    folder: Folder, topics: Topics, tmp_path: Path, to: str
) -> None:
    lite, name, dead = Lite(tmp_path), topics.create("orders"), f"{topics.prefix}-dead"
    lite.run("create table orders (id integer primary key, n int)")
    lite.run("insert into orders values (1, 1), (2, 'two'), (3, 3), (4, 'four')")
    pipeline = {
        "source": table(lite, "orders", incrementing="id"),
        "sink": topic(name) if to == "topic" else {"type": "delta", "path": "t"},
        "errors": {"tolerance": "all", "deadLetterTopic": dead},
    }
    for _ in range(2):
        assert folder.run(p=pipeline), folder.reported
    if to == "topic":
        assert [json.loads(record.value)["id"] for record in committed(topics.servers, name)] == [1, 3]
    else:
        rows = folder.spark.read.format("ottla_delta").load(str(folder.path / "t")).collect()
        assert sorted(row["id"] for row in rows) == [1, 3]
    letters = [(json.loads(record.value), dict(record.headers)) for record in committed(topics.servers, dead)]
    assert [row["id"] for row, _ in letters] == [2, 4]
    assert {headers["__connect.errors.stage"] for _, headers in letters} == {b"TASK_POLL"}
    assert next(one.facts for one in folder.reported if one.event == "progress")["dead_letters"] == 2
