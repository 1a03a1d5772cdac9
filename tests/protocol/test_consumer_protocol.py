"""Subscriptions and assignments, as the members of a group exchange them."""

from __future__ import annotations

from contextlib import suppress

import pytest

from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode,
    encode,
)
from ottla.protocol.plan import plan_of
from tests.protocol.test_damage import damaged
from tests.protocol.values import chances, ids, messages, tidy

CLASSES = (ConsumerProtocolSubscription, ConsumerProtocolAssignment)
Part = ConsumerProtocolSubscription | ConsumerProtocolAssignment
EVERY = [(cls, version) for cls in CLASSES for version in range(4)]


@pytest.mark.parametrize(("cls", "version"), EVERY, ids=ids)
def test_written_messages_are_read_back(cls: type[Part], version: int) -> None:
    for part in map(messages(plan_of(cls, version)), chances(40, version)):
        assert tidy(decode(cls, encode(part, version))) == tidy(part)


def test_the_bytes_are_those_that_kafka_writes() -> None:
    part = ConsumerProtocolSubscription(["t"], b"u", [TopicPartition("t", [2])], 7, "r")
    v0 = b"\0\0" + b"\0\0\0\1\0\1t" + b"\0\0\0\1u"
    assert encode(part, 0) == v0
    assert encode(part) == b"\0\3" + v0[2:] + b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\2" + b"\0\0\0\7" + b"\0\1r"
    assert encode(ConsumerProtocolAssignment(), 1) == b"\0\1" + b"\0\0\0\0" + b"\xff\xff\xff\xff"


@pytest.mark.parametrize("cls", CLASSES, ids=ids)
def test_a_newer_version_is_read_as_far_as_it_is_known(cls: type[Part]) -> None:
    assert decode(cls, b"\0\x09" + encode(cls())[2:] + b"a field of version 9") == decode(cls, encode(cls()))


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\1\0\5ab"])
@pytest.mark.parametrize("cls", CLASSES, ids=ids)
def test_unreadable_messages_are_one_clear_error(cls: type[Part], data: bytes) -> None:
    with pytest.raises(MalformedError, match=f"{cls.__name__} cannot be read: "):
        decode(cls, data)


@pytest.mark.parametrize(("cls", "version"), EVERY, ids=ids)
def test_damaged_bytes_are_a_message_or_one_error(cls: type[Part], version: int) -> None:
    some = messages(plan_of(cls, version))
    for chance in chances(40, version):
        whole = encode(some(chance), version)
        for octets in [damaged(whole, chance) for _ in range(10)]:
            with suppress(MalformedError):
                assert isinstance(decode(cls, octets), cls)
