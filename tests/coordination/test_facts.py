"""The records we keep are those that Kafka's own definitions describe."""

from __future__ import annotations

import pytest

from ottla.coordination.cluster.records import KINDS
from ottla.coordination.groups.classic.records import GroupMetadataKey, GroupMetadataValue
from ottla.coordination.groups.share.records import PAIRS as SHARE
from ottla.coordination.groups.streams.records import PAIRS as STREAMS
from ottla.coordination.offsets.records import OffsetCommitKey, OffsetCommitValue
from ottla.coordination.quorum.control_records import KINDS as CONTROL_KINDS
from ottla.coordination.share.records import PAIRS as SHARE_STATE
from ottla.protocol.schema import Message
from tests.protocol.facts import ABSENT, FOLDER, definition, differences
from tests.protocol.values import ids

if not FOLDER.is_dir():
    pytest.skip(ABSENT, allow_module_level=True)


@pytest.mark.parametrize("cls", KINDS.values(), ids=ids)
def test_a_metadata_record_has_kafkas_fields(cls: type[Message]) -> None:
    assert differences(cls, definition(f"metadata/{cls.__name__}.json")) == []


def test_every_metadata_record_of_kafka_is_declared() -> None:
    # Records of `__remote_log_metadata`, for tiered storage, which is not supported.
    remote = {path.stem for path in FOLDER.glob("metadata/Remote*Metadata*Record.json")}
    assert {cls.__name__ for cls in KINDS.values()} == {path.stem for path in FOLDER.glob("metadata/*.json")} - remote


@pytest.mark.parametrize("cls", [OffsetCommitKey, OffsetCommitValue, GroupMetadataKey, GroupMetadataValue], ids=ids)
def test_a_group_record_has_kafkas_fields(cls: type[Message]) -> None:
    assert differences(cls, definition(f"group-coordinator/{cls.__name__}.json")) == []


@pytest.mark.parametrize("cls", [cls for pairs in (SHARE, STREAMS) for pair in pairs.values() for cls in pair], ids=ids)
def test_a_record_of_a_share_or_streams_group_has_kafkas_fields(cls: type[Message]) -> None:
    assert differences(cls, definition(f"group-coordinator/{cls.__name__}.json")) == []


@pytest.mark.parametrize("cls", [cls for pair in SHARE_STATE.values() for cls in pair], ids=ids)
def test_a_record_of_the_share_coordinator_has_kafkas_fields(cls: type[Message]) -> None:
    assert differences(cls, definition(f"share-coordinator/{cls.__name__}.json")) == []


def test_the_older_key_of_an_offset_record_has_the_same_fields() -> None:
    facts = definition("group-coordinator/LegacyOffsetCommitKey.json")
    assert differences(OffsetCommitKey, facts) == ["key: 1, in Kafka 0"]


@pytest.mark.parametrize("cls", CONTROL_KINDS.values(), ids=ids)
def test_a_control_record_has_kafkas_fields(cls: type[Message]) -> None:
    assert differences(cls, {"apiKey": cls.KEY, **definition(f"wire/{cls.__name__}.json")}) == []
