"""Consumer groups through the admin client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla import Admin, Consumer, OffsetAndMetadata, Producer, TopicPartition
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.wire import Wire
from tests.client.conftest import NewTopicName, eventually

PATIENCE = 60.0


@pytest.fixture
def group_id() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def pair(new_topic: NewTopicName) -> str:
    """A topic of two partitions."""
    return new_topic(2)


@pytest.fixture
def member(servers: str, group_id: str, pair: str) -> Iterator[Consumer]:
    """A member that has both partitions."""
    settings: dict[str, Any] = {"group_instance_id": "i", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 50}
    with Consumer(bootstrap_servers=servers, group_id=group_id, client_id="app", **settings) as consumer:
        consumer.subscribe([pair])
        eventually(lambda: consumer.poll(0.05) or len(consumer.assignment()) == 2)
        yield consumer


def test_a_group_is_listed_with_its_state_and_type(admin: Admin, member: Consumer, group_id: str) -> None:
    (found,) = [each for each in admin.list_consumer_groups() if each.group_id == group_id]
    assert found == (group_id, "consumer", "Stable", "Classic")
    assert not found.is_simple_consumer_group


def test_groups_are_listed_by_state_and_type(admin: Admin, member: Consumer, group_id: str) -> None:
    def listed(**filters: Any) -> bool:
        return group_id in [each.group_id for each in admin.list_consumer_groups(**filters)]

    assert listed(states=["stable"], types=["classic"])
    assert not listed(states=["Empty"])
    assert not listed(types=["consumer"])


def test_groups_of_every_application_are_listed_and_described(servers: str, admin: Admin, group_id: str) -> None:
    with Wire(servers) as wire:
        protocols = [JoinGroupRequestProtocol("compatible", b"what Connect writes")]
        join = JoinGroupRequest(group_id, 10_000, 10_000, protocol_type="connect", protocols=protocols)
        joined = wire.ask(join, 3)
        assignments = [SyncGroupRequestAssignment(joined.member_id, b"no consumer's")]
        wire.ask(SyncGroupRequest(group_id, joined.generation_id, joined.member_id, assignments=assignments), 3)
        listed = [each for each in admin.list_groups(protocol_types=["connect"]) if each.group_id == group_id]
        assert listed == [(group_id, "connect", "Stable", "Classic")]
        assert not [each for each in admin.list_consumer_groups() if each.group_id == group_id]
        found = admin.describe_classic_groups([group_id])[group_id]
    assert (found.protocol_type, found.partition_assignor, found.state) == ("connect", "compatible", "Stable")
    assert [(each.member_id, each.assignment) for each in found.members] == [(joined.member_id, ())]


def test_a_group_is_described_with_members_and_what_they_have(
    admin: Admin, member: Consumer, group_id: str, pair: str
) -> None:
    found = admin.describe_consumer_groups([group_id])[group_id]
    assert (found.state, found.type, found.partition_assignor) == ("Stable", "Classic", "range")
    (only,) = found.members
    assert only.member_id == member.group_metadata().member_id
    assert (only.group_instance_id, only.client_id, only.host) == ("i", "app", "/127.0.0.1")
    assert only.assignment == (TopicPartition(pair, 0), TopicPartition(pair, 1))
    assert found.coordinator.port == int(admin.config.bootstrap_servers[0].rpartition(":")[2])


def test_a_missing_group_is_named(admin: Admin, group_id: str) -> None:
    with pytest.raises(KafkaError, match=f"there is no group '{group_id}'"):
        admin.describe_consumer_groups([group_id])
    with pytest.raises(KafkaError, match=f"there is no group '{group_id}'"):
        admin.delete_consumer_groups([group_id])
    assert admin.list_consumer_group_offsets(group_id) == {}


def test_offsets_are_set_listed_and_deleted(admin: Admin, group_id: str, pair: str) -> None:
    zero, one = TopicPartition(pair, 0), TopicPartition(pair, 1)
    admin.alter_consumer_group_offsets(group_id, {zero: 5, one: OffsetAndMetadata(7, "note")})
    assert admin.list_consumer_group_offsets(group_id) == {zero: (5, "", -1), one: (7, "note", -1)}
    assert admin.list_consumer_group_offsets(group_id, [one]) == {one: (7, "note", -1)}
    admin.delete_consumer_group_offsets(group_id, [zero])
    assert list(admin.list_consumer_group_offsets(group_id)) == [one]


def test_deleting_a_group_deletes_its_offsets(admin: Admin, group_id: str, topic: str) -> None:
    admin.alter_consumer_group_offsets(group_id, {TopicPartition(topic, 0): 5})
    admin.delete_consumer_groups([group_id])
    assert group_id not in [each.group_id for each in admin.list_consumer_groups()]
    assert admin.list_consumer_group_offsets(group_id) == {}


def test_a_group_with_members_cannot_be_deleted_or_altered(
    admin: Admin, member: Consumer, group_id: str, pair: str
) -> None:
    member.commit({TopicPartition(pair, 0): 3})
    tp = TopicPartition(pair, 0)
    attempts: list[tuple[Callable[[], None], int]] = [
        (lambda: admin.delete_consumer_groups([group_id]), ErrorCode.NON_EMPTY_GROUP),
        (lambda: admin.alter_consumer_group_offsets(group_id, {tp: 0}), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda: admin.delete_consumer_group_offsets(group_id, [tp]), ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    ]
    for attempt, code in attempts:
        with pytest.raises(KafkaError, match=f"group '{group_id}'.*stop") as caught:
            attempt()
        assert caught.value.code == code
    assert admin.list_consumer_group_offsets(group_id)[TopicPartition(pair, 0)].offset == 3


def test_offsets_of_a_missing_partition_are_rejected_with_its_name(admin: Admin, group_id: str) -> None:
    with pytest.raises(KafkaError, match="no-such-topic-0"):
        admin.alter_consumer_group_offsets(group_id, {TopicPartition("no-such-topic", 0): 1})


def test_one_string_is_rejected_as_a_list_of_groups(admin: Admin) -> None:
    with pytest.raises(TypeError, match="hand over a list"):
        admin.describe_consumer_groups("billing")


def test_several_errors_are_reported_together(admin: Admin) -> None:
    with pytest.raises(KafkaError) as caught:
        admin.describe_consumer_groups(["no-1", "no-2"])
    assert "no-1" in str(caught.value)
    assert "no-2" in str(caught.value)


def test_a_member_starts_at_the_offsets_that_were_set(servers: str, admin: Admin, group_id: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        for n in range(4):
            producer.send(topic, b"%d" % n)
    admin.alter_consumer_group_offsets(group_id, {TopicPartition(topic, 0): 2})
    with Consumer(bootstrap_servers=servers, group_id=group_id) as consumer:
        consumer.subscribe([topic])
        records: list[Any] = []
        while len(records) < 2:
            records += consumer.poll(PATIENCE)
    assert [record.value for record in records] == [b"2", b"3"]


def test_members_are_removed_by_name_or_all_at_once(admin: Admin, member: Consumer, group_id: str) -> None:
    with pytest.raises(KafkaError, match=f"group '{group_id}' has no member 'j'"):
        admin.remove_members_from_consumer_group(group_id, ["j"])
    admin.remove_members_from_consumer_group(group_id, ["i"])
    assert admin.describe_consumer_groups([group_id])[group_id].members == ()
    admin.remove_members_from_consumer_group(group_id)


def test_all_members_are_removed(admin: Admin, member: Consumer, group_id: str) -> None:
    admin.remove_members_from_consumer_group(group_id)
    assert admin.describe_consumer_groups([group_id])[group_id].members == ()
