"""The records of share groups, share partitions and groups of Kafka Streams: their bytes, and the effect of damage."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ottla.coordination.groups.share import records as share_groups
from ottla.coordination.groups.streams import records as streams_groups
from ottla.coordination.serde import encode_pair
from ottla.coordination.share import records as share_states
from ottla.coordination.share.records import ShareSnapshotKey, ShareSnapshotValue, ShareStateRecord, ShareUpdateKey
from ottla.errors import CorruptRecordError
from ottla.protocol.messages.read_share_group_state import StateBatch
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message
from tests.protocol.values import chances, messages, tidy

MODULES = (share_groups, streams_groups, share_states)
KINDS = [(module.decode_record, *pair) for module in MODULES for pair in module.PAIRS.values()]
Decode = Callable[[bytes | None, bytes | None], Any]
ID = uuid.UUID(int=7)


def drawn(cls: type[Message], chance: Random) -> Message:
    made: Message = messages(plan_of(cls, 0))(chance)
    return made


def name_of(value: object) -> str:
    return value.__name__ if isinstance(value, type) else ""


@pytest.mark.parametrize(("decode", "key", "value"), KINDS, ids=name_of)
def test_a_record_is_read_back_unchanged(decode: Decode, key: type[Message], value: type[Message]) -> None:
    for chance in chances(10, value):
        its_key, its_value = drawn(key, chance), drawn(value, chance)

        read = decode(*encode_pair(its_key, its_value))

        assert (read.key, tidy(read.value)) == (its_key, tidy(its_value))
        assert decode(encode_pair(its_key, None)[0], None) == (its_key, None)


@pytest.mark.parametrize(("decode", "key", "value"), KINDS, ids=name_of)
def test_a_record_with_a_byte_changed_is_read_or_refused(
    decode: Decode, key: type[Message], value: type[Message]
) -> None:
    for chance in chances(40, value):
        octets = bytearray(encode_pair(key(), drawn(value, chance))[1] or b"")
        octets[chance.randrange(len(octets))] = chance.randrange(256)
        try:
            read = decode(encode_pair(key(), None)[0], bytes(octets))
        except CorruptRecordError:
            continue
        assert isinstance(read.value, value)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_record_without_a_key_or_of_another_kind_is_none(module: Any) -> None:
    assert module.decode_record(None, b"anything") is None
    assert module.decode_record(b"\0\x63\0\1g", b"anything") is None


def test_a_record_of_a_later_version_is_refused_by_name() -> None:
    key, _ = encode_pair(ShareUpdateKey("g", ID, 0), None)

    with pytest.raises(CorruptRecordError, match="unknown version 7 of a ShareUpdateValue: expected 0-0"):
        share_states.decode_record(key, b"\0\7")


def test_a_snapshot_of_a_share_partition_has_kafkas_bytes() -> None:
    value = ShareSnapshotValue(1, 2, 3, 4, 5, 6, 7, [StateBatch(8, 9, 2, 1)])

    key, octets = share_states.encode_record(ShareStateRecord(ShareSnapshotKey("g", ID, 2), value))

    assert key == b"\0\0" + b"\0\1g" + ID.bytes + b"\0\0\0\2"
    batch = (8).to_bytes(8, "big") + (9).to_bytes(8, "big") + b"\2\0\1\0"
    numbers = b"".join(each.to_bytes(width, "big") for each, width in ((1, 4), (2, 4), (3, 4), (4, 8), (6, 8), (7, 8)))
    # Version 0, the fields in order, one batch, and the count of delivered records as the only tag.
    assert octets == b"\0\0" + numbers + b"\2" + batch + b"\1\0\4\0\0\0\5"


@pytest.mark.parametrize("module", [share_groups, streams_groups], ids=lambda module: module.__name__)
def test_each_record_of_a_group_has_the_id_of_its_group(module: Any) -> None:
    record_class = getattr(module, "ShareGroupRecord", None) or module.StreamsGroupRecord
    for key, _ in module.PAIRS.values():
        assert record_class(key("g"), None).group_id == "g"
        assert module.encode_record(record_class(key("g"), None))[1] is None
