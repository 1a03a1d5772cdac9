"""Tables through Spark: streams that are done again, batches, and what users read when something is wrong."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from ottla.spark.tables.delta_store import DeltaStore
from ottla.spark.tables.guard import BatchMark, describe_gap
from ottla.spark.tables.iceberg_store import IcebergStore
from ottla.spark.tables.sink import StreamTableSink, WrittenFiles
from tests.spark.tables.lake import FORMATS, Lake
from tests.spark.tables.streams import forget_last_batch, numbers, once, run
from tests.spark.topics import Topics

pytestmark = [pytest.mark.behaviour("D2", "D3"), pytest.mark.heavy]


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path / "lake")


def test_a_stream_is_in_the_table_once_though_its_last_batch_is_done_again(topics: Topics, tmp_path: Path) -> None:
    lake = Lake("delta", tmp_path / "lake")
    topic, checkpoint = topics.create(), tmp_path / "checkpoint"
    topics.send(topic, *map(str, range(6)))
    run(numbers(topics, topic), lake, checkpoint)
    assert lake.counts() == once(*range(6))
    files = lake.files()
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    forget_last_batch(checkpoint)
    topics.send(topic, "6", "7")
    run(numbers(topics, topic), lake, checkpoint)
    assert lake.counts() == once(*range(8))
    assert len(lake.files()) == len(files) + 1

    topics.send(topic, "8")
    with pytest.raises(StreamingQueryException, match="two queries use one checkpoint, or copies of it") as error:
        run(numbers(topics, topic), lake, copy)
    assert "Traceback" not in str(error.value)
    assert lake.counts() == once(*range(8))


def test_a_query_with_empty_first_batches_is_known_to_its_table(topics: Topics, lake: Lake, tmp_path: Path) -> None:
    topic, checkpoint = topics.create(), tmp_path / "checkpoint"
    rows = numbers(topics, topic).where("n > 5")
    for numbers_sent in ("12", "34", "67"):
        topics.send(topic, *numbers_sent)
        run(rows, lake, checkpoint)
    query = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"]
    assert lake.counts() == once(6, 7)
    assert lake.store().has_query(query)
    assert not lake.store().has_query("another")
    shutil.rmtree(tmp_path / "lake")
    topics.send(topic, "1")
    run(rows, lake, checkpoint)
    assert lake.store().has_query(query), "a batch without rows is remembered once, whichever it is"


def test_a_table_records_a_query_with_its_first_empty_batch(lake: Lake) -> None:
    writer = lake.writer()
    sink = StreamTableSink(writer)
    sink.commit([WrittenFiles("q", ())], 0)
    assert lake.store().has_query("q")
    before = versions(lake)
    sink.commit([WrittenFiles("q", ())], 1)
    assert versions(lake) == before, "another one without rows is no commit"
    assert describe_gap(BatchMark("q", 2), BatchMark("q", 0), "t") is None


def versions(lake: Lake) -> int:
    """How often the table was changed."""
    store = lake.store()
    if isinstance(store, DeltaStore):
        delta = store.open()
        assert delta is not None
        return delta.version()
    assert isinstance(store, IcebergStore)
    table = store.open()
    assert table is not None
    return len(table.metadata.metadata_log)


def test_rows_of_another_schema_stop_a_stream_with_an_error(topics: Topics, tmp_path: Path) -> None:
    lake, topic = Lake("iceberg", tmp_path / "lake"), topics.create()
    topics.send(topic, "1")
    run(numbers(topics, topic), lake, tmp_path / "first")
    with pytest.raises(StreamingQueryException, match="column 'n' is int in the rows and bigint in the table; cast it"):
        run(numbers(topics, topic).selectExpr("cast(n as int) as n", "offset"), lake, tmp_path / "second")
    assert lake.counts() == once(1)


def test_a_failed_batch_is_invisible_and_its_files_are_deleted_when_it_is_repeated(
    topics: Topics, tmp_path: Path
) -> None:
    lake, topic, checkpoint = Lake("delta", tmp_path), topics.create(partitions=2), tmp_path / "checkpoint"
    topics.send(topic, "1", partition=0)
    topics.send(topic, "poison", partition=1)
    rows = numbers(topics, topic)
    with pytest.raises(StreamingQueryException, match="CAST_INVALID_INPUT"):
        run(rows, lake, checkpoint)
    assert lake.counts() == once()
    stream = topics.stream(subscribe=topic, startingOffsets="earliest")
    run(stream.selectExpr("try_cast(cast(value as string) as bigint) as n", "offset"), lake, checkpoint)
    assert lake.counts() == Counter({1: 1, None: 1})
    assert {Path(file).name for file in lake.files()} == lake.store().file_names()


def test_batches_append_and_overwrite_and_are_read_back(spark: SparkSession, lake: Lake) -> None:
    frame = spark.range(100).selectExpr("id as n", "cast(id % 3 as int) as part", "timestamp_seconds(id) as at")
    for number in (0, 1, 1):
        again = {"txnAppId": "test", "txnVersion": str(number), "partitionBy": "part"}
        save(frame, lake, "append", **again)
    assert lake.counts() == Counter(dict.fromkeys(range(100), 2))
    found = spark.read.format(lake.format).options(**lake.spark_options).load(lake.table)
    assert found.select("n", "part", "at").exceptAll(frame.union(frame)).count() == 0
    assert found.filter("part = 1 and n > 50 and at < timestamp_seconds(60)").count() == 2 * 3
    save(frame.limit(0), lake, "overwrite")
    assert lake.counts() == Counter()


def save(frame: DataFrame, lake: Lake, mode: str, **options: str) -> None:
    frame.write.format(lake.format).options(**lake.spark_options, **options).mode(mode).save(lake.table)


def test_an_invalid_option_is_a_one_line_error(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(PySparkException, match="unknown option 'colour'") as error:
        save(spark.range(1).toDF("n"), lake, "append", colour="red")
    assert "Traceback" not in str(error.value)
    with pytest.raises(PySparkException, match=r"there is no (Delta|Iceberg) table"):
        spark.read.format(lake.format).options(**lake.spark_options).load(lake.table)
