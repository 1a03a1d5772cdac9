"""Apache Kafka opens the directory of a single broker of ours, and ours opens it again (decision 0037)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.admin.config_resource import ConfigResource
from rivals import apache_kafka as rival
from tests.patience import eventually

PARTITIONS = 3
PLACES = [TopicPartition("orders", index) for index in range(PARTITIONS)]


class Ledger:
    """Counts the records written so far, at both brokers."""

    def __init__(self) -> None:
        self.written = 0

    def write(self, at: str, count: int) -> None:
        """Write `count` more records and wait for the acknowledgements."""
        with Producer(bootstrap_servers=at) as producer:
            for number in range(self.written, self.written + count):
                producer.send("orders", b"%d" % number, partition=number % PARTITIONS)
        self.written += count

    def check(self, at: str) -> None:
        """Check that every record is there once, in order."""
        found: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}

        def all_came() -> bool:
            for record in consumer.poll(0.5):
                found[record.partition].append(int(record.value or b""))
            return sum(map(len, found.values())) >= self.written

        with Consumer(bootstrap_servers=at, auto_offset_reset="earliest") as consumer:
            consumer.assign(PLACES)
            eventually(all_came)
        assert found == {index: list(range(index, self.written, PARTITIONS)) for index in range(PARTITIONS)}


def committed(at: str) -> list[int]:
    """Return the committed offsets of the group by partition."""
    with Admin(bootstrap_servers=at) as admin:
        found = admin.list_consumer_group_offsets("readers")
    return [entry.offset for place in PLACES if (entry := found[place]) is not None]


def commit(at: str, offset: int) -> None:
    with Consumer(bootstrap_servers=at, group_id="readers") as consumer:
        consumer.assign(PLACES)
        consumer.commit(dict.fromkeys(PLACES, offset))


def test_kafka_opens_the_directory_of_a_killed_broker_of_ours_and_ours_opens_kafkas(tmp_path: Path) -> None:
    rival.fetch()
    data, ledger = tmp_path / "data", Ledger()
    with Broker(data, process=True) as broker:
        at = broker.bootstrap_servers
        with Admin(bootstrap_servers=at) as admin:
            admin.create_topics([NewTopic("orders", PARTITIONS, configs={"retention.ms": "86400000"})])
        ledger.write(at, 90)
        commit(at, 20)
        os.kill(broker.pid, signal.SIGKILL)

    with rival.started(data, tmp_path) as kafka:
        at = kafka.bootstrap_servers
        eventually(lambda: committed(at) == [20] * PARTITIONS)
        ledger.check(at)
        ledger.write(at, 30)
        with Admin(bootstrap_servers=at) as admin:
            admin.create_topics([NewTopic("by-kafka", 2)])
            (described,) = admin.describe_configs([ConfigResource("topic", "orders")]).values()
            (voter,) = admin.describe_metadata_quorum().voters
        assert described["retention.ms"].value == "86400000"
        assert (voter.replica_id, voter.replica_directory_id) == (1, directory_id(data))

    with Broker(data, process=True) as broker:
        at = broker.bootstrap_servers
        ledger.check(at)
        ledger.write(at, 30)
        assert committed(at) == [20] * PARTITIONS
        with Admin(bootstrap_servers=at) as admin:
            assert {"orders", "by-kafka"} <= set(admin.list_topics())


def directory_id(data: Path) -> str:
    lines = (data / "meta.properties").read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("directory.id=") for line in lines if line.startswith("directory.id="))
