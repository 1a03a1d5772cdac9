"""The way out, and back: Apache Kafka opens what Ottla left, with no other setting than its own, and Ottla what Kafka left."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from interop.kafka_tools import Tools
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from rivals import apache_kafka as rival

PARTITIONS = 3
PATIENCE = 60.0


class Ledger:
    """What was written and committed by now, wherever."""

    def __init__(self) -> None:
        self.written = 0
        self.read = 0
        """What the group has read and committed."""

    def write(self, at: str, count: int) -> None:
        """So many more records, acknowledged."""
        with Producer(bootstrap_servers=at) as producer:
            for number in range(self.written, self.written + count):
                producer.send("orders", b"%d" % number, partition=number % PARTITIONS)
            producer.flush(PATIENCE)
        self.written += count

    def check(self, at: str) -> None:
        """Everything is there once, in order."""
        partitions = [TopicPartition("orders", index) for index in range(PARTITIONS)]
        found: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
        with Consumer(bootstrap_servers=at, auto_offset_reset="earliest") as consumer:
            consumer.assign(partitions)
            deadline = time.monotonic() + PATIENCE
            while sum(map(len, found.values())) < self.written and time.monotonic() < deadline:
                for record in consumer.poll(0.5):
                    found[record.partition].append(int(record.value or b""))
        assert found == {index: list(range(index, self.written, PARTITIONS)) for index in range(PARTITIONS)}

    def commit(self, at: str) -> None:
        """Have the group read to the end."""
        with Consumer(
            bootstrap_servers=at, group_id="readers", auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.subscribe(["orders"])
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                consumer.poll(0.5)
                places = consumer.assignment()
                if places and sum(map(consumer.position, places)) == self.written:
                    break
            consumer.commit()
        self.read = self.written

    def committed(self, at: str) -> int:
        """How many records the group has read."""
        with Admin(bootstrap_servers=at) as admin:
            return sum(place.offset for place in admin.list_consumer_group_offsets("readers").values())


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_kafka_serves_what_ottla_left_and_ottla_what_kafka_left(tmp_path: Path, killed: bool) -> None:
    rival.fetch()
    data, ledger = tmp_path / "data", Ledger()
    with Broker(data, process=True) as broker:
        at = broker.bootstrap_servers
        with Admin(bootstrap_servers=at) as admin:
            admin.create_topics([NewTopic("orders", PARTITIONS, configs={"retention.ms": "86400000"})])
        ledger.write(at, 90)
        ledger.commit(at)
        ledger.write(at, 9)
        if killed:
            os.kill(broker.pid, signal.SIGKILL)
    for round_number in range(2):
        with rival.started(data, tmp_path, fixed_voters=killed and round_number == 1) as kafka, Tools() as tools:
            at = kafka.bootstrap_servers
            assert ledger.committed(at) == ledger.read < ledger.written
            ledger.check(at)
            ledger.write(at, 30)
            with Admin(bootstrap_servers=at) as admin:
                admin.create_topics([NewTopic(f"by-kafka-{round_number}", 2)])
            told = tools.run("TopicCommand", "--describe", "--topic", "orders", "--bootstrap-server", at).text
            assert "retention.ms=86400000" in told
            status = tools.run("MetadataQuorumCommand", "--bootstrap-server", at, "describe", "--status").text
            assert re.search(r'^CurrentVoters:\s+\[\{"id": 1, "directoryId": "[^"]{22}"', status, re.MULTILINE), status
        with Broker(data, process=True) as broker:
            at = broker.bootstrap_servers
            ledger.check(at)
            with Admin(bootstrap_servers=at) as admin:
                assert {f"by-kafka-{number}" for number in range(round_number + 1)} <= set(admin.list_topics())
            ledger.commit(at)
            assert ledger.committed(at) == ledger.read
            ledger.write(at, 21)
