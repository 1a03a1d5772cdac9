"""Damage of batch headers: every client gets an error, and the records after the damage can be read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from errno import EACCES
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as Librdkafka
from kafka import KafkaConsumer
from kafka.errors import CorruptRecordError as KafkaPythonCorrupt
from kafka.structs import TopicPartition as KafkaPythonPartition

from ottla import Consumer, Producer
from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, KafkaTimeoutError
from ottla.model import TopicPartition
from ottla.records.batch import iter_headers
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log.log import Log

LOG = f"{0:020d}.log"
BATCHES = 6
DAMAGED = 3
T0 = TopicPartition("t", 0)
PATIENCE = 60.0


def magic(data: bytearray, position: int, size: int) -> bytearray:
    """No batch begins there."""
    data[position + 16] ^= 0x40
    return data


def length(data: bytearray, position: int, size: int) -> bytearray:
    """Damage the length, so that the next batch is not found."""
    data[position + 11] ^= 0x20
    return data


def record(data: bytearray, position: int, size: int) -> bytearray:
    """The records of the batch are not those of its CRC."""
    data[position + size - 1] ^= 0x40
    return data


def lowered(data: bytearray, position: int, size: int) -> bytearray:
    """Damage the base offset, which the CRC does not cover, to that of an earlier batch."""
    data[position + 7] ^= 2
    return data


def raised(data: bytearray, position: int, size: int) -> bytearray:
    """Damage the base offset to one after all others."""
    data[position + 5] ^= 1
    return data


def led_by_another(data: bytearray, position: int, size: int) -> bytearray:
    """Damage the leader epoch to an unknown one."""
    data[position + 14] ^= 1
    return data


@pytest.fixture(params=[magic, length])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """Its topic t has six batches of a record each, of which the fourth is damaged."""
    with Broker(tmp_path) as running, Producer(bootstrap_servers=running.bootstrap_servers) as producer:
        for number in range(BATCHES):
            producer.send("t", b"value-%d" % number).result(PATIENCE)
    damage(tmp_path / "t-0" / LOG, DAMAGED, request.param)
    with Broker(tmp_path) as running:
        yield running


def poll_until_error(poll: Callable[[], object]) -> None:
    """Poll again and again, until it raises; in vain it ends by itself."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        poll()


def damage(path: Path, number: int, how: Callable[[bytearray, int, int], bytearray]) -> None:
    data = bytearray(path.read_bytes())
    position, header = list(iter_headers(data))[number]
    path.write_bytes(how(data, position, header.size_bytes))


def test_our_consumer_reports_the_damaged_offset_and_continues_after_it(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    found: dict[int, bytes | None] = {}
    messages: list[str] = []
    with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        deadline = time.monotonic() + PATIENCE
        while len(found) < BATCHES - 1:
            assert time.monotonic() < deadline, (found, messages)
            try:
                found |= {record.offset: record.value for record in consumer.poll(timeout=0.5)}
            except CorruptRecordError as error:
                messages.append(str(error))
                if len(messages) == 5:
                    consumer.seek(T0, DAMAGED + 1)
    assert found == {n: b"value-%d" % n for n in range(BATCHES) if n != DAMAGED}
    for text in messages:
        assert text.startswith(f"t-0, offset {DAMAGED}: ")
        assert text.endswith(f"seek to offset {DAMAGED + 1} to skip it")
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    at_the_start, at_the_fetch = lines  # and no more for repeated requests
    assert f"offsets {DAMAGED} to {DAMAGED}" in at_the_start
    assert "--topic-partition t-0 --execute" in at_the_fetch


@pytest.mark.parametrize("how", [lowered, raised, led_by_another])
def test_a_group_meets_damage_outside_the_crc_once_and_reads_no_record_twice(
    how: Callable[[bytearray, int, int], bytearray], tmp_path: Path
) -> None:
    with Broker(tmp_path) as running, Producer(bootstrap_servers=running.bootstrap_servers) as producer:
        for number in range(BATCHES):
            producer.send("t", b"value-%d" % number).result(PATIENCE)
    damage(tmp_path / "t-0" / LOG, DAMAGED, how)
    found: list[tuple[int, bytes | None]] = []
    messages: list[str] = []
    with (
        Broker(tmp_path) as running,
        Consumer(bootstrap_servers=running.bootstrap_servers, group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(["t"])
        deadline = time.monotonic() + PATIENCE
        while len(found) < BATCHES - 1:
            assert time.monotonic() < deadline, (found, messages)
            try:
                found += [(record.offset, record.value) for record in consumer.poll(timeout=0.5)]
            except CorruptRecordError as error:
                messages.append(str(error))
                if len(messages) == 5:
                    consumer.seek(T0, DAMAGED + 1)
    assert found == [(n, b"value-%d" % n) for n in range(BATCHES) if n != DAMAGED]
    for text in messages:
        assert text.startswith(f"t-0, offset {DAMAGED}: ")
        assert text.endswith(f"seek to offset {DAMAGED + 1} to skip it")


def test_librdkafka_reports_the_damage_to_its_user(broker: Broker) -> None:
    consumer = Librdkafka({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "check.crcs": True})
    try:
        from confluent_kafka import TopicPartition as Place

        consumer.assign([Place("t", 0, DAMAGED)])
        deadline = time.monotonic() + PATIENCE
        while (message := consumer.poll(0.5)) is None:
            assert time.monotonic() < deadline
        assert message.error() is not None
    finally:
        consumer.close()


def test_kafka_python_reports_the_damage_to_its_user(broker: Broker) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    try:
        place = KafkaPythonPartition("t", 0)
        consumer.assign([place])
        consumer.seek(place, DAMAGED)
        with pytest.raises(KafkaPythonCorrupt):
            poll_until_error(lambda: consumer.poll(1000))
    finally:
        consumer.close()


def test_a_torn_segment_before_the_last_is_damage_and_the_next_one_is_read(tmp_path: Path) -> None:
    with (
        Broker(tmp_path, log_segment_bytes=1_048_576) as running,
        Producer(bootstrap_servers=running.bootstrap_servers) as producer,
    ):
        ends = [producer.send("t", bytes([n]) * 400_000).result(PATIENCE).offset for n in range(5)]
    first, second, *_ = sorted((tmp_path / "t-0").glob("*.log"))
    with open(first, "r+b") as file:
        file.truncate(first.stat().st_size - 100)
    after = int(second.name[:20])
    with (
        Broker(tmp_path) as running,
        Consumer(bootstrap_servers=running.bootstrap_servers, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([T0])
        with pytest.raises(CorruptRecordError, match=rf"t-0, offset {after - 1}: .*seek to offset {after} "):
            poll_until_error(lambda: consumer.poll(timeout=1))
        consumer.seek(T0, after)
        assert next(iter(consumer.poll(timeout=PATIENCE))).offset == after
    assert ends == list(range(5))


def test_a_group_with_a_damaged_log_gets_an_error_and_other_groups_continue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(tmp_path) as running:
        with Producer(bootstrap_servers=running.bootstrap_servers) as producer:
            producer.send("t", b"value").result(PATIENCE)
        for group in ("g", "h"):
            join(running, group)
    holding = [p for p in tmp_path.glob("__consumer_offsets-*/*.log") if b"\x00\x01g" in p.read_bytes()]
    damage(holding[0], 1, record)
    with Broker(tmp_path) as running:
        for _ in range(3):
            with pytest.raises(KafkaError, match="ottla log repair") as refused:
                join(running, "g")
            assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
        join(running, "h")
    name = holding[0].parent.name
    lines = [each.getMessage() for each in caplog.records if name in each.getMessage()]
    assert len([line for line in lines if "out of service" in line]) == 1, lines
    assert len(lines) == 1, lines


def join(running: Broker, group: str) -> None:
    """Be a member until the first record, and commit."""
    servers = running.bootstrap_servers
    with Consumer(bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        deadline = time.monotonic() + PATIENCE
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(timeout=0.2)
        consumer.commit()


def test_the_last_response_is_in_the_error_of_a_client_that_was_rejected_until_its_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path) as running:
        with Producer(bootstrap_servers=running.bootstrap_servers) as producer:
            producer.send("t", b"value").result(PATIENCE)
        join(running, "g")
    open_log = Log.open

    def denied(folder: Path, *given: Any, **more: Any) -> Log:
        if folder.name == "t-0" or folder.name.startswith("__consumer_offsets-"):
            raise storage_error(f"cannot open the log in {folder}", PermissionError(EACCES, "Permission denied"))
        return open_log(folder, *given, **more)

    monkeypatch.setattr(Log, "open", denied)
    with Broker(tmp_path) as running, Consumer(bootstrap_servers=running.bootstrap_servers, group_id="g") as consumer:
        with pytest.raises(KafkaTimeoutError, match=r"^no offset of t-0 within 3 s: KAFKA_STORAGE_ERROR$"):
            consumer.end_offsets([T0], timeout=3)
        with pytest.raises(
            KafkaTimeoutError, match=r"not found within 3 s: COORDINATOR_[A-Z_]+: the committed offsets"
        ):
            consumer.committed([T0], timeout=3)
