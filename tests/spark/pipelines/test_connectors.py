"""Sources and sinks of every other type, run by the manager."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ottla import Broker
from ottla.pipelines.http_calls import connection_pool
from tests.patience import eventually
from tests.pipelines.web import Answer, Web, web
from tests.postgres import Sql
from tests.spark.pipelines.test_databases import table, topic
from tests.spark.pipelines.test_manager import Folder, committed
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

SCHEMA = "id int, item string"


@pytest.fixture
def folder(spark: SparkSession, broker: Broker, tmp_path: Path) -> Folder:
    return Folder(spark, broker, tmp_path)


@pytest.fixture
def server() -> Iterator[Web]:
    with web() as found:
        yield found
        connection_pool().clear()


def lines(folder: Folder, *numbers: int, name: str = "a") -> None:
    folder.write(f"in/{name}.json", "".join(f'{{"id": {one}, "item": "item {one}"}}\n' for one in numbers))


def files(**more: Any) -> dict[str, Any]:
    return {"type": "files", "format": "json", "path": "in", "schema": SCHEMA, **more}


def rows(found: Any) -> list[tuple[int, str]]:
    return sorted((row.id, row.item) for row in found.collect())


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_files_are_written_for_each_batch_and_no_row_is_there_twice(
    folder: Folder, spark: SparkSession, kind: str
) -> None:
    sink = {"type": "files", "format": kind, "path": f"out/{kind}"}
    for name, number in (("a", 1), ("b", 2)):
        lines(folder, number, name=name)
        assert folder.run(p={"source": files(), "sink": sink}), folder.reported
    found = spark.read.schema(SCHEMA).format(kind).load(str(folder.path / "out" / kind))
    assert rows(found) == [(1, "item 1"), (2, "item 2")]


@pytest.mark.behaviour("D8")
def test_a_folder_that_disappears_is_waited_for(folder: Folder, topics: Topics) -> None:
    out = f"{topics.prefix}-out"
    lines(folder, 1)
    manager = folder.manager(once=False, p={"source": files(), "sink": topic(out), "trigger": "100 milliseconds"})
    (runner,) = manager.runners

    def step_until(condition: Callable[[], object]) -> None:
        eventually(lambda: manager.step() or condition())  # type: ignore[func-returns-value]

    try:
        step_until(lambda: "progress" in folder.events("p"))
        away = (folder.path / "in").rename(folder.path / "away")
        step_until(lambda: "Getting offsets" in runner._queries[0].status["message"])  # it looks, and finds nothing
        away.rename(folder.path / "in")
        lines(folder, 2, name="b")
        step_until(lambda: folder.events("p").count("progress") == 2)
    finally:
        manager.stop()
        manager.run()
    assert [json.loads(record.value)["id"] for record in committed(topics.servers, out)] == [1, 2]


def test_files_of_the_sink_are_read_as_parquet_and_as_lines(folder: Folder, spark: SparkSession) -> None:
    lines(folder, 1, 2)
    parquet = {"type": "files", "format": "parquet", "path": "out/a"}
    assert folder.run(p={"source": files(), "sink": parquet}), folder.reported
    again = {"source": {"type": "files", "format": "parquet", "path": "out/a"}, "sink": {**parquet, "path": "out/b"}}
    text = {"source": {"type": "files", "format": "lines", "path": "in"}, "sink": {**parquet, "path": "out/c"}}
    assert folder.run(again=again, text=text), folder.reported
    assert rows(spark.read.parquet(str(folder.path / "out/b"))) == [(1, "item 1"), (2, "item 2")]
    values = [row.value for row in spark.read.parquet(str(folder.path / "out/c")).collect()]
    assert sorted(json.loads(one)["id"] for one in values) == [1, 2]


def test_folders_are_made_of_columns(folder: Folder, spark: SparkSession) -> None:
    lines(folder, 1, 2)
    sink = {"type": "files", "format": "csv", "path": "out", "partitionBy": ["id"], "options": {"header": True}}
    assert folder.run(p={"source": files(), "sink": sink}), folder.reported
    assert sorted(one.name for one in (folder.path / "out").glob("id=*")) == ["id=1", "id=2"]


def test_an_iceberg_table_has_each_row_once(folder: Folder, spark: SparkSession) -> None:
    sink = {"type": "iceberg", "table": "shop.orders", "warehouse": "lake"}
    for name, number in (("a", 1), ("b", 2)):
        lines(folder, number, name=name)
        assert folder.run(p={"source": files(), "sink": sink}), folder.reported
    found = spark.read.format("ottla_iceberg").option("warehouse", str(folder.path / "lake")).load("shop.orders")
    assert rows(found) == [(1, "item 1"), (2, "item 2")]


def test_any_format_of_sparks_is_passed_through_with_its_options(folder: Folder, spark: SparkSession) -> None:
    lines(folder, 1)
    out = {"type": "spark", "format": "orc", "options": {"path": str(folder.path / "orc")}}
    assert folder.run(p={"source": files(), "sink": out}), folder.reported
    assert rows(spark.read.orc(str(folder.path / "orc"))) == [(1, "item 1")]


def test_rows_come_at_a_steady_pace(folder: Folder, topics: Topics) -> None:
    name = topics.create("ticks")
    pipeline = {"source": {"type": "rate", "rowsPerSecond": 50}, "sink": topic(name), "trigger": "100 milliseconds"}
    manager = folder.manager(once=False, p=pipeline)

    def rows_out() -> int:
        return sum(int(reported.facts["rows_out"]) for reported in folder.reported if reported.event == "progress")

    def enough() -> bool:
        manager.step()
        return rows_out() >= 50

    try:
        eventually(enough)
    finally:
        manager.stop()
        manager.run()
    found = sorted(json.loads(record.value)["value"] for record in committed(topics.servers, name))
    assert found[: rows_out()] == list(range(rows_out()))
    assert len(set(found)) == len(found), "a batch that the stop has broken off may be there in part, and none twice"


def test_an_address_is_read_into_a_topic_and_sent_to_another(folder: Folder, topics: Topics, server: Web) -> None:
    name = topics.create("orders")
    server.answers += [Answer([{"id": 1, "item": "a"}, {"id": 2, "item": "b"}])]
    cursor = {"cursor.parameter": "after", "cursor.field": "id"}
    out = {"source": {"type": "http", "url": server.url, "schema": SCHEMA, **cursor}, "sink": topic(name)}
    back = {
        "source": topic(name, valueFormat="json", valueSchema=SCHEMA),
        "sink": {"type": "http", "url": server.url, "batch.max.rows": 10},
    }
    assert folder.run(out=out, back=back), folder.reported
    (posted,) = [one for one in server.asked if one.method == "POST"]
    assert json.loads(posted.body) == [{"id": 1, "item": "a"}, {"id": 2, "item": "b"}]
    assert posted.headers["Idempotency-Key"]


@pytest.mark.behaviour("D1", "D2")
def test_changes_of_a_database_make_a_delta_table_and_another_database_equal_to_it(
    folder: Folder, topics: Topics, sql: Sql
) -> None:
    name = topics.create("orders")
    sql.run("create table orders (id int primary key, item text)", "insert into orders values (1, 'a'), (2, 'b')")
    changes = {**table(sql, "orders"), "type": "postgres-cdc", "slot.name": f"s_{sql.name}", "envelope": False}
    records = topic(name, keyFormat="json", keySchema="id int", valueFormat="json", valueSchema=SCHEMA)
    delta = {"type": "delta", "path": "lake/orders", "key": ["id"], "delete.enabled": True}
    upsert = {"insert.mode": "upsert", "pk.fields": ["id"], "delete.enabled": True, "auto.create": True}
    pipelines = {
        "out": {"source": changes, "sink": topic(name)},
        "lake": {"source": records, "sink": delta},
        "copy": {"source": records, "sink": table(sql, "copies", **upsert)},
    }
    for statements in (
        ["select 1"],
        [
            "update orders set item = 'c' where id = 1",
            "delete from orders where id = 2",
            "insert into orders values (3, 'd')",
        ],
        ["update orders set id = 4 where id = 3", "insert into orders values (2, 'again')"],
    ):
        sql.run(*statements)
        assert folder.run(**pipelines), folder.reported
        lake = DeltaTable(str(folder.path / "lake/orders")).to_pyarrow_table().to_pylist()
        wanted = sql.rows("select id, item from orders order by id")
        assert sorted((row["id"], row["item"]) for row in lake) == wanted
        assert sql.rows("select id, item from copies order by id") == wanted
    sql.run(f"select pg_drop_replication_slot('s_{sql.name}')")


@pytest.mark.behaviour("D1")
def test_changes_are_sent_to_a_topic_in_debeziums_envelope_with_their_keys(
    folder: Folder, topics: Topics, sql: Sql
) -> None:
    name = topics.create("orders")
    sql.run("create table orders (id int primary key, item text)", "insert into orders values (1, 'a')")
    changes = {**table(sql, "orders"), "type": "postgres-cdc", "slot.name": f"s_{sql.name}"}
    pipeline = {"source": changes, "sink": topic(name)}
    assert folder.run(p=pipeline), folder.reported
    sql.run("update orders set item = 'b'", "delete from orders")
    assert folder.run(p=pipeline), folder.reported
    found = [(json.loads(one.key), one.value and json.loads(one.value)) for one in committed(topics.servers, name)]
    assert [key for key, _ in found] == [{"id": 1}] * 4
    assert [value and value["op"] for _, value in found] == ["r", "u", "d", None]
    assert [value["after"] for _, value in found[:3]] == [{"id": 1, "item": "a"}, {"id": 1, "item": "b"}, None]
    assert found[2][1]["before"] == {"id": 1, "item": None}
    sql.run(f"select pg_drop_replication_slot('s_{sql.name}')")
