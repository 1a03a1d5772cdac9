"""Control records of the metadata's log: their bytes, those of Kafka, and what damage does to them."""

from __future__ import annotations

import random
import uuid
from contextlib import suppress
from importlib import import_module

import pytest

from ottla.coordination.quorum import voters_record
from ottla.coordination.quorum.control_records import (
    KINDS,
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    decode_control,
    encode_control,
)
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, VotersRecord
from ottla.errors import CorruptRecordError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message
from ottla.storage.state_log import voter
from tests.protocol.kio_bridge import kio_encode, to_kio
from tests.protocol.values import chances, ids, messages, tidy

DIRECTORY = uuid.UUID(int=5)
RECORDS: list[ControlRecord] = [
    LeaderChangeMessage(0, 3, [Voter(1), Voter(3)], [Voter(3)]),
    LeaderChangeMessage(1, 3, [Voter(1, DIRECTORY)], [Voter(1, DIRECTORY)]),
    SnapshotHeaderRecord(0, 1_700_000_000_000),
    SnapshotFooterRecord(),
    KRaftVersionRecord(0, 1),
    VotersRecord(
        0, [voters_record.Voter(1, DIRECTORY, [Endpoint("CONTROLLER", "a", 9093)], KRaftVersionFeature(0, 1))]
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_control_record_is_read_back_unchanged(record: ControlRecord) -> None:
    key, value = encode_control(record)
    assert key == bytes((0, 0, 0, record.KEY))
    assert tidy(decode_control(record.KEY, value)) == tidy(record)


@pytest.mark.parametrize(
    ("cls", "version"), [(cls, version) for cls in KINDS.values() for version in range(cls.VERSIONS.last + 1)], ids=ids
)
def test_any_control_record_is_read_back_unchanged(cls: type[Message], version: int) -> None:
    for record in map(messages(plan_of(cls, version)), chances(40, cls)):
        record.version = version
        assert tidy(decode_control(cls.KEY, encode_control(record)[1])) == tidy(record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_damage_is_one_clear_error_or_another_record(record: ControlRecord) -> None:
    chance, (_, value) = random.Random(1), encode_control(record)
    for _ in range(300):
        data = bytearray(value)
        data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.choice((len(data), chance.randrange(len(data)))) :]
        with suppress(CorruptRecordError):
            assert isinstance(decode_control(record.KEY, bytes(data)), type(record))


def test_a_control_record_of_a_later_version_is_refused_and_one_of_another_kind_passed_over() -> None:
    with pytest.raises(CorruptRecordError, match="of version 1 is not one of 0-0"):
        decode_control(VotersRecord.KEY, b"\0\1\1\0")
    assert decode_control(0, b"\0\0") is None
    assert decode_control(77, b"") is None


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_an_encoder_that_is_not_ours_writes_the_same_bytes(record: ControlRecord) -> None:
    name = type(record).__name__
    if isinstance(record, KRaftVersionRecord):
        pytest.skip("kio does not know it")
    package = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    theirs = getattr(import_module(f"kio.schema.{package}.v{record.version}.data"), name)
    assert encode_control(record)[1] == kio_encode(to_kio(record, theirs))


def test_the_single_voter_of_current_snapshots_is_read() -> None:
    alone = voter.SoleVoter(7, DIRECTORY)
    assert decode_control(5, alone.version_record()) == KRaftVersionRecord(0, 1)
    reported = decode_control(6, alone.voters_record())
    assert isinstance(reported, VotersRecord)
    (one,) = reported.voters
    assert (one.voter_id, one.voter_directory_id, list(one.endpoints)) == (7, DIRECTORY, [])
    assert one.k_raft_version_feature == KRaftVersionFeature(0, 1)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_value_that_is_too_short_or_too_long_is_reported(record: ControlRecord) -> None:
    _, value = encode_control(record)
    for size in range(2):
        with pytest.raises(CorruptRecordError, match=f"a {type(record).__name__} of version"):
            decode_control(record.KEY, value[:size])
    for damaged in (value[:-1], value + b"\0"):
        with pytest.raises(CorruptRecordError):
            decode_control(record.KEY, damaged)
