"""The state of a group: replay of its records, its own settings, and the input of assignors."""

from __future__ import annotations

import inspect
from uuid import UUID

import pytest
from msgspec import Struct

from ottla.coordination.groups.consumer import events, group_spec, image, member, notes
from ottla.coordination.groups.consumer import records as kept
from ottla.coordination.groups.consumer.events import GroupConfigsChanged
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.group_spec import GroupSpec
from ottla.coordination.groups.consumer.image import TopicImage, TopicMetadata
from ottla.coordination.groups.consumer.member import MemberState
from ottla.coordination.groups.consumer.range_assignor import assign_ranges
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
from ottla.coordination.groups.events import TimerName
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordination.groups.consumer.story import Story

T, U, V = (UUID(int=number) for number in (1, 2, 3))
ROOMS = (events, group_spec, image, member, notes)
STRUCTS = [
    each
    for room in ROOMS
    for each in vars(room).values()
    if inspect.isclass(each) and issubclass(each, Struct) and each.__module__ == room.__name__
]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_the_state_passed_to_assignors_is_immutable(struct: type[Struct]) -> None:
    assert struct.__struct_config__.frozen


def test_states_have_kafkas_numbers() -> None:
    assert {state.name: state.value for state in MemberState} == {
        "STABLE": 0,
        "UNREVOKED_PARTITIONS": 1,
        "UNRELEASED_PARTITIONS": 2,
        "UNKNOWN": 127,
    }


def test_a_group_uses_its_own_session_timeout_and_heartbeat_interval() -> None:
    story = Story(consumer_session_timeout_ms=45_000)
    own = {"g": {"consumer_session_timeout_ms": 7_000}, "other": {"consumer_session_timeout_ms": 1}}
    story.send_event("", lambda ticket: GroupConfigsChanged(ticket, own))
    story.play("""
        topics t=1 →

        hello a t
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]
    """)
    session = TimerName("session", "g", "a")
    assert story.alarms[session] == 7.0
    story.send_event("", lambda ticket: GroupConfigsChanged(ticket, {}))
    story.play("alive a → a: epoch 1")
    assert story.alarms[session] == 45.0


def test_a_later_version_requires_a_member_id_from_the_client() -> None:
    story = Story()
    request = ConsumerGroupHeartbeatRequest(
        "g", "", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    story.heart("x", request, version=1)
    assert story.happened == ["x: INVALID_REQUEST MemberId can't be empty."]


def test_a_deleted_group_leaves_no_record() -> None:
    story = Story(records=True, offsets_retention_ms=1).play("""
        topics t=1 →

        hello a regex=t
        keep member a
        keep regex t t
        keep epoch 1
        keep target a t-0
        keep target epoch 1
        keep current a STABLE 1 t-0
        a: epoch 1 has t-0
        Stable 1/1: a@1[t-0]

        bye a
        keep no CurrentMember a
        keep no TargetMember a
        keep no MemberMetadata a
        keep no RegularExpression
        keep epoch 2
        a: epoch -1
        Empty 2/1

        expire
        keep no TargetEpoch
        keep no GroupEpoch
        broker: 0
        no group
    """)
    assert story.machine.consumers.groups == {}


def test_topic_records_of_kafka_4_0_are_deleted_with_the_next_epoch_or_with_the_group() -> None:
    of_kafka = ConsumerGroupRecord(kept.PartitionMetadataKey("g"), kept.PartitionMetadataValue())
    story = Story(records=True, offsets_retention_ms=1)
    story.do("topics", [], {"t": "1"})
    story.do("hello", ["a", "t"], {})
    story.do("bye", ["a"], {})
    for record in (of_kafka, of_kafka._replace(value=None), of_kafka):
        story.machine.replay(record)
    story.log.append((b"\0\4\0\1g", b"\0\0\0"))
    story.happened = []
    story.do("expire", [], {})
    assert story.happened[:3] == ["keep no TargetEpoch", "keep no PartitionMetadata", "keep no GroupEpoch"]


def test_tombstones_of_unknown_entries_change_nothing() -> None:
    story = Story()
    for key in (kept.GroupEpochKey("g"), kept.MemberMetadataKey("g", "m"), kept.TargetEpochKey("g")):
        story.machine.replay(ConsumerGroupRecord(key, None))
    assert story.machine.consumers.groups == {}
    group = ConsumerGroup("g")
    group.apply(ConsumerGroupRecord(kept.CurrentMemberKey("g", "m"), kept.CurrentMemberValue(member_epoch=3)))
    assert (group.members, group.owners) == ({}, {})


def test_a_removed_target_has_no_epoch() -> None:
    group = ConsumerGroup("g")
    group.apply(ConsumerGroupRecord(kept.TargetEpochKey("g"), kept.TargetEpochValue(7)))
    assert group.assignment_epoch == 7
    group.apply(ConsumerGroupRecord(kept.TargetEpochKey("g"), None))
    assert group.assignment_epoch == 0


def test_the_hash_of_no_topics_is_0_and_each_topic_change_alters_it() -> None:
    names = frozenset({"t", "u"})
    images = [
        TopicImage(),
        TopicImage.of(1, [TopicMetadata("t", T, 1)]),
        TopicImage.of(2, [TopicMetadata("t", T, 2)]),
        TopicImage.of(3, [TopicMetadata("t", V, 2)]),
        TopicImage.of(4, [TopicMetadata("t", V, 2), TopicMetadata("u", U, 1)]),
    ]
    digests = [each.digest(names) for each in images]
    assert digests[0] == 0
    assert len(set(digests)) == len(digests)
    assert TopicImage.of(9, [TopicMetadata("x", T, 1)]).digest(names) == 0


def test_a_migrated_member_keeps_its_existing_and_subscribed_partitions() -> None:
    before = {"a": frozenset({(T, 1), (T, 0), (T, 2), (T, 3), (U, 0), (V, 0)})}
    spec = GroupSpec({T: 2, U: 1}, {"a": frozenset({T, V}), "b": frozenset({U})}, before)
    assert spec.kept("a") == [(T, 0), (T, 1)]
    assert spec.kept("b") == []


def test_the_range_assignor_keeps_existing_assignments() -> None:
    everything = frozenset({T, U})
    before = {"a": frozenset({(T, 3), (U, 1)}), "b": frozenset({(T, 2), (U, 0)})}
    spec = GroupSpec({T: 4, U: 2}, {"a": everything, "b": everything}, before)
    given = assign_ranges(spec)
    assert {(T, 3), (U, 1)} <= given["a"]
    assert {(T, 2), (U, 0)} <= given["b"]
    assert {len(places) for places in given.values()} == {3}


def test_the_range_assignor_leaves_an_unsubscribed_topic_unassigned() -> None:
    assert assign_ranges(GroupSpec({T: 2}, {"a": frozenset()})) == {"a": set()}
