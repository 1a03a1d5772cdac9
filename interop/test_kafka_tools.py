"""Kafka's own tools at our broker, and on its files."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.structs import OffsetAndMetadata

from interop.clients import CODECS
from interop.conftest import NewTopicName
from interop.kafka_tools import dump, tool
from interop.rows import START
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.records.murmur2 import partition_for

PATIENCE = 30.0


def test_topic_command_creates_lists_and_deletes(ottla_broker: str) -> None:
    at = ("--bootstrap-server", ottla_broker)
    tool("TopicCommand", *at, "--create", "--topic", "by-java", "--partitions", 3, "--config", "retention.ms=3600000")
    assert "by-java" in tool("TopicCommand", *at, "--list").splitlines()
    with Admin(bootstrap_servers=ottla_broker) as admin:
        assert len(admin.describe_topics(["by-java"])["by-java"].partitions) == 3
        tool("TopicCommand", *at, "--delete", "--topic", "by-java")
        assert "by-java" not in admin.list_topics()


@pytest.mark.behaviour("P8")
@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_selects_the_same_partitions_for_keys(ottla_broker: str, codec: str) -> None:
    topic, partitions = f"keys-{codec}", 6
    with Admin(bootstrap_servers=ottla_broker) as admin:
        admin.create_topics([NewTopic(topic, partitions)])
    keys = [f"key-{i}" for i in range(100)]
    tool(
        "ConsoleProducer",
        "--bootstrap-server",
        ottla_broker,
        "--topic",
        topic,
        "--compression-codec",
        codec,
        "--reader-property",
        "parse.key=true",
        "--reader-property",
        "key.separator=:",
        stdin="".join(f"{key}:value of {key}\n" for key in keys),
    )
    found: dict[bytes | None, tuple[int, bytes | None]] = {}
    with Consumer(bootstrap_servers=ottla_broker, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, p) for p in range(partitions)])
        deadline = time.monotonic() + PATIENCE
        while len(found) < len(keys) and time.monotonic() < deadline:
            found |= {r.key: (r.partition, r.value) for r in consumer.poll(0.2)}
    encoded = [key.encode() for key in keys]
    assert found == {key: (partition_for(key, partitions), b"value of " + key) for key in encoded}


@pytest.mark.parametrize("codec", CODECS)
def test_console_consumer_reads_the_records_of_our_producer(
    ottla_broker: str, fresh_topic: NewTopicName, codec: str
) -> None:
    topic = fresh_topic(ottla_broker)
    with Producer({"bootstrap.servers": ottla_broker, "compression.type": codec}) as producer:
        for i in range(5):
            headers = [("n", str(i).encode())]
            producer.send(topic, f"v{i}".encode(), key=f"k{i}".encode(), timestamp=START + i, headers=headers)
    shown = ("print.key", "print.headers", "print.timestamp", "print.partition", "print.offset")
    printed = tool(
        "consumer.ConsoleConsumer",
        "--bootstrap-server",
        ottla_broker,
        *("--topic", topic, "--partition", 0, "--offset", 2, "--max-messages", 3),
        *(word for name in shown for word in ("--formatter-property", f"{name}=true")),
    )
    assert printed.splitlines() == [
        f"CreateTime:{START + i}\tPartition:0\tOffset:{i}\tn:{i}\tk{i}\tv{i}" for i in (2, 3, 4)
    ]


def test_get_offset_shell_finds_first_last_and_newest(ottla_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(ottla_broker)
    with Producer(bootstrap_servers=ottla_broker) as producer:
        for age in (0, 50, 20):
            producer.send(topic, b"x", timestamp=START + age).result(PATIENCE)

    def offset(when: object) -> str:
        at = ("--bootstrap-server", ottla_broker, "--topic", topic)
        return tool("GetOffsetShell", *at, "--time", when).strip()

    assert offset("earliest") == f"{topic}:0:0"
    assert offset("latest") == f"{topic}:0:3"
    assert offset("max-timestamp") == f"{topic}:0:1"
    assert offset(START + 10) == f"{topic}:0:1"


@pytest.mark.parametrize("codec", CODECS)
def test_dump_log_segments_reads_our_segments_and_indexes(ottla_broker: str, ottla_directory: Path, codec: str) -> None:
    topic = f"dumped-{codec}"
    configs = {"segment.bytes": str(1 << 20), "index.interval.bytes": "4096"}
    with Admin(bootstrap_servers=ottla_broker) as admin:
        admin.create_topics([NewTopic(topic, 1, configs=configs)])
    count, blob = 300, bytes(range(256)) * 40
    with Producer({"bootstrap.servers": ottla_broker, "compression.type": codec}, linger_ms=0) as producer:
        for i in range(count):
            value = blob + str(i).encode() * 100
            producer.send(topic, value, key=b"%d" % i, timestamp=START + i, headers=[("h", b"1")]).result(PATIENCE)
    folder = ottla_directory / f"{topic}-0"
    offsets: list[int] = []
    for segment in sorted(folder.glob("*.log")):
        text = dump(segment, "--deep-iteration")
        assert "isvalid: false" not in text
        offsets += map(int, re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE))
        for index in (segment.with_suffix(".index"), segment.with_suffix(".timeindex")):
            output = dump(index)
            assert "Mismatch" not in output
            assert "not found" not in output
            assert "out of order" not in output
    assert offsets == list(range(count))
    if codec == "none":
        assert len(list(folder.glob("*.log"))) > 1
        assert any(index.stat().st_size for index in folder.glob("*.index"))


def test_dump_log_segments_decodes_our_metadata(ottla_broker: str, ottla_directory: Path) -> None:
    with Admin(bootstrap_servers=ottla_broker) as admin:
        admin.create_topics([NewTopic("told", 2, configs={"retention.ms": "1234567"})])
    log = ottla_directory / "__cluster_metadata-0" / "00000000000000000000.log"
    text = dump(log, "--cluster-metadata-decoder")
    assert '"name":"told"' in text
    assert '"resourceName":"told","name":"retention.ms","value":"1234567"' in text
    assert "Error" not in text


def test_dump_log_segments_decodes_committed_offsets(
    ottla_broker: str, ottla_directory: Path, fresh_topic: NewTopicName
) -> None:
    topic = fresh_topic(ottla_broker)
    consumer = KafkaConsumer(bootstrap_servers=ottla_broker, group_id="readers", enable_auto_commit=False)
    partition = KafkaTopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(42, "so far", -1)})
    assert consumer.committed(partition) == 42
    consumer.close()
    texts = [
        dump(log, "--offsets-decoder")
        for log in ottla_directory.glob("__consumer_offsets-*/*.log")
        if log.stat().st_size
    ]
    assert any(f'"topic":"{topic}"' in text and '"offset":42' in text for text in texts)
