"""Groups of KIP-848 through the admin client, with librdkafka's consumer as their member."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import confluent_kafka as ck
import pytest

from ottla import Admin, TopicPartition
from tests.client.conftest import NewTopicName, eventually


@pytest.fixture
def pair(new_topic: NewTopicName) -> str:
    """A topic of two partitions."""
    return new_topic(2)


@pytest.fixture
def group_id(servers: str, pair: str) -> Iterator[str]:
    """A group with one member, which has both partitions."""
    name = f"group-{uuid.uuid4().hex[:8]}"
    consumer = ck.Consumer({"bootstrap.servers": servers, "group.id": name, "group.protocol": "consumer"})
    consumer.subscribe([pair])
    eventually(lambda: consumer.poll(0.05) or len(consumer.assignment()) == 2)
    yield name
    consumer.close()


def test_a_group_is_listed_and_described_with_its_epochs(admin: Admin, group_id: str, pair: str) -> None:
    assert (group_id, "consumer", "Stable", "Consumer") in admin.list_consumer_groups(types=["consumer"])
    found = admin.describe_consumer_groups([group_id])[group_id]
    assert (found.type, found.state, found.partition_assignor) == ("Consumer", "Stable", "uniform")
    (member,) = found.members
    assert member.assignment == member.target_assignment == (TopicPartition(pair, 0), TopicPartition(pair, 1))
    assert member.member_epoch == found.group_epoch == found.target_assignment_epoch
    assert member.client_id == "rdkafka"


def test_groups_of_both_protocols_are_described_in_one_call(admin: Admin, group_id: str, pair: str) -> None:
    admin.alter_consumer_group_offsets(f"{group_id}-classic", {TopicPartition(pair, 0): 0})
    found = admin.describe_consumer_groups([f"{group_id}-classic", group_id])
    assert [each.type for each in found.values()] == ["Classic", "Consumer"]
