"""Compaction in a running broker, seen by clients."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.broker.embedding.embedded_broker import Broker
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.files.checkpoint import read_offsets
from ottla.storage.files.durable import sync_path
from ottla.storage.files.storage_error import storage_error
from ottla.storage.segments import swap
from ottla.storage.segments.segment import Segment
from tests.broker.wire import Wire, produce
from tests.patience import eventually
from tests.storage.compacting import keyed

PATIENCE = 60.0
SET = 0
EAGER: dict[str, Any] = {"log_cleaner_backoff_ms": 20, "log_cleaner_min_cleanable_ratio": 0.0}


def put(wire: Wire, topic: str, key: bytes, value: bytes) -> None:
    """Write one record."""
    response = wire.ask(produce(topic, keyed([(key, value)])), 11)
    assert response.responses[0].partition_responses[0].error_code == 0


def delete(wire: Wire, topic: str) -> None:
    (result,) = wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)])).responses
    assert result.error_code == 0


def update(bootstrap_servers: str, topic: str, updates: int, keys: int) -> dict[bytes, bytes]:
    """Write so many updates of so many keys; the last value of each."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5, "compression.type": "lz4"})
    last = {}
    for number in range(updates):
        key, value = b"%d" % (number % keys), b"%d" % number * 10
        producer.produce(topic, value, key)
        last[key] = value
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(PATIENCE) == 0
    return last


def consume(bootstrap_servers: str, topic: str) -> list[tuple[int | None, bytes | None, bytes | None]]:
    """Everything in a partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "g", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(PATIENCE)
        assert message is not None
        if message.error():
            break
        found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found


@pytest.mark.behaviour("B2")
def test_a_client_reads_the_last_value_of_each_key() -> None:
    with Broker(**EAGER) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", cleanup_policy="compact", segment_bytes=1 << 20)
        last = update(broker.bootstrap_servers, "t", 100_000, 100)
        reader = consume(broker.bootstrap_servers, "t")
        assert {key: value for _, key, value in reader} == last
        # The active segment is never touched: a record behind a roll closes it.
        put(wire, "t", b"z", b"x" * (1 << 19))
        put(wire, "t", b"z", b"x" * (1 << 19))
        eventually(lambda: len(consume(broker.bootstrap_servers, "t")) <= 102)
        found = consume(broker.bootstrap_servers, "t")
        assert {key: value for _, key, value in found if key != b"z"} == last
        assert [offset for offset, _, _ in found][:100] == list(range(99_900, 100_000))


@pytest.mark.behaviour("B8")
def test_compaction_starts_when_the_policy_is_changed() -> None:
    with Broker(**EAGER) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", segment_bytes=1 << 20)
        for _ in range(5):
            put(wire, "t", b"a", b"x" * 400_000)
        change = AlterConfigsResource(2, "t", [AlterableConfig("cleanup.policy", SET, "compact")])
        wire.ask(IncrementalAlterConfigsRequest([change]))
        eventually(lambda: len(consume(broker.bootstrap_servers, "t")) == 2)


def test_the_compacted_position_persists(tmp_path: Path) -> None:
    with Broker(log_dirs=str(tmp_path), **EAGER) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", cleanup_policy="compact", segment_bytes=1 << 20)
        for _ in range(5):
            put(wire, "t", b"a", b"x" * 400_000)
        checkpoint = tmp_path / "cleaner-offset-checkpoint"
        eventually(lambda: read_offsets(checkpoint).get(("t", 0)) == 4)  # type: ignore[call-overload]
        assert checkpoint.read_text() == "0\n1\nt 0 4\n"
        delete(wire, "t")
        assert checkpoint.read_text() == "0\n0\n"


def test_a_damaged_log_is_not_compacted_and_others_are(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(log_dirs=str(tmp_path), log_cleaner_enable=False) as broker, Wire(broker.bootstrap_servers) as wire:
        for topic in ("bad", "good"):
            wire.create(topic, cleanup_policy="compact", segment_bytes=1 << 20)
            for _ in range(5):
                put(wire, topic, b"a", b"x" * 400_000)
    path = tmp_path / "bad-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[300_000] ^= 1
    path.write_bytes(data)
    with caplog.at_level(logging.ERROR), Broker(log_dirs=str(tmp_path), **EAGER) as broker:
        eventually(lambda: len(consume(broker.bootstrap_servers, "good")) == 2)
        eventually(lambda: "bad-0 is not compacted" in caplog.text)
    messages = [line for line in caplog.messages if "bad-0" in line]
    assert len(messages) == 1
    assert f"{path}, position 0: " in messages[0]
    assert path.read_bytes() == data


def test_a_compaction_is_retried_after_a_disk_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, refusals = swap.mark_complete, iter([OSError(28, "No space left on device")] * 3)

    def refusing(segment: object) -> None:
        for error in refusals:
            raise error
        real(segment)  # type: ignore[arg-type]

    monkeypatch.setattr(swap, "mark_complete", refusing)
    with Broker(**EAGER) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", cleanup_policy="compact", segment_bytes=1 << 20)
        for _ in range(5):
            put(wire, "t", b"a", b"x" * 400_000)
        eventually(lambda: len(consume(broker.bootstrap_servers, "t")) == 2)
    assert [line for line in caplog.messages if "No space" in line] == [
        "t-0 could not be compacted, and is retried: [Errno 28] No space left on device"
    ]


@pytest.mark.parametrize("refused", ["rename", "sync"])
def test_files_whose_rename_failed_are_renamed_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refused: str
) -> None:
    real, refusals = Segment.rename, [OSError(5, "Input/output error")] * 5

    def refuse() -> None:
        if refusals:
            raise refusals.pop()

    def refusing(segment: Segment, suffix: str) -> None:
        if suffix == "" and refused == "rename":
            # One file has its name by then, the others have not.
            if segment.file_path(".log").exists():
                segment.file_path(".log").rename(segment.directory / f"{0:020d}.log")
            refuse()
        real(segment, suffix)

    def refusing_sync(path: Path) -> None:
        if refused == "sync" and not list(path.glob("*.swap")):
            refuse()
        sync_path(path)

    monkeypatch.setattr(Segment, "rename", refusing)
    monkeypatch.setattr(swap, "sync_path", refusing_sync)
    with Broker(**EAGER) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", cleanup_policy="compact,delete", segment_bytes=1 << 20)
        for _ in range(5):
            put(wire, "t", b"a", b"x" * 400_000)
        eventually(lambda: not refusals)
        eventually(lambda: len(consume(broker.bootstrap_servers, "t")) == 2)
        for _ in range(4):
            put(wire, "t", b"b", b"y" * 400_000)
        eventually(lambda: len(consume(broker.bootstrap_servers, "t")) == 3)
    assert len([line for line in caplog.messages if "Input/output" in line]) == 1


def test_a_topic_may_be_deleted_and_recreated_while_it_is_compacted() -> None:
    with Broker(**{**EAGER, "log_cleaner_backoff_ms": 1}) as broker, Wire(broker.bootstrap_servers) as wire:
        for number in range(20):
            wire.create("t", cleanup_policy="compact", segment_bytes=1 << 20)
            for _ in range(4):
                put(wire, "t", b"a", b"%d" % number * 200_000)
            delete(wire, "t")
        wire.create("t", cleanup_policy="compact", segment_bytes=1 << 20)
        put(wire, "t", b"a", b"new")
        assert [value for _, _, value in consume(broker.bootstrap_servers, "t")] == [b"new"]


def test_a_log_that_cannot_be_opened_for_compaction_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings: dict[str, Any] = {**EAGER, "log_dirs": str(tmp_path)}
    with Broker(**settings) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", cleanup_policy="compact")
        put(wire, "t", b"a", b"b")
    tries, real = [], DataDirectory.open_log

    def denied(directory: DataDirectory, partition: Any, *more: Any, **options: Any) -> Any:
        if partition.topic != "t":
            return real(directory, partition, *more, **options)
        tries.append(partition)
        raise storage_error("cannot open the log in t-0", OSError(28, "No space left on device"))

    monkeypatch.setattr(DataDirectory, "open_log", denied)
    with Broker(**settings):
        eventually(lambda: len(tries) > 5)
    # Once each: by the start, which opens all logs, and by the cleaner.
    assert len([line for line in caplog.messages if "cannot open the log in t-0" in line]) <= 2


def test_offsets_of_groups_are_compacted_and_read_back(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**EAGER, "log_dirs": str(tmp_path), "offsets_topic_num_partitions": 1}
    place = [TopicPartition("t", 0)]
    with Broker(**settings, offsets_topic_segment_bytes=1 << 20) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        for offset in range(1, 600):
            consumer.commit(offsets=[TopicPartition("t", 0, offset, "x" * 4000)], asynchronous=False)
        consumer.close()
        folder = tmp_path / "__consumer_offsets-0"
        eventually(lambda: sum(path.stat().st_size for path in folder.glob("*.log")) < 1 << 20)
    with Broker(**settings) as broker:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        assert consumer.committed(place, PATIENCE)[0].offset == 599
        consumer.close()
