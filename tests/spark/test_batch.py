"""Topics as batch sources, through Spark and a broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import spark_partition_id

from ottla.spark.columns.schema import spark_schema
from tests.spark.topics import Topics, values

pytestmark = pytest.mark.behaviour("D4")


def test_every_column_is_that_of_the_official_connector(topics: Topics) -> None:
    topic = topics.create(partitions=2)
    topics.send(topic, "one", key=b"k", timestamp=1_357_035_300_123, partition=1)
    topics.send(topic, None, "")
    frame = topics.read(subscribe=topic)
    assert frame.schema == spark_schema(include_headers=False)
    rows = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
    moments = frame.selectExpr("partition", "unix_millis(timestamp) as ms").collect()
    assert [(row.key, row.value, row.topic, row.partition, row.offset, row.timestampType) for row in rows] == [
        (None, None, topic, 0, 0, 0),
        (None, b"", topic, 0, 1, 0),
        (b"k", b"one", topic, 1, 0, 0),
    ]
    assert {(row.partition, row.ms) for row in moments} == {(0, 1000), (1, 1_357_035_300_123)}
    assert rows[2].timestamp.astimezone(UTC) == datetime(2013, 1, 1, 10, 15, 0, 123_000, UTC)


def test_headers_are_returned_only_with_the_option(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, "one", headers=[("a", b"1"), ("a", None), ("ü", b"")])
    topics.send(topic, "two")
    frame = topics.read(subscribe=topic, includeHeaders="true")
    assert frame.schema == spark_schema(include_headers=True)
    first, second = frame.orderBy("offset").collect()
    assert [tuple(header) for header in first.headers] == [("a", b"1"), ("a", None), ("ü", b"")]
    assert not second.headers


def test_a_range_of_offsets_is_read_and_no_more(topics: Topics) -> None:
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        topics.send(topic, *(f"{partition}:{n}" for n in range(5)), partition=partition)
    start, end = {topic: {"0": 2, "1": -2}}, {topic: {"0": -1, "1": 1}}
    frame = topics.read(subscribe=topic, startingOffsets=json.dumps(start), endingOffsets=json.dumps(end))
    assert values(frame.collect()) == ["0:2", "0:3", "0:4", "1:0"]


def test_a_range_of_time_is_read_and_no_more(topics: Topics) -> None:
    topic = topics.create()
    for moment in (1000, 2000, 3000, 4000):
        topics.send(topic, str(moment), timestamp=moment)
    frame = topics.read(subscribe=topic, startingTimestamp=1500, endingTimestamp=3500)
    assert values(frame.collect()) == ["2000", "3000"]
    by_partition = json.dumps({topic: {"0": 2500}})
    assert values(topics.read(subscribe=topic, startingOffsetsByTimestamp=by_partition).collect()) == ["3000", "4000"]


def test_a_time_after_the_last_record_is_an_error_or_the_end(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, "one", timestamp=1000)
    late = {"subscribe": topic, "startingTimestamp": 2000}
    with pytest.raises(PySparkException, match=f"startingTimestamp: {topic}-0 has no record at 2000 or later"):
        topics.read(**late).collect()
    assert topics.read(**late, startingOffsetsByTimestampStrategy="latest").collect() == []


def test_large_ranges_are_split_into_the_tasks_that_were_wished_for(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, *map(str, range(100)))
    for options, tasks in (({"minPartitions": 4}, 4), ({"maxRecordsPerPartition": 15}, 7)):
        frame = topics.read(subscribe=topic, **options).withColumn("task", spark_partition_id())
        rows = frame.collect()
        assert {row.offset for row in rows} == set(range(100))
        assert len(rows) == 100
        assert len({row.task for row in rows}) == tasks


def read_by_the_task(frame: DataFrame) -> int:
    """How many rows the source gave to Spark, before any filter of Spark's."""
    plan = frame._jdf.queryExecution().executedPlan()
    while plan.children().size():
        plan = plan.children().head()
    return int(plan.metrics().apply("numOutputRows").value())


@pytest.mark.parametrize(
    ("predicate", "expected", "read"),
    [
        ("partition = 1 and offset >= 2 and offset < 4", ["1:2", "1:3"], 2),
        ("partition in (0, 7) and offset = 3", ["0:3"], 1),
        ("timestamp >= timestamp_millis(3000)", ["0:3", "0:4", "1:3", "1:4"], 4),
        ("timestamp > timestamp_millis(2999) and timestamp < timestamp_millis(4000)", ["0:3", "1:3"], 4),
        ("topic = 'other'", [], 0),
        ("offset > 9", [], 0),
        ("offset is not null and value = '0:2'", ["0:2"], 10),
    ],
)
def test_records_excluded_by_a_predicate_are_not_read(
    topics: Topics, predicate: str, expected: list[str], read: int
) -> None:
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        for n in range(5):
            topics.send(topic, f"{partition}:{n}", partition=partition, timestamp=n * 1000)
    frame = topics.read(subscribe=topic).where(predicate)
    assert values(frame.collect()) == expected
    assert read_by_the_task(frame) == read


def test_predicates_that_spark_does_not_pass_on_are_left_to_spark(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, *map(str, range(5)))
    topics.spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert values(topics.read(subscribe=topic).where("offset >= 3").collect()) == ["3", "4"]
    finally:
        topics.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_topics_are_found_by_a_pattern_and_partitions_by_name(topics: Topics) -> None:
    first, second, other = topics.create("x1"), topics.create("x2"), topics.create("other")
    for topic in (first, second, other):
        topics.send(topic, topic)
    assert values(topics.read(subscribePattern=f"{topics.prefix}-x[0-9]").collect()) == sorted([first, second])
    assert values(topics.read(assign=json.dumps({other: [0]})).collect()) == [other]


def test_an_empty_topic_gives_no_rows(topics: Topics) -> None:
    assert topics.read(subscribe=topics.create()).collect() == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribe": "t", "startingOffset": "earliest"}, "'startingoffset'; did you mean 'startingOffsets'?"),
        ({"subscribe": "t", "assign": "{}"}, "options subscribe and assign exclude each other: give only one of them"),
        ({}, "one of the options subscribe, subscribePattern, assign is required"),
        ({"subscribe": "t", "kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset is not allowed: use the"),
    ],
)
def test_a_wrong_option_is_a_one_line_error_before_anything_runs(
    topics: Topics, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(AnalysisException) as error:
        topics.read(**options)
    said = str(error.value)
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets = 'latest': a batch query would have nothing to read"),
        ({"endingOffsets": '{"other":{"0":1}}'}, "endingOffsets has no offset for .*-0; give one for every partition"),
        ({"kafka.fetch.min.byte": "1"}, "'fetch.min.byte'; did you mean 'fetch.min.bytes'?"),
    ],
)
def test_an_option_that_does_not_fit_the_query_is_a_one_line_error(
    topics: Topics, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(PySparkException, match=sentence) as error:
        topics.read(subscribe=topics.create(), **options).collect()
    assert "Traceback" not in str(error.value)


def test_an_unknown_topic_is_a_one_line_error_and_is_not_created(topics: Topics) -> None:
    for _ in range(2):
        with pytest.raises(PySparkException, match=r"there is no topic 'nowhere' at .*; create it, or correct"):
            topics.read(subscribe="nowhere").collect()


def test_an_unreachable_kafka_is_a_one_line_error(topics: Topics) -> None:
    nobody = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "300"}
    with pytest.raises(
        PySparkException, match=r"no Kafka broker answered within 300 ms .*: connection refused"
    ) as error:
        topics.read(subscribe="t", **nobody).collect()
    assert "Traceback" not in str(error.value)


def test_offsets_that_are_not_there_fail_or_are_left_out_as_the_user_wishes(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, "one", "two")
    beyond = {"subscribe": topic, "endingOffsets": json.dumps({topic: {"0": 9}})}
    with pytest.raises(PySparkException, match=f"{topic}-0 ends at offset 2, before offset 9; set the option failOn"):
        topics.read(**beyond).collect()
    assert values(topics.read(**beyond, failOnDataLoss="false").collect()) == ["one", "two"]


def test_a_range_that_is_not_there_or_ends_before_it_starts_is_not_an_empty_one(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, "one", "two", "three")

    def read(start: int, end: int, **more: str) -> list[str]:
        bounds = {"startingOffsets": start, "endingOffsets": end}
        options = {name: json.dumps({topic: {"0": offset}}) for name, offset in bounds.items()}
        return values(topics.read(subscribe=topic, **options, **more).collect())

    with pytest.raises(PySparkException, match=f"{topic}-0 ends at offset 3, before offset 9; set the option failOn"):
        read(9, -1)
    assert read(9, -1, failOnDataLoss="false") == []
    sentence = (
        rf"{topic}-0 would be read from offset 2 \(startingOffsets\) to offset 1 \(endingOffsets\), which is before"
    )
    with pytest.raises(PySparkException, match=sentence):
        read(2, 1, failOnDataLoss="false")
    topics.delete_before(topic, 2)
    with pytest.raises(PySparkException, match=f"{topic}-0 starts at offset 2, after offset 1; set the option failOn"):
        read(-2, 1)


def test_a_partition_s_time_may_be_the_earliest_or_the_latest(topics: Topics) -> None:
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        for moment in (1000, 2000):
            topics.send(topic, f"{partition}:{moment}", timestamp=moment, partition=partition)
    starts, ends = json.dumps({topic: {"0": -2, "1": 1500}}), json.dumps({topic: {"0": 1500, "1": -1}})
    frame = topics.read(subscribe=topic, startingOffsetsByTimestamp=starts, endingOffsetsByTimestamp=ends)
    assert values(frame.collect()) == ["0:1000", "1:2000"]


def test_a_schema_of_one_s_own_is_refused(topics: Topics) -> None:
    reader = topics.spark.read.format("ottla").options(**topics.options({"subscribe": topics.create()}))
    with pytest.raises(PySparkException, match="the columns of a topic are fixed"):
        reader.schema("value string").load().collect()
