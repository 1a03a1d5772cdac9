"""The records we keep are those that Kafka's own definitions describe."""

from __future__ import annotations

import pytest

from ottla.coordination.cluster.records import KINDS
from ottla.coordination.groups.classic.records import GroupMetadataKey, GroupMetadataValue
from ottla.coordination.offsets.records import OffsetCommitKey, OffsetCommitValue
from ottla.coordination.quorum.control_records import KINDS as CONTROL_KINDS
from ottla.protocol.schema import Message
from tests.protocol.facts import ABSENT, FOLDER, definition, differences
from tests.protocol.values import ids

if not FOLDER.is_dir():
    pytest.skip(ABSENT, allow_module_level=True)


@pytest.mark.parametrize("cls", KINDS.values(), ids=ids)
def test_a_metadata_record_has_the_fields_that_kafka_gives_it(cls: type[Message]) -> None:
    assert differences(cls, definition(f"metadata/{cls.__name__}.json")) == []


@pytest.mark.parametrize("cls", [OffsetCommitKey, OffsetCommitValue, GroupMetadataKey, GroupMetadataValue], ids=ids)
def test_a_record_of_a_group_has_the_fields_that_kafka_gives_it(cls: type[Message]) -> None:
    assert differences(cls, definition(f"group-coordinator/{cls.__name__}.json")) == []


def test_the_older_key_of_an_offset_record_has_the_same_fields() -> None:
    facts = definition("group-coordinator/LegacyOffsetCommitKey.json")
    assert differences(OffsetCommitKey, facts) == ["key: 1, in Kafka 0"]


@pytest.mark.parametrize("cls", CONTROL_KINDS.values(), ids=ids)
def test_a_control_record_has_the_fields_that_kafka_gives_it(cls: type[Message]) -> None:
    assert differences(cls, {"apiKey": cls.KEY, **definition(f"wire/{cls.__name__}.json")}) == []
