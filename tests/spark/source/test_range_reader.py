"""The records that a task reads, and its errors."""

from __future__ import annotations

import json
import logging
import time

import pytest

from ottla import Admin, Broker, NewTopic, Producer, TopicPartition
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.options import SourceOptions, read_source_options
from ottla.spark.ranges.offset_reader import DataLossError, OffsetReader
from ottla.spark.ranges.plan import OffsetRange
from ottla.spark.source.range_reader import read_range
from tests.client.conftest import eventually
from tests.spark.topics import arrow_schema

T0 = TopicPartition("ranges", 0)


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    """A broker with five records in one partition."""
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(T0.topic, 1, 1)])
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for n in range(5):
            producer.send(T0.topic, b"%d" % n)
    return broker.bootstrap_servers


def options(servers: str, **more: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": servers, "subscribe": T0.topic, "kafkaConsumer.pollTimeoutMs": "300"}
    return read_source_options(given | more)


def read(options: SourceOptions, part: OffsetRange) -> list[bytes]:
    return [
        value.as_py()
        for batch in read_range(options, Decoding(arrow_schema()), part)
        for value in batch.column("value")
    ]


def test_a_range_is_read_in_the_schema_that_spark_demands(servers: str) -> None:
    (batch,) = read_range(
        options(servers, includeHeaders="true"), Decoding(arrow_schema(include_headers=True)), OffsetRange(T0, 1, 4)
    )
    assert batch.schema == arrow_schema(include_headers=True)
    assert batch.column("offset").to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (
            OffsetRange(T0, 0, 9),
            "partition ranges-0 ends at offset 5, and offsets up to 8 were not read; set the option",
        ),
        (
            OffsetRange(T0, 7, 9),
            "partition ranges-0 ends at offset 5, and offsets up to 8 were not read; set the option",
        ),
        (
            OffsetRange(TopicPartition("gone", 0), 2, 9),
            "partition gone-0 does not exist any more, and offsets 2 to 8 were not read; set",
        ),
    ],
)
def test_missing_records_are_reported_in_one_line(servers: str, part: OffsetRange, sentence: str) -> None:
    with pytest.raises(DataLossError, match=sentence):
        read(options(servers), part)


PATIENT = {"kafkaConsumer.pollTimeoutMs": "120000"}
AT_ONCE = 20
"""Seconds: a slow machine's, and far from the two minutes that a task waits for a record."""


def aborted(servers: str) -> TopicPartition:
    """Five records that count for nothing, at 0 to 4, and the marker that says so, at 5."""
    tp = TopicPartition("aborted", 0)
    with Producer(bootstrap_servers=servers, transactional_id="aborting") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for n in range(5):
            producer.send(tp.topic, b"%d" % n, partition=0).result(30)
        producer.abort_transaction()
    return tp


def test_a_range_without_visible_records_is_complete_at_once() -> None:
    with Broker() as broker:
        tp = aborted(broker.bootstrap_servers)
        began = time.monotonic()
        for start, end in ((0, 6), (0, 3), (2, 5), (5, 6)):
            assert read(options(broker.bootstrap_servers, **PATIENT), OffsetRange(tp, start, end)) == []
        assert time.monotonic() - began < AT_ONCE


def compacted(servers: str) -> TopicPartition:
    """Ten records of a key, of which compaction leaves no more than the last two segments have."""
    tp = TopicPartition("compacted", 0)
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576"}
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(tp.topic, 1, 1, settings)])
    with Producer(bootstrap_servers=servers) as producer:
        for n in range(12):
            producer.send(tp.topic, b"%d" % n + b"." * 300_000, key=b"k", partition=0).result(30)
    return tp


def test_a_range_of_compacted_records_is_complete_at_once() -> None:
    with Broker(log_cleaner_backoff_ms=50) as broker:
        tp = compacted(broker.bootstrap_servers)
        patient = options(broker.bootstrap_servers, **PATIENT)
        eventually(lambda: len(read(patient, OffsetRange(tp, 0, 12))) < 5)
        began = time.monotonic()
        assert read(patient, OffsetRange(tp, 0, 2)) == []
        left = [value.split(b".")[0] for value in read(patient, OffsetRange(tp, 1, 12))]
        assert left[-1] == b"11"
        assert time.monotonic() - began < AT_ONCE


def test_a_trigger_requests_only_its_own_topics(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(f"other-{n}", 5, 1) for n in range(40)] + [NewTopic(T0.topic, 1, 1)])
        with OffsetReader(options(broker.bootstrap_servers)) as kafka:
            caplog.set_level(logging.DEBUG, "ottla.request")
            for _ in range(3):
                assert kafka.partitions() == [T0]
                assert list(kafka.topic_ids({T0.topic})) == [T0.topic]
            lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "ottla.request"]
            assert list(kafka.topic_ids({T0.topic, "gone"})) == [T0.topic]
    sizes = [line["response_bytes"] for line in lines if line["api"] == "Metadata"]
    assert sizes
    assert max(sizes) < 400  # all topics are more than ten thousand


def test_a_query_that_accepts_losses_reads_the_remaining_records(servers: str) -> None:
    careless = options(servers, failOnDataLoss="false")
    assert read(careless, OffsetRange(T0, 3, 9)) == [b"3", b"4"]
    assert read(careless, OffsetRange(T0, 7, 9)) == []
    assert read(careless, OffsetRange(TopicPartition("gone", 0), 2, 9)) == []
