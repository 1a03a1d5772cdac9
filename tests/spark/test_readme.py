"""The guide's blocks for Spark, in their order in one session, as a reader would paste them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla import Broker, Producer, read_table
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager
from tests.repository.readme import blocks, spark_blocks

ORDER = b'{"id": 7, "at": "2026-05-01T10:00:00Z", "items": [{"sku": "tea", "count": 2}]}'


@pytest.mark.usefixtures("spark")
def test_the_blocks_read_decode_copy_and_keep_what_is_in_the_topics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scope: dict[str, Any] = {}
    with Broker() as broker:
        send(broker, hello=[b"world"], orders=[ORDER, b"no order"])
        try:
            for block in spark_blocks():
                exec(placed(block, broker, tmp_path), scope)
            assert "77 6F 72 6C 64" in capsys.readouterr().out  # what the table of words shows: world
            assert collected(scope["good"], "value.items[0].sku") == ["tea"]
            assert collected(scope["bad"], "_raw") == [b"no order"]
            scope["copying"].processAllAvailable()
            words = read_table("words", bootstrap_servers=broker.bootstrap_servers)
            assert words["value"].to_pylist() == [b"world"]
        finally:
            for query in SparkSession.active().streams.active:
                query.stop()


def test_the_pipeline_masks_keeps_and_sets_aside_what_it_cannot_read(spark: SparkSession, tmp_path: Path) -> None:
    (block,) = blocks("yaml")
    with Broker() as broker:
        send(broker, orders=[b'{"id": 7, "card": "4111"}', b"no order"])
        reads = read_text(placed(block, broker, tmp_path).encode(), "orders.yaml", tmp_path, {})
        assert Manager(reads, spark, once=True).run()
        dead = read_table("orders-dead", bootstrap_servers=broker.bootstrap_servers)
    (row,) = spark.read.format("ottla_delta").load(str(tmp_path / "lake/orders")).collect()
    assert (row.id, row.card, dead["value"].to_pylist()) == (7, "", [b"no order"])


def send(broker: Broker, **topics: list[bytes]) -> None:
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for topic, values in topics.items():
            for value in values:
                producer.send(topic, value)


def placed(block: str, broker: Broker, folder: Path) -> str:
    """The block with this broker's address and with paths that are absolute: Spark's folder is not the test's to choose."""
    block = block.replace("127.0.0.1:9092", broker.bootstrap_servers)
    return block.replace('"lake/', f'"{folder}/lake/').replace('"checkpoints/', f'"{folder}/checkpoints/')


def collected(frame: Any, column: str) -> list[Any]:
    """Return the values of one column that a stream has so far."""
    name = f"readme_{column.strip('_')[:3]}"
    stream = frame.selectExpr(f"{column.removeprefix('value.')} as found").writeStream
    stream.format("memory").queryName(name).trigger(availableNow=True).start().awaitTermination(60)
    return [
        row.found if isinstance(row.found, str) else bytes(row.found)
        for row in SparkSession.active().table(name).collect()
    ]


def test_a_delta_table_in_which_there_is_nothing_yet_is_read_as_empty(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.createDataFrame([], "word string").write.format("ottla_delta").mode("append").save(table)
    assert spark.read.format("ottla_delta").load(table).collect() == []
