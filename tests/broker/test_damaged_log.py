"""A batch in the middle of a log that the disk has changed: our clients never take it for good, and lose no other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Consumer, Producer
from ottla.broker.embedding.embedded_broker import Broker
from ottla.client.consumer import RangeReader
from ottla.errors import CorruptRecordError
from ottla.model import TopicPartition

BATCHES = 4
DAMAGED = 2
"""The batch of partition 0 that is damaged: its record has the offset 2."""
PATIENCE = 60.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Its topic t has two partitions; the record at offset 2 of the first is damaged on the disk."""
    with Broker(log_dirs=str(tmp_path), num_partitions=2) as running:
        with Producer({"bootstrap.servers": running.bootstrap_servers}) as producer:
            for number in range(BATCHES):
                for partition in range(2):
                    producer.send("t", b"value-%d" % number, partition=partition)
                producer.flush()
        path = tmp_path / "t-0" / f"{0:020d}.log"
        data = bytearray(path.read_bytes())
        data[data.index(b"value-2")] ^= 1
        path.write_bytes(data)
        yield running


def settings(broker: Broker) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}


def polled(consumer: Consumer, columns: bool) -> list[tuple[int, int, bytes]]:
    """Partition, offset and value of what one poll has."""
    if columns:
        return [(row["partition"], row["offset"], row["value"]) for row in consumer.poll_arrow(0.5).to_pylist()]
    return [(record.partition, record.offset, record.value or b"") for record in consumer.poll(0.5)]


@pytest.mark.parametrize("columns", [False, True], ids=["poll", "poll_arrow"])
def test_the_damaged_batch_is_reported_and_all_others_are_read(broker: Broker, columns: bool) -> None:
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
    found: list[tuple[int, int, bytes]] = []
    messages: list[str] = []
    with Consumer(settings(broker)) as consumer:
        consumer.assign(partitions)
        deadline = time.monotonic() + PATIENCE
        while len(found) < 2 * BATCHES - 1:
            assert time.monotonic() < deadline, (found, messages)
            try:
                found += polled(consumer, columns)
            except CorruptRecordError as error:
                messages.append(str(error))
                if len(messages) == 3:
                    consumer.seek(partitions[0], DAMAGED + 1)
    wanted = {(p, n, b"value-%d" % n) for p in range(2) for n in range(BATCHES)} - {(0, DAMAGED, b"value-2")}
    assert set(found) == wanted
    assert len(found) == len(wanted)
    assert len(messages) >= 3
    for text in messages:
        assert text.startswith("t-0, offset 2: the batch at byte ")
        assert text.endswith("; seek to offset 3 to skip it")


def test_a_range_with_a_damaged_batch_is_rejected_and_others_are_read(broker: Broker) -> None:
    def values(partition: int, start: int, end: int) -> list[bytes | None]:
        with RangeReader(settings(broker), TopicPartition("t", partition), start, end) as reader:
            return [value for batch in reader.batches("us") for value in batch.column("value").to_pylist()]

    with pytest.raises(CorruptRecordError, match=r"t-0.*offset 2\b"):
        values(0, 0, BATCHES)
    assert values(0, 0, DAMAGED) == [b"value-0", b"value-1"]
    assert values(0, DAMAGED + 1, BATCHES) == [b"value-3"]
    assert values(1, 0, BATCHES) == [b"value-%d" % number for number in range(BATCHES)]
