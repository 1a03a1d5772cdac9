"""Consumer groups as bytes of `__consumer_offsets`, and what damage does to them."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.groups.consumer import records as kept
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.member import MemberState
from ottla.coordination.groups.consumer.records import PAIRS, ConsumerGroupRecord
from ottla.coordination.groups.records import decode_record, encode_record
from ottla.errors import CorruptRecordError

ID = UUID(int=7)
CLASSIC = kept.ClassicMemberMetadata(6000, [kept.ClassicProtocol("range", b"\0\1")])
RECORDS = [
    ConsumerGroupRecord(kept.GroupEpochKey("g"), kept.GroupEpochValue(3, -5)),
    ConsumerGroupRecord(
        kept.MemberMetadataKey("g", "m"),
        kept.MemberMetadataValue("i", "r", "app", "/h", ["t"], "u.*", 60_000, "range", CLASSIC),
    ),
    ConsumerGroupRecord(kept.MemberMetadataKey("g", "m"), kept.MemberMetadataValue(subscribed_topic_names=[])),
    ConsumerGroupRecord(kept.TargetEpochKey("g"), kept.TargetEpochValue(3, 9)),
    ConsumerGroupRecord(kept.TargetMemberKey("g", "m"), kept.TargetMemberValue([kept.TopicPartitions(ID, [0, 1])])),
    ConsumerGroupRecord(
        kept.CurrentMemberKey("g", "m"),
        kept.CurrentMemberValue(3, 2, 1, [kept.OwnedPartitions(ID, [0], [3])], [kept.OwnedPartitions(ID, [1], [2])]),
    ),
    ConsumerGroupRecord(kept.RegularExpressionKey("g", "u.*"), kept.RegularExpressionValue(["u"], 4, 9)),
    *(ConsumerGroupRecord(key("g"), None) for key, _ in PAIRS.values()),  # type: ignore[call-arg]
]


def encoded(record: ConsumerGroupRecord) -> tuple[bytes, bytes | None]:
    pair = encode_record(record)
    assert pair is not None
    return pair


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record.key).__name__)
def test_a_record_is_read_back_unchanged(record: ConsumerGroupRecord) -> None:
    assert decode_record(*encoded(record)) == record


def test_an_epoch_record_has_kafkas_bytes() -> None:
    key, value = encoded(ConsumerGroupRecord(kept.GroupEpochKey("g"), kept.GroupEpochValue(3, 1)))
    assert key == b"\0\3" + b"\0\1g"
    assert value == b"\0\0" + b"\0\0\0\3" + b"\1" + b"\0\x08" + (1).to_bytes(8, "big")


MEMBER = "0000" + "00" + "00" + "0263" + "0268" + "020274" + "00" + "00000005" + "00"
"""A member as Kafka 4.3.1 writes it, up to what is tagged."""
OF_KAFKA = {
    "010001" + "00": None,
    "010011" + "01" + "00001770" + "020672616e6765030001" + "00" + "00": CLASSIC,
}
AS_OURS_WERE = {"00": None, "010010" + "00001770" + "020672616e6765030001" + "00" + "00": CLASSIC}


@pytest.mark.behaviour("B4", "P3")
@pytest.mark.parametrize(("tagged", "classic"), OF_KAFKA.items(), ids=["consumer", "classic"])
def test_the_classic_protocol_of_a_member_is_encoded_as_in_kafka(
    tagged: str, classic: kept.ClassicMemberMetadata | None
) -> None:
    """Else a group's coordinator could not move between a broker of Kafka's and one of ours."""
    value = kept.MemberMetadataValue(None, None, "c", "h", ["t"], None, 5, None, classic)
    record = ConsumerGroupRecord(kept.MemberMetadataKey("g", "m"), value)
    key, said = encoded(record)
    assert said == bytes.fromhex(MEMBER + tagged)
    assert decode_record(key, said) == record


@pytest.mark.parametrize(("tagged", "classic"), AS_OURS_WERE.items(), ids=["consumer", "classic"])
def test_member_records_of_earlier_releases_are_read(tagged: str, classic: kept.ClassicMemberMetadata | None) -> None:
    value = kept.MemberMetadataValue(None, None, "c", "h", ["t"], None, 5, None, classic)
    key, _ = encoded(ConsumerGroupRecord(kept.MemberMetadataKey("g", "m"), None))
    assert decode_record(key, bytes.fromhex(MEMBER + tagged)) == ConsumerGroupRecord(
        kept.MemberMetadataKey("g", "m"), value
    )


@pytest.mark.parametrize("tagged", ["01000102", "01000101", "010000"])
def test_a_member_record_with_neither_form_is_rejected(tagged: str) -> None:
    key, _ = encoded(ConsumerGroupRecord(kept.MemberMetadataKey("g", "m"), None))
    with pytest.raises(CorruptRecordError, match="classic_member_metadata"):
        decode_record(key, bytes.fromhex(MEMBER + tagged))


def test_the_records_that_kafka_4_0_wrote_instead_of_a_hash_are_recognized() -> None:
    record = decode_record(b"\0\4\0\1g", b"\0\0\2" + bytes(40))
    assert isinstance(record, ConsumerGroupRecord)
    group = ConsumerGroup("g")
    group.apply(record)
    assert group.has_partition_metadata


def test_partitions_without_epochs_have_their_members() -> None:
    group = ConsumerGroup("g")
    group.apply(ConsumerGroupRecord(kept.MemberMetadataKey("g", "m"), kept.MemberMetadataValue()))
    value = kept.CurrentMemberValue(3, 2, 0, [kept.OwnedPartitions(ID, [0, 1])])
    group.apply(ConsumerGroupRecord(kept.CurrentMemberKey("g", "m"), value))
    assert group.members["m"].assigned == {(ID, 0): 3, (ID, 1): 3}


def test_a_state_from_a_later_coordinator_is_not_known() -> None:
    group = ConsumerGroup("g")
    group.apply(ConsumerGroupRecord(kept.MemberMetadataKey("g", "m"), kept.MemberMetadataValue()))
    group.apply(ConsumerGroupRecord(kept.CurrentMemberKey("g", "m"), kept.CurrentMemberValue(3, 2, 9)))
    assert group.members["m"].state is MemberState.UNKNOWN


def test_a_version_that_is_not_known_is_one_clear_error() -> None:
    with pytest.raises(CorruptRecordError, match="kind 3 has version 7"):
        decode_record(b"\0\3\0\1g", b"\0\7")


@given(st.sampled_from([record for record in RECORDS if record.value is not None]), st.data())
def test_a_damaged_record_is_read_or_is_one_clear_error(record: ConsumerGroupRecord, data: st.DataObject) -> None:
    key, value = encoded(record)
    damaged = bytearray(value or b"")
    for position in data.draw(st.lists(st.integers(0, len(damaged) - 1), max_size=3)):
        damaged[position] = data.draw(st.integers(0, 255))
    try:
        found = decode_record(key, bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    except CorruptRecordError:
        return
    assert found is not None
