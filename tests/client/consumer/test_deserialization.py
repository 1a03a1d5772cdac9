"""A record that a deserializer rejects: the position stays at it, and nothing behind it is lost or committed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from ottla import Consumer, Producer, RecordDeserializationError, TopicPartition
from ottla.client.consumer.records import ConsumerRecords
from tests.patience import eventually

Members = Callable[..., Consumer[Any, Any]]
BAD = 30
COUNT = 100


def fill(producer: Producer, topic: str, partition: int = 0, bad: int = BAD) -> TopicPartition:
    """Write numbers as keys and values, one of each is not a number."""
    for n in range(COUNT):
        data = b"%d" % n if n != bad else b"bad"
        producer.send(topic, data, key=data, partition=partition)
    producer.flush(20)
    return TopicPartition(topic, partition)


def poll_until_error(consumer: Consumer[Any, Any]) -> tuple[list[Any], RecordDeserializationError]:
    """Poll until a record is rejected; returns the values before it."""
    seen: list[Any] = []
    failures: list[RecordDeserializationError] = []

    def poll() -> bool:
        try:
            seen.extend(record.value for record in consumer.poll(1))
        except RecordDeserializationError as error:
            failures.append(error)
        return bool(failures)

    eventually(poll)
    return seen, failures[0]


@pytest.mark.behaviour("C21")
@pytest.mark.parametrize("origin", ["key", "value"])
def test_poll_raises_at_a_record_that_cannot_be_deserialized_and_keeps_its_position(
    member: Members, shared_topic: str, group_producer: Producer, origin: str
) -> None:
    tp = fill(group_producer, shared_topic)
    settings: dict[str, Any] = {"value_deserializer": int if origin == "value" else len, "auto_commit_interval_ms": 50}
    with member(**settings, key_deserializer=int) as consumer:
        consumer.subscribe([shared_topic])
        seen, error = poll_until_error(consumer)
        assert len(seen) == BAD
        assert (error.partition, error.offset) == (tp, BAD)
        assert error.record.raw_value == error.record.value == b"bad"
        assert f"{tp} at offset {BAD}: ValueError" in str(error)
        assert f"seek(TopicPartition({shared_topic!r}, 0), {BAD + 1})" in str(error)
        assert consumer.position(tp) == BAD
        with pytest.raises(RecordDeserializationError):
            consumer.poll(1)
    with member() as after:
        assert after.committed([tp])[tp] is not None
        assert getattr(after.committed([tp])[tp], "offset", None) == BAD


@pytest.mark.behaviour("C21")
def test_a_loop_raises_at_a_record_that_cannot_be_deserialized_and_continues_after_a_seek(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    tp = fill(group_producer, shared_topic)
    seen: list[Any] = []
    with member(value_deserializer=int, max_poll_records=7) as consumer:
        consumer.assign([tp])
        with pytest.raises(RecordDeserializationError) as raised:
            seen.extend(record.value for record in consumer)
        assert seen == list(range(BAD))
        assert consumer.position(tp) == BAD
        consumer.commit()
        assert getattr(consumer.committed([tp])[tp], "offset", None) == BAD
        consumer.seek(raised.value.partition, raised.value.offset + 1)
        for record in consumer:
            seen.append(record.value)
            if record.value == COUNT - 1:
                break
    assert seen == [n for n in range(COUNT) if n != BAD]


def test_a_bad_record_of_one_partition_comes_after_the_good_ones_of_another(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    bad, good = fill(group_producer, shared_topic, 0, 0), fill(group_producer, shared_topic, 1, -1)
    with member(value_deserializer=int) as consumer:
        consumer.assign([bad, good])
        seen, error = poll_until_error(consumer)
        assert error.partition == bad
        consumer.pause(bad)
        eventually(lambda: seen.extend(r.value for r in consumer.poll(1)) or len(seen) == COUNT)  # type: ignore[func-returns-value]
        assert seen == list(range(COUNT))
        assert (consumer.position(bad), consumer.position(good)) == (0, COUNT)
        consumer.resume(bad)
        with pytest.raises(RecordDeserializationError):
            consumer.poll(1)


def test_a_record_is_deserialized_again_after_an_error(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    tp, broken = fill(group_producer, shared_topic), [True]

    def number(data: bytes) -> int:
        if data == b"bad" and broken:
            raise ConnectionError("the schema registry is away")
        return -1 if data == b"bad" else int(data)

    with member(value_deserializer=number) as consumer:
        consumer.assign([tp])
        seen, _ = poll_until_error(consumer)
        broken.clear()
        seen += [record.value for record in consumer.poll(1)]
    assert seen == [-1 if n == BAD else n for n in range(COUNT)]


def test_an_interrupt_in_a_deserializer_loses_no_record_of_any_partition(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    first, second = fill(group_producer, shared_topic, 0, -1), fill(group_producer, shared_topic, 1, -1)
    calls = iter(range(10 * COUNT))

    def number(data: bytes) -> int:
        if next(calls) == COUNT + BAD:
            raise KeyboardInterrupt
        return int(data)

    seen: list[Any] = []
    with member(value_deserializer=number) as consumer:
        consumer.assign([first, second])
        interrupts = 0

        def poll() -> bool:
            nonlocal interrupts
            try:
                seen.extend((record.partition, record.value) for record in consumer.poll(1))
            except KeyboardInterrupt:
                interrupts += 1
            return len(seen) >= 2 * COUNT

        eventually(poll)
    assert interrupts == 1
    assert sorted(seen) == [(p, n) for p in (0, 1) for n in range(COUNT)]


def test_records_that_were_deserialized_keep_their_objects_in_parts_and_pickles(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    tp = fill(group_producer, shared_topic, bad=-1)
    with member(value_deserializer=int, key_deserializer=bytes.decode) as consumer:
        consumer.assign([tp])
        polled = consumer.poll(10)
    odd: ConsumerRecords[Any, Any] = polled.where(lambda record: (record.value or 0) % 2)
    for records in (odd, pickle.loads(pickle.dumps(odd))):
        assert [(r.key, r.value) for r in records] == [(str(n), n) for n in range(len(polled)) if n % 2]
