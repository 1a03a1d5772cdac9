"""The Spark source and sink at Apache Kafka, together with other clients that write and read the topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer as Librdkafka
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from ottla import Admin, NewTopic
from tests.client.conftest import fresh_name
from tests.spark.topics import Topics, new_session, values

pytestmark = [pytest.mark.behaviour("D4"), pytest.mark.usefixtures("quick_drivers")]
ROWS = 5_000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = new_session(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


@pytest.fixture
def topics(spark: SparkSession, apache_kafka: str) -> Topics:
    return Topics(spark, apache_kafka, fresh_name())


def produce(topics: Topics, topic: str, codec: str) -> None:
    """Write the rows with librdkafka."""
    producer = Librdkafka({"bootstrap.servers": topics.servers, "compression.type": codec, "linger.ms": 20})
    for n in range(ROWS):
        key = None if n % 10 == 0 else f"k{n}"
        producer.produce(topic, f"v{n}", key, headers=[("n", str(n))], timestamp=1_000 + n)
        producer.poll(0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_source_reads_every_codec(topics: Topics, codec: str) -> None:
    topic = topics.create(codec, partitions=3)
    produce(topics, topic, codec)
    frame = topics.read(subscribe=topic, includeHeaders="true", minPartitions=6)
    rows = {bytes(row.value).decode(): row for row in frame.collect()}
    assert len(rows) == frame.count() == ROWS
    assert all(rows[f"v{n}"].headers[0].value == str(n).encode() for n in range(ROWS))
    assert rows["v10"].key is None
    assert rows["v11"].key == b"k11"
    assert frame.selectExpr("max(unix_millis(timestamp)) as last").collect()[0].last == 1_000 + ROWS - 1


def test_the_source_reads_ranges_of_offsets_and_of_time(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, "1000", timestamp=1000)
    topics.send(topic, "2000", timestamp=2000)
    topics.send(topic, "3000", timestamp=3000)
    assert values(topics.read(subscribe=topic, startingTimestamp=1500).collect()) == ["2000", "3000"]
    end = json.dumps({topic: {"0": 2}})
    assert values(topics.read(subscribe=topic, endingOffsets=end).collect()) == ["1000", "2000"]


def test_malformed_records_are_reported_next_to_readable_ones(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, '{"id": 1}', "poison", '{"id": "x"}', None)
    frame = topics.read(subscribe=topic, valueFormat="json", valueSchema="id bigint").orderBy("offset")
    rows = frame.selectExpr("value.id", "_error is null as good").collect()
    assert [tuple(row) for row in rows] == [(1, True), (None, False), (None, False), (None, True)]


def test_a_recreated_topic_stops_the_query_and_its_group_has_the_offsets(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.send(topic, *"abc")
    options = {"subscribe": topic, "startingOffsets": "earliest", "commitOffsetsToGroup": f"of-{topic}"}

    def run() -> None:
        query = (
            topics.stream(**options)
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    run()
    with Admin(bootstrap_servers=topics.servers) as admin:
        (described,) = admin.list_consumer_group_offsets(f"of-{topic}").values()
    assert described is not None
    assert described.offset == 3
    topics.delete(topic)
    topics.create()
    topics.send(topic, *"defgh")
    with pytest.raises(
        StreamingQueryException, match=f"topic {topic} was deleted and created again; the query had read"
    ):
        run()


def test_predicates_limit_the_records_that_are_read(topics: Topics) -> None:
    topic = topics.create(partitions=2)
    for n in range(5):
        topics.send(topic, str(n), partition=n % 2, timestamp=n * 1000)
    assert values(topics.read(subscribe=topic).where("partition = 1 and offset >= 1").collect()) == ["3"]
    assert values(topics.read(subscribe=topic).where("timestamp >= timestamp_millis(2500)").collect()) == ["3", "4"]


def test_broker_timestamps_are_distinguished_from_producer_timestamps(topics: Topics) -> None:
    topic = f"{topics.prefix}-appended"
    with Admin(bootstrap_servers=topics.servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1, {"message.timestamp.type": "LogAppendTime"})])
    topics.send(topic, "one", timestamp=1000)
    (row,) = topics.read(subscribe=topic).collect()
    assert row.timestampType == 1
    assert row.timestamp.year > 2000


def test_a_stream_copies_a_topic_and_continues_after_a_restart(topics: Topics, tmp_path: Path) -> None:
    source, target = topics.create("in", partitions=3), topics.create("out", partitions=3)
    for round_ in (1, 2):
        produce(topics, source, "lz4")
        stream = topics.stream(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=2_000)
        query = (
            stream.select("key", "value")
            .writeStream.format("ottla")
            .options(**topics.options({"topic": target}), checkpointLocation=str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        assert sorted(topics.values(target)) == sorted(f"v{n}" for n in range(ROWS) for _ in range(round_))
    keyed = [(record.key, record.partition) for record in topics.records(target) if record.key]
    assert len(set(keyed)) == len({key for key, _ in keyed})


def test_records_that_are_deleted_during_a_query_fail_it_or_are_skipped(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.send(topic, *map(str, range(10)))

    def run(fail: bool) -> list[str]:
        found: list[str] = []
        stream = topics.stream(
            subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=4, failOnDataLoss=str(fail)
        )
        query = (
            stream.writeStream.foreachBatch(lambda frame, _: found.extend(values(frame.collect())))
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return found

    assert run(fail=True) == [str(n) for n in range(10)]
    topics.send(topic, *map(str, range(10, 20)))
    topics.delete_before(topic, 15)
    with pytest.raises(StreamingQueryException, match=f"partition {topic}-0 starts at offset 15, after offset 10"):
        run(fail=True)
    assert run(fail=False) == [str(n) for n in range(15, 20)]
