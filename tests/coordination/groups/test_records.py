"""Groups as bytes of `__consumer_offsets`, and what damage does to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember, subscribed_topics
from ottla.coordination.groups.classic.records import ClassicGroupRecord, GroupInMemory, group_of
from ottla.coordination.groups.records import decode_record, encode_record
from ottla.errors import CorruptRecordError
from tests.coordination.groups.story import subscription

MEMBER = ClassicMember("m", "i", "app", "/h", 60_000, 10_000, (("range", subscription("t")),), b"A")
GROUP = ClassicGroup(
    "g", ClassicGroupState.STABLE, 3, "consumer", "range", "m", {"m": MEMBER}, topics=frozenset("t"), changed_ms=9
)


def encoded() -> tuple[bytes, bytes]:
    pair = encode_record(ClassicGroupRecord.of(GROUP))
    assert pair is not None
    assert pair[1] is not None
    return pair[0], pair[1]


def test_a_group_record_is_read_back_unchanged() -> None:
    record = decode_record(*encoded())
    assert isinstance(record, ClassicGroupRecord)
    assert group_of(record) == GROUP


def test_a_group_record_has_kafkas_bytes() -> None:
    key, value = encoded()
    assert key == b"\0\2" + b"\0\1g"
    head = b"\0\3" + b"\0\x08consumer" + b"\0\0\0\3" + b"\0\5range" + b"\0\1m" + (9).to_bytes(8, "big")
    member = b"\0\1m" + b"\0\1i" + b"\0\3app" + b"\0\2/h" + (60_000).to_bytes(4, "big") + (10_000).to_bytes(4, "big")
    metadata = subscription("t")
    assert value == head + b"\0\0\0\1" + member + len(metadata).to_bytes(4, "big") + metadata + b"\0\0\0\1A"


def test_in_memory_state_is_not_encoded() -> None:
    assert encode_record(GroupInMemory(GROUP)) is None


def test_a_deleted_group_is_a_tombstone() -> None:
    assert encode_record(ClassicGroupRecord.tombstone("g")) == (b"\0\2\0\1g", None)
    assert decode_record(b"\0\2\0\1g", None) == ClassicGroupRecord.tombstone("g")


@given(st.data())
def test_a_damaged_group_is_read_or_is_one_clear_error(data: st.DataObject) -> None:
    key, value = encoded()
    damaged = bytearray(value)
    for position in data.draw(st.lists(st.integers(0, len(value) - 1), max_size=3)):
        damaged[position] = data.draw(st.integers(0, 255))
    try:
        record = decode_record(key, bytes(damaged[: data.draw(st.integers(0, len(value)))]))
    except CorruptRecordError:
        return
    assert isinstance(record, ClassicGroupRecord)


@pytest.mark.parametrize("version", [b"\0\5", b"\xff\xff"])
def test_a_group_of_an_unknown_version_is_an_error(version: bytes) -> None:
    key, value = encoded()
    with pytest.raises(CorruptRecordError, match="0-4 are known"):
        decode_record(key, version + value[2:])


@given(st.lists(st.text(min_size=1, max_size=20), max_size=5))
def test_topics_of_a_subscription_are_read(topics: list[str]) -> None:
    names = [name.encode() for name in topics]
    front = b"\0\3" + len(names).to_bytes(4, "big") + b"".join(len(name).to_bytes(2, "big") + name for name in names)
    assert subscribed_topics(front + b"whatever is behind") == frozenset(topics)


@given(st.binary(max_size=60))
def test_an_invalid_subscription_has_no_topics(metadata: bytes) -> None:
    found = subscribed_topics(metadata)
    assert found is None or all(isinstance(topic, str) for topic in found)
    assert subscribed_topics(metadata[:5]) is None
    assert subscribed_topics(b"\0\0\x7f\xff\xff\xff") is None
    assert subscribed_topics(b"\0\0\0\0\0\1\0\1\xff") is None
