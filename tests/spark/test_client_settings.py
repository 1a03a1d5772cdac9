"""Settings of the clients as options of source and sink, `kafka.<name>`: each that there is works, and no other is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from ottla import Admin, Broker, ConfigError, Consumer, NewTopic, NotYetError, Producer, TopicPartition
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.producer.config import ProducerConfig
from ottla.config import options_of
from ottla.spark.columns.row_decoder import Decoding
from ottla.spark.exactly_once.kafka_marks import admin_of
from ottla.spark.options import REFUSED, read_sink_options, read_source_options
from ottla.spark.ranges.offset_reader import OffsetReader
from ottla.spark.sink.producers import cached_producer
from ottla.spark.sink.row_writer import SinkRowWriter
from ottla.spark.sink.writers import check_columns
from ottla.spark.source.batch_reader import BatchReader
from ottla.spark.source.range_reader import read_range
from tests.spark.topics import arrow_schema

COMMON = {
    "client.id": "somebody",
    "request.timeout.ms": "20000",
    "retry.backoff.ms": "50",
    "retry.backoff.max.ms": "500",
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "200",
    "metadata.max.age.ms": "1000",
    "metadata.recovery.strategy": "none",
    "metadata.recovery.rebootstrap.trigger.ms": "1000",
    "metadata.cluster.check.enable": "false",
    "connections.max.idle.ms": "1000",
    "socket.connection.setup.timeout.ms": "5000",
    "socket.connection.setup.timeout.max.ms": "6000",
    "security.protocol": "PLAINTEXT",
    "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
    "send.buffer.bytes": "65536",
    "receive.buffer.bytes": "65536",
    "enable.metrics.push": "false",
    "auto.include.jmx.reporter": "false",
    "bootstrap.refused.timeout.ms": "4000",
    "bootstrap.resolve.timeout.ms": "4000",
    "metrics.num.samples": "3",
    "metrics.sample.window.ms": "1000",
    "metrics.recording.level": "DEBUG",
    "metric.reporters": "",
}
READING = COMMON | {
    "group.id": "ours",
    "group.protocol": "consumer",
    "group.remote.assignor": "uniform",
    "group.instance.id": "one",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "1000",
    "max.poll.interval.ms": "10000",
    "partition.assignment.strategy": "range",
    "auto.commit.interval.ms": "100",
    "exclude.internal.topics": "false",
    "internal.leave.group.on.close": "false",
    "fetch.min.bytes": "0",
    "fetch.max.wait.ms": "20",
    "fetch.max.bytes": "1000",
    "max.partition.fetch.bytes": "200",
    "max.poll.records": "2",
    "client.rack": "a",
    "check.crcs": "false",
    "default.api.timeout.ms": "20000",
    "allow.auto.create.topics": "true",
    "isolation.level": "read_uncommitted",
}
WRITING = COMMON | {
    "acks": "1",
    "batch.size": "100",
    "linger.ms": "0",
    "buffer.memory": "2000000",
    "buffer.memory.allocation.strategy": "incremental",
    "max.block.ms": "20000",
    "max.request.size": "100000",
    "max.in.flight.requests.per.connection": "1",
    "compression.type": "gzip",
    "compression.gzip.level": "1",
    "compression.lz4.level": "1",
    "compression.zstd.level": "1",
    "retries": "3",
    "delivery.timeout.ms": "50000",
    "enable.idempotence": "false",
    "transaction.timeout.ms": "10000",
    "partitioner.class": "round_robin",
    "partitioner.ignore.keys": "true",
    "partitioner.adaptive.partitioning.enable": "false",
    "partitioner.rack.aware": "true",
    "client.rack": "a",
    "metadata.max.idle.ms": "5000",
}
TOGETHER = {
    "group.remote.assignor": {"kafka.group.protocol": "consumer"},
    "partitioner.rack.aware": {"kafka.client.rack": "a"},
}
"""Settings that are only valid together with others."""
REFUSED_HERE = {*REFUSED, "transactional.id"}
SECURED = ("ssl.", "sasl.", "https.")
"""Settings that need a broker with TLS or a login, which this one does not have."""
ROWS = [b"%d" % number for number in range(20)]
SCHEMA = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
RAW = Decoding(arrow_schema())


@pytest.fixture(scope="module")
def filled(broker: Broker) -> str:
    """A topic with twenty records."""
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("filled", 1)])
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for row in ROWS:
            producer.send("filled", row)
    return "filled"


def options(broker: Broker, name: str, text: str) -> dict[str, str]:
    """Return the options of a source or sink with one setting of the client."""
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, f"kafka.{name}": text, **TOGETHER.get(name, {})}


@pytest.mark.parametrize("name", READING)
def test_a_source_reads_with_each_setting_of_a_consumer(broker: Broker, filled: str, name: str) -> None:
    asked = read_source_options(options(broker, name, READING[name]) | {"subscribe": filled})
    rows: list[Any] = []
    for partition in BatchReader(asked, RAW).partitions():
        for batch in read_range(asked, RAW, partition.value):
            rows += batch.column("value").to_pylist()
    with OffsetReader(asked) as reader:
        assert reader.admin.list_topics().keys() >= {filled}
    assert rows == ROWS


@pytest.mark.parametrize("name", WRITING)
def test_a_sink_writes_with_each_setting_of_a_producer(broker: Broker, name: str) -> None:
    topic = f"written-{name}"
    asked = read_sink_options(options(broker, name, WRITING[name]) | {"topic": topic})
    columns = check_columns(asked, SCHEMA)
    with cached_producer(asked.kafka) as producer:
        writer = SinkRowWriter(producer, asked, columns, 0, "")
        writer.write(pa.record_batch({"key": [b"k"] * len(ROWS), "value": ROWS}))
        writer.flush()
    assert topic in admin_of(asked.kafka).list_topics()
    assert sorted(values_of(broker, topic)) == sorted(ROWS)


def values_of(broker: Broker, topic: str) -> list[bytes]:
    """Return the values in the only partition of a topic."""
    with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        found: list[Any] = []
        while len(found) < consumer.end_offsets([tp])[tp]:
            found += [record.value for record in consumer.poll()]
        return found


def names_of(config: type[Any]) -> set[str]:
    """Return the names of all settings."""
    return {option.name for option in options_of(config)}


@pytest.mark.parametrize(("settings", "config"), [(READING, ConsumerConfig), (WRITING, ProducerConfig)])
def test_no_setting_is_left_out(settings: Mapping[str, str], config: type[Any]) -> None:
    there = {name for name in names_of(config) if not name.startswith(SECURED)} - REFUSED_HERE
    assert set(settings) | {"bootstrap.servers"} == there


@pytest.mark.parametrize("name", READING)
def test_a_source_refuses_a_setting_that_is_misspelt(broker: Broker, name: str) -> None:
    given = options(broker, misspelt(name), READING[name]) | {"subscribe": "filled"}
    with pytest.raises((ConfigError, NotYetError), match=f"{misspelt(name)}"):
        BatchReader(read_source_options(given), RAW).partitions()


@pytest.mark.parametrize("name", WRITING)
def test_a_sink_refuses_a_setting_that_is_misspelt(broker: Broker, name: str) -> None:
    with pytest.raises((ConfigError, NotYetError), match=f"{misspelt(name)}"):
        check_columns(read_sink_options(options(broker, misspelt(name), WRITING[name]) | {"topic": "t"}), SCHEMA)


def misspelt(name: str) -> str:
    """Without its last letter."""
    return name[:-1]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_an_operation_without_permission_is_denied_in_every_spelling(broker: Broker, name: str) -> None:
    for spelt in (name, name.replace(".", "_"), name.upper()):
        with pytest.raises(ConfigError, match=f"option kafka.{name} is not allowed"):
            read_source_options(options(broker, spelt, "x") | {"subscribe": "t"})
    with pytest.raises(ConfigError, match=r"transactional\.id"):
        check_columns(read_sink_options(options(broker, "transactional_id", "x") | {"topic": "t"}), SCHEMA)
