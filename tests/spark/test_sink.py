"""DataFrames as records, through Spark and a broker."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tests.spark.topics import Topics

pytestmark = pytest.mark.behaviour("D4")
HEADERS = "array<struct<key: string, value: binary>>"


def write(topics: Topics, frame: DataFrame, /, **options: Any) -> None:
    frame.write.format("ottla").options(**topics.options(options)).mode("append").save()


def test_every_column_arrives_in_the_record(topics: Topics) -> None:
    topic = topics.create("out", partitions=3)
    moment = datetime(2013, 7, 1, 12, 30, 0, 250_000, UTC)
    rows = [
        ("key", b"value", 2, moment, [("a", b"1"), ("a", None)]),
        (None, None, 1, moment, None),
    ]
    schema = f"key string, value binary, partition int, timestamp timestamp, headers {HEADERS}"
    write(topics, topics.spark.createDataFrame(rows, schema), topic=topic, includeTimestamp="true")
    empty, full = topics.records(topic)
    assert (empty.partition, empty.key, empty.value, list(empty.headers)) == (1, None, None, [])
    assert (full.partition, full.key, full.value) == (2, b"key", b"value")
    assert full.timestamp == 1_372_681_800_250
    assert [tuple(header) for header in full.headers] == [("a", b"1"), ("a", None)]


def test_a_column_timestamp_is_the_time_of_the_record_only_with_the_option(topics: Topics) -> None:
    topic = topics.create("out")
    before = int(time.time() * 1000)
    write(topics, topics.spark.sql("select 'old' as value, timestamp_millis(1) as timestamp"), topic=topic)
    write(
        topics,
        topics.spark.sql("select 'text' as value, 'noon' as timestamp, 1 as headers"),
        topic=topic,
        includeHeaders="false",
    )
    assert all(record.timestamp >= before for record in topics.records(topic))
    with pytest.raises(
        PySparkException, match="includeTimestamp is true, and there is no column 'timestamp', only value"
    ):
        write(topics, topics.spark.sql("select 'none' as value"), topic=topic, includeTimestamp="true")


def test_each_row_may_name_its_topic(topics: Topics) -> None:
    first, second = topics.create("first"), topics.create("second")
    rows = [(first, "1"), (second, "2"), (first, "3")]
    write(topics, topics.spark.createDataFrame(rows, "topic string, value string").coalesce(1))
    assert topics.values(first) == ["1", "3"]
    assert topics.values(second) == ["2"]


def test_the_option_topic_wins_over_the_column(topics: Topics) -> None:
    topic = topics.create("out")
    write(topics, topics.spark.createDataFrame([("elsewhere", "1")], "topic string, value string"), topic=topic)
    assert topics.values(topic) == ["1"]


def test_keys_choose_partitions_as_kafka_s_own_client_does(topics: Topics) -> None:
    topic = topics.create("out", partitions=6)
    rows = [(f"N{n}", str(n)) for n in range(50)]
    write(topics, topics.spark.createDataFrame(rows, "key string, value string"), topic=topic)
    from kafka.partitioner.default import murmur2

    for record in topics.records(topic):
        assert record.partition == (murmur2(record.key) & 0x7FFFFFFF) % 6


def test_a_million_bytes_in_many_rows_arrive_once_each(topics: Topics) -> None:
    topic = topics.create("out", partitions=2)
    frame = topics.spark.range(20_000).selectExpr("cast(id as string) as key", "rpad(id, 50, '.') as value")
    write(topics, frame, topic=topic)
    assert sorted(int(record.key) for record in topics.records(topic)) == list(range(20_000))


def test_a_stream_copies_a_topic_to_a_topic(topics: Topics, tmp_path: Path) -> None:
    source, target = topics.create("in", partitions=2), topics.create("out", partitions=2)
    for partition in (0, 1):
        topics.send(source, f"v{partition}", partition=partition, key=b"k", headers=[("h", b"x")], timestamp=5000)
    stream = topics.stream(subscribe=source, startingOffsets="earliest", includeHeaders="true")
    query = (
        stream.select("key", "value", "partition", "headers", "timestamp")
        .writeStream.format("ottla")
        .options(**topics.options({"topic": target, "includeTimestamp": "true"}), checkpointLocation=str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    copied = [(r.partition, r.key, r.value, list(r.headers), r.timestamp) for r in topics.records(target)]
    assert copied == [(p, b"k", f"v{p}".encode(), [("h", b"x")], 5000) for p in (0, 1)]


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ("key string", {"topic": "t"}, "there is no column 'value' to write, only key; rename one to value"),
        ("value string", {}, "there is no topic to write to; set the option topic, or add a column 'topic'"),
        ("value int", {"topic": "t"}, "column 'value' is int, but must be string or binary; cast it"),
        ("value string, partition string", {"topic": "t"}, "column 'partition' is string, but must be int; cast it"),
        ("value string, headers array<string>", {"topic": "t"}, "column 'headers' is array<string>, but must be array"),
        ("value string", {"topics": "t"}, "unknown option 'topics'; did you mean 'topic'?"),
        ("value string", {"topic": "t", "kafka.lingerms": "1"}, "unknown setting 'lingerms'; did you mean 'linger_ms'"),
    ],
)
def test_an_unwritable_dataframe_is_a_one_line_error(
    topics: Topics, columns: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PySparkException) as error:
        write(topics, topics.spark.createDataFrame([], columns), **options)
    assert sentence in str(error.value)
    assert "Traceback" not in str(error.value)


def test_a_row_without_a_topic_fails_the_write_with_an_error(topics: Topics) -> None:
    frame = topics.spark.createDataFrame([(None, "1")], "topic string, value string")
    with pytest.raises(PySparkException, match=r"it has no topic; set column 'topic', or the option"):
        write(topics, frame)


def test_a_topic_cannot_be_overwritten(topics: Topics) -> None:
    frame = topics.spark.createDataFrame([("1",)], "value string")
    with pytest.raises(PySparkException, match="a topic cannot be overwritten; write with"):
        frame.write.format("ottla").options(**topics.options({"topic": "t"})).mode("overwrite").save()
