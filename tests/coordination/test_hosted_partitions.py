"""The replicas of a broker, and the effect of topic changes on them."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from ottla.coordination.cluster.hosted_copies import compare_hosted_partitions, list_hosted_partitions
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState


def topic(*replicas: tuple[int, ...]) -> ClusterTopic:
    states = (PartitionState(index, each[0], 0, each, each) for index, each in enumerate(replicas))
    return ClusterTopic("t", UUID(int=9), tuple(states))


def test_a_new_topic_adds_its_local_replicas() -> None:
    found = compare_hosted_partitions(None, topic((1, 7), (1, 2), (7,)), 7)
    assert ([state.index for state in found.hosted], found.removed) == ([0, 2], [])


def test_a_deleted_topic_removes_its_local_replicas() -> None:
    assert compare_hosted_partitions(topic((1, 7), (1, 2)), None, 7) == ([], [0])
    assert list_hosted_partitions(None, 7) == {}


def test_only_changed_partitions_are_updated() -> None:
    before = topic((1, 7), (7, 1))
    led = replace(before.partitions[1], leader=1, leader_epoch=1)
    assert compare_hosted_partitions(before, replace(before, partitions=(before.partitions[0], led)), 7) == ([led], [])


def test_reassigned_partitions_are_added_and_removed() -> None:
    found = compare_hosted_partitions(topic((1, 7), (1, 2)), topic((1, 2), (1, 7)), 7)
    assert ([state.index for state in found.hosted], found.removed) == ([1], [0])


def test_changed_settings_affect_every_replica() -> None:
    before = topic((1, 7), (1, 2))
    found = compare_hosted_partitions(before, replace(before, configs={"min.insync.replicas": "2"}), 7)
    assert [state.index for state in found.hosted] == [0]


def test_a_recreated_topic_is_another_topic() -> None:
    with pytest.raises(AssertionError):
        compare_hosted_partitions(topic((7,)), replace(topic((7,)), topic_id=UUID(int=10)), 7)
