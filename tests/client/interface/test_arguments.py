"""Invalid arguments fail their own call at once, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.errors import InvalidTopicError

UNSENDABLE: list[tuple[Any, type[Exception], str]] = [
    (5, TypeError, "topic = 5: must be text"),
    (b"t", TypeError, "topic = b't': must be text"),
    (None, TypeError, "topic = None: must be text"),
    ("a\udcff", InvalidTopicError, "not valid Unicode"),
    ("a" * 40_000, InvalidTopicError, "40000 bytes is too long"),
]


@pytest.mark.parametrize(("name", "error", "words"), UNSENDABLE)
def test_a_producer_rejects_a_name_that_cannot_be_encoded_and_stays_usable(
    servers: str, topic: str, name: Any, error: type[Exception], words: str
) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        with pytest.raises(error, match=words):
            producer.send(name, b"")
        assert producer.send(topic, b"").result(timeout=20).offset == 0


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"partition": 1.5}, TypeError, "partition = 1.5: must be the number of a partition, a whole number"),
        ({"partition": True}, TypeError, "partition = True"),
        ({"partition": "0"}, TypeError, "partition = '0'"),
        ({"partition": -1}, ValueError, "partition = -1: must be the number of a partition, from 0"),
        ({"timestamp": 1.5e12}, TypeError, "must be milliseconds since 1970, a whole number"),
        ({"timestamp": -1}, ValueError, "timestamp = -1: must be milliseconds since 1970, from 0"),
        ({"timestamp": 2**63}, ValueError, "must be milliseconds since 1970, from 0"),
    ],
)
def test_a_producer_rejects_a_number_that_cannot_be_encoded_and_stays_usable(
    servers: str, topic: str, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        assert producer.send(topic, b"").result(timeout=20).offset == 0
        with pytest.raises(error, match=words):
            producer.send(topic, b"", **settings)
        assert producer.send(topic, b"").result(timeout=20).offset == 1


T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda consumer: consumer.assign("ab"), "'ab' is no list of partitions"),
        (lambda consumer: consumer.assign(["ab"]), "'ab' is no partition: write TopicPartition"),
        (lambda consumer: consumer.assign(T0), "is one partition: hand over a list"),
        (lambda consumer: consumer.assign([("t", "0")]), "partition = '0'"),
        (lambda consumer: consumer.assign([(5, 0)]), "topic = 5: must be text"),
        (lambda consumer: consumer.pause([T0]), "is no partition"),
        (lambda consumer: consumer.end_offsets(T0), "is one partition"),
        (lambda consumer: consumer.seek(T0, 1.5), "offset = 1.5"),
        (lambda consumer: consumer.offsets_for_times({T0: "now"}), "the time for t-0 = 'now': must be milliseconds"),
        (lambda consumer: consumer.partitions_for(5), "topic = 5"),
    ],
)
def test_a_consumer_refuses_what_is_no_partition(call: Callable[[Consumer], object], words: str) -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.assign([T0])
        with pytest.raises(TypeError, match=words):
            call(consumer)
        assert consumer.assignment() == {T0}


def test_partitions_may_be_plain_pairs() -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.assign([("t", 0)])  # type: ignore[list-item]
        assert consumer.assignment() == {T0}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda admin: admin.delete_topics("ab"), r"'ab' is one name: hand over a list"),
        (lambda admin: admin.describe_topics("ab"), r"'ab' is one name: hand over a list"),
        (lambda admin: admin.create_topics(["ab"]), r"'ab' is not a NewTopic: write NewTopic"),
        (lambda admin: admin.create_topics(NewTopic("ab")), r"is not a list of topics"),
        (lambda admin: admin.create_topics([NewTopic(5)]), r"topic = 5: must be text"),  # type: ignore[arg-type]
    ],
)
def test_an_admin_rejects_one_string_in_place_of_a_list_of_names(
    admin: Admin, call: Callable[[Admin], object], words: str
) -> None:
    before = set(admin.list_topics())
    with pytest.raises(TypeError, match=words):
        call(admin)
    assert set(admin.list_topics()) == before
