"""Faults around a processor lose and duplicate nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ottla
from ottla.errors import BufferExhaustedError, ErrorCode, ProducerFencedError, TransactionAbortableError
from tests.client.conftest import NewTopicName, eventually
from tests.client.process.running import filled, records_of, running, settled, upper, values_of

NUMBERS = [str(number) for number in range(40)]


class Stumbling(ottla.Producer):
    """Raises each error of `ERRORS` once, at the fifth record."""

    error: Exception
    sent = 0

    def send(self, *arguments: Any, **settings: Any) -> Any:
        self.sent += 1
        if self.sent == 5:
            raise self.error
        return super().send(*arguments, **settings)


STUMBLES: dict[str, Callable[[], Exception]] = {
    "full": lambda: BufferExhaustedError("no room"),
    "abortable": lambda: TransactionAbortableError(ErrorCode.TRANSACTION_ABORTABLE, "lost a record"),
}
"""Errors are created for each test: a raised one refers to its traceback and thus to clients."""


@pytest.mark.parametrize("stumble", STUMBLES)
@pytest.mark.parametrize("exactly_once", [True, False])
def test_records_whose_result_could_not_be_sent_are_read_again(
    servers: str, new_topic: NewTopicName, stumble: str, exactly_once: bool
) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, NUMBERS)

    def stumbling(**settings: Any) -> ottla.Producer:
        producer = Stumbling(**settings)
        producer.error = STUMBLES[stumble]()
        return producer

    def single(record: ottla.ConsumerRecord) -> ottla.Outgoing:
        return ottla.Outgoing(record.value, headers={"h": b"1"})

    with running(servers, source, single, to=target, make=stumbling, exactly_once=exactly_once):
        eventually(settled(servers, source, source, 40))
    found = [value.decode() for value in values_of(servers, target)]
    assert found[-40:] == NUMBERS
    assert len(found) == 40 or not exactly_once


def test_reading_waits_while_the_producers_memory_is_full(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, NUMBERS)
    small: ottla.ProducerSettings = {"buffer_memory": 65_536, "batch_size": 16_384, "max_request_size": 65_536}

    def tight(**settings: Any) -> ottla.Producer:
        return ottla.Producer(**small, **settings)

    with running(servers, source, lambda record: [bytes(10_000)] * 10, to=target, make=tight):
        eventually(settled(servers, source, source, 40))
    assert [len(value) for value in values_of(servers, target)] == [10_000] * 400


def test_a_processor_ends_when_another_takes_its_transactional_id(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a"])

    def taken_over(processor: ottla.Processor) -> bool:
        if values_of(servers, target) == [b"A"]:
            with ottla.Producer(bootstrap_servers=servers, transactional_id=source) as usurper:
                usurper.init_transactions()
            filled(servers, source, ["b"])
            eventually(lambda: processor.is_over)
        return processor.is_over

    with (
        pytest.raises(ProducerFencedError, match=r"another producer uses transactional\.id"),
        running(servers, source, upper, to=target) as processor,
    ):
        eventually(lambda: taken_over(processor))
    assert values_of(servers, target) == [b"A"]
    assert not settled(servers, source, source, 2)()


def test_a_recreated_target_topic_gets_the_later_records(
    servers: str, admin: ottla.Admin, new_topic: NewTopicName
) -> None:
    source, target = new_topic(), new_topic()
    with running(servers, source, upper, to=target):
        filled(servers, source, ["a"])
        eventually(lambda: values_of(servers, target) == [b"A"])
        admin.delete_topics([target])  # and the broker creates it when it is asked for
        filled(servers, source, ["b"])
        eventually(lambda: values_of(servers, target) == [b"B"])


def has_partitions(admin: ottla.Admin, group: str) -> bool:
    """True if a member of the group has an assignment."""
    return any(member.assignment for member in admin.describe_consumer_groups([group])[group].members)


def test_a_recreated_source_topic_is_read_from_its_beginning(
    servers: str, admin: ottla.Admin, new_topic: NewTopicName
) -> None:
    source, target = new_topic(), new_topic()
    reads = {"metadata_max_age_ms": 100, "allow_auto_create_topics": False}
    with running(servers, source, upper, to=target, reads=reads):
        filled(servers, source, ["a"])
        eventually(lambda: values_of(servers, target) == [b"A"])
        eventually(settled(servers, source, source, 1))  # a commit that comes later would be one of the new topic
        admin.delete_topics([source])
        eventually(lambda: not has_partitions(admin, source))
        admin.create_topics([ottla.NewTopic(source, 1)])
        filled(servers, source, ["b"])
        eventually(lambda: values_of(servers, target) == [b"A", b"B"])


def test_dead_letters_of_an_aborted_transaction_are_not_there(servers: str, new_topic: NewTopicName) -> None:
    source, target, letters = new_topic(), new_topic(), new_topic()
    filled(servers, source, ["none", "too large"])

    def spoils(record: ottla.ConsumerRecord) -> bytes:
        return bytes(2_000_000) if record.value == b"too large" else b"%d" % int(record.value or b"")

    with (
        pytest.raises(ottla.KafkaError, match=r"max\.request\.size"),
        running(servers, source, spoils, to=target, dead_letter_topic=letters) as processor,
    ):
        eventually(lambda: processor.is_over)
    assert values_of(servers, letters) == []


def test_a_value_that_cannot_be_deserialized_is_a_dead_letter_of_the_converter(
    servers: str, new_topic: NewTopicName
) -> None:
    source, target, letters = new_topic(), new_topic(), new_topic()
    filled(servers, source, ["1", "none"])

    def double(record: ottla.ConsumerRecord[bytes, int]) -> bytes:
        return b"%d" % (2 * (record.value or 0))

    with running(servers, source, double, to=target, dead_letter_topic=letters, reads={"value_deserializer": int}):
        eventually(settled(servers, source, source, 2))
    assert values_of(servers, target) == [b"2"]
    (letter,) = records_of(servers, letters)
    headers = dict(letter.headers)
    assert letter.value == b"none"
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert headers["__connect.errors.connector.name"] == b"ottla-process"


def test_values_that_cannot_be_deserialized_are_dead_letters_one_by_one_from_one_fetch(
    servers: str, new_topic: NewTopicName
) -> None:
    source, target, letters = new_topic(), new_topic(), new_topic()
    filled(servers, source, [str(n) if n % 3 else f"bad {n}" for n in range(300)])

    def identity(record: ottla.ConsumerRecord[bytes, int]) -> bytes:
        return b"%d" % (record.value or 0)

    with running(
        servers, source, identity, to=target, dead_letter_topic=letters, reads={"value_deserializer": int}
    ) as processor:
        eventually(settled(servers, source, source, 300))
        fetched = processor._consumer.metrics().value("fetch-total")
    assert values_of(servers, target) == [b"%d" % n for n in range(300) if n % 3]
    assert values_of(servers, letters) == [b"bad %d" % n for n in range(0, 300, 3)]
    assert fetched < 100, "rows behind a bad one are not fetched again"
