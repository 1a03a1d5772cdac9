"""Consume, transform, produce by our own clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ottla
from ottla.client.process.outgoing import to_outgoing
from ottla.errors import RecordTooLargeError
from tests.client.conftest import NewTopicName, eventually, fresh_name
from tests.client.process.running import consumer_of, filled, records_of, running, settled, upper


@pytest.mark.parametrize("exactly_once", [True, False])
def test_results_of_the_function_are_committed_with_the_offsets(
    servers: str, new_topic: NewTopicName, exactly_once: bool
) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a", "b", "c"])
    with running(servers, source, upper, to=target, exactly_once=exactly_once):
        eventually(settled(servers, source, source, 3))
    assert [record.value for record in records_of(servers, target)] == [b"A", b"B", b"C"]


def test_a_restarted_processor_continues_at_the_committed_offsets(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    for number in range(3):
        filled(servers, source, [f"v{number}"])
        with running(servers, source, upper, to=target):
            eventually(settled(servers, source, source, number + 1))
    assert [record.value for record in records_of(servers, target)] == [b"V0", b"V1", b"V2"]


def test_a_record_that_cannot_be_processed_becomes_a_dead_letter_with_the_reason(
    servers: str, new_topic: NewTopicName
) -> None:
    source, target, letters = new_topic(), new_topic(), new_topic()
    filled(servers, source, ["1", "none", "3"])
    with running(
        servers, source, lambda record: json.dumps(int(record.value)).encode(), to=target, dead_letter_topic=letters
    ):
        eventually(settled(servers, source, source, 3))
    assert [record.value for record in records_of(servers, target)] == [b"1", b"3"]
    (letter,) = records_of(servers, letters)
    headers = {name.removeprefix("__connect.errors."): value for name, value in letter.headers}
    assert (letter.key, letter.value) == (b"k", b"none")
    assert (headers["topic"], headers["partition"], headers["offset"]) == (source.encode(), b"0", b"1")
    assert (headers["stage"], headers["exception.class.name"]) == (b"TRANSFORMATION", b"builtins.ValueError")
    assert b"invalid literal" in (headers["exception.message"] or b"")
    assert b"Traceback" in (headers["exception.stacktrace"] or b"")


def test_an_exception_ends_the_loop_and_aborts_the_transaction(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["1", "none"])

    def fails(record: ottla.ConsumerRecord) -> bytes:
        return b"%d" % int(record.value or b"")

    consumer = consumer_of(servers, source)
    producer = ottla.Producer(bootstrap_servers=servers, transactional_id=source)
    with consumer, producer, pytest.raises(ValueError, match="invalid literal"):
        ottla.process(consumer, producer, fails, topics=[source], to=target, commit_interval_ms=60_000)
    assert records_of(servers, target) == []
    assert not settled(servers, source, source, 1)()


def test_an_oversized_result_ends_the_loop_instead_of_being_retried(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a"])
    with (
        pytest.raises(RecordTooLargeError),
        running(servers, source, lambda record: bytes(2_000_000), to=target) as processor,
    ):
        eventually(lambda: processor.is_over)
    assert not settled(servers, source, source, 1)()


def test_a_batch_function_gets_the_records_of_one_poll(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["1", "2", "3"])
    total = lambda records: b"%d" % sum(int(record.value) for record in records)  # noqa: E731
    with running(servers, source, total, to=target, batches=True):
        eventually(settled(servers, source, source, 3))
    assert sum(int(record.value or b"") for record in records_of(servers, target)) == 6


def test_a_second_processor_of_a_transactional_id_ends_the_first(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a"])
    usurper = ottla.Producer(bootstrap_servers=servers, transactional_id=source)

    def taken_over(record: ottla.ConsumerRecord) -> bytes:
        usurper.init_transactions()
        return b"of a zombie"

    consumer = consumer_of(servers, source)
    producer = ottla.Producer(bootstrap_servers=servers, transactional_id=source)
    with usurper, consumer, producer, pytest.raises(ottla.KafkaError, match=r"transactional\.id"):
        ottla.process(consumer, producer, taken_over, topics=[source], to=target, commit_interval_ms=0)
    assert records_of(servers, target) == []
    assert not settled(servers, source, source, 1)()


@pytest.mark.parametrize(
    ("reads", "writes", "settings", "remedy"),
    [
        ({"group_id": None}, {}, {}, "group.id"),
        ({"enable_auto_commit": True}, {}, {}, "enable.auto.commit"),
        ({}, {}, {}, "exactly_once=False"),
        ({"isolation_level": "read_uncommitted"}, {"transactional_id": "x"}, {}, "read_committed"),
        ({}, {"transactional_id": "x"}, {"exactly_once": False}, "remove one"),
        ({}, {"value_serializer": str.encode}, {"exactly_once": False, "dead_letter_topic": "d"}, "bytes"),
        ({}, {}, {"exactly_once": False, "batches": True, "arrow": True}, "a list or a table"),
        ({"value_deserializer": bytes.decode}, {}, {"exactly_once": False, "arrow": True}, "decode them"),
        ({}, {}, {"exactly_once": False, "include_headers": True}, "without arrow"),
        ({}, {}, {"exactly_once": False, "topics": []}, "name a topic"),
    ],
)
def test_settings_that_break_the_delivery_guarantee_are_rejected_with_the_remedy(
    servers: str, reads: dict[str, Any], writes: dict[str, Any], settings: dict[str, Any], remedy: str
) -> None:
    given = {"group_id": fresh_name(), "enable_auto_commit": False, "isolation_level": "read_committed", **reads}
    consumer = ottla.Consumer(bootstrap_servers=servers, **given)
    producer = ottla.Producer(bootstrap_servers=servers, **writes)
    with consumer, producer, pytest.raises(ottla.ConfigError, match=remedy):
        ottla.Processor(consumer, producer, upper, **{"topics": ["t"], **settings})


def test_a_result_is_none_or_a_value_or_a_record_or_several() -> None:
    assert list(to_outgoing(None)) == []
    assert list(to_outgoing(b"v")) == [ottla.Outgoing(b"v")]
    assert list(to_outgoing([b"v", None, ottla.Outgoing(b"w", key=b"k")])) == [
        ottla.Outgoing(b"v"),
        ottla.Outgoing(b"w", key=b"k"),
    ]
    assert list(to_outgoing(iter("ab"))) == [ottla.Outgoing("a"), ottla.Outgoing("b")]


def test_after_an_idle_time_it_commits_at_once_and_then_at_its_interval(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    how: dict[str, Any] = {"to": target, "commit_interval_ms": 300}
    with running(servers, source, upper, **how):
        for number in range(3):
            filled(servers, source, [f"v{number}"])
            eventually(settled(servers, source, source, number + 1))
    offsets = [record.offset for record in records_of(servers, target)]
    assert offsets == [0, 2, 4], "a transaction of each, with its marker"
