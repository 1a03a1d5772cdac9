"""The snapshot of a producer."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from ottla import Producer, TopicPartition
from tests.client.conftest import NewTopicName
from tests.patience import PATIENCE


def test_a_snapshot_shows_lingering_batches_by_partition_with_their_memory(
    servers: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(2)
    with Producer(bootstrap_servers=servers, linger_ms=80_000, client_id="seen") as producer:
        for number in range(3):
            producer.send(topic, b"x", partition=number % 2)
        seen = producer.snapshot()
        queues = seen.accumulator.queues
        assert [(q.partition, q.batches, q.records, q.attempts) for q in queues] == [
            (TopicPartition(topic, 0), 1, 2, 0),
            (TopicPartition(topic, 1), 1, 1, 0),
        ]
        assert seen.accumulator.total_bytes - seen.accumulator.available_bytes >= 3
        assert (seen.client_id, seen.in_flight_batches, seen.transaction_state) == ("seen", (), None)
        producer.flush()
        assert producer.snapshot().accumulator.queues == ()


def test_a_traced_producer_has_snapshots_until_it_is_closed(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TRACE", str(short_path))
    with Producer(bootstrap_servers="127.0.0.1:1", transactional_id="till") as producer:
        (path,) = short_path.glob("producer-*.sock")
        with socket.socket(socket.AF_UNIX) as watcher:
            watcher.settimeout(PATIENCE)
            watcher.connect(str(path))
            lines = watcher.makefile("rb")
            assert json.loads(lines.readline())["kind"] == "producer"
            assert json.loads(lines.readline())["snapshot"]["transactional_id"] == "till"
            producer.close(0)
            *_, last = lines
            assert json.loads(last)["snapshot"]["accumulator"]["queues"] == []
            lines.close()
    assert list(short_path.iterdir()) == []
