"""Which copies a broker has, and what a change of a topic means for it."""

from __future__ import annotations

from uuid import UUID

import pytest
from msgspec.structs import replace

from ottla.coordination.cluster.hosted_copies import changes, copies_of
from ottla.coordination.cluster.topic import PartitionState, Topic


def topic(*replicas: tuple[int, ...]) -> Topic:
    states = (PartitionState(index, each[0], 0, each, each) for index, each in enumerate(replicas))
    return Topic("t", UUID(int=9), tuple(states))


def test_a_new_topic_brings_what_is_assigned_here() -> None:
    found = changes(None, topic((1, 7), (1, 2), (7,)), 7)
    assert ([state.index for state in found.taken], found.given_up) == ([0, 2], [])


def test_a_deleted_topic_takes_what_was_here() -> None:
    assert changes(topic((1, 7), (1, 2)), None, 7) == ([], [0])
    assert copies_of(None, 7) == {}


def test_only_what_has_changed_is_taken_up_again() -> None:
    before = topic((1, 7), (7, 1))
    led = replace(before.partitions[1], leader=1, leader_epoch=1)
    assert changes(before, replace(before, partitions=(before.partitions[0], led)), 7) == ([led], [])


def test_reassigned_partitions_come_and_go() -> None:
    found = changes(topic((1, 7), (1, 2)), topic((1, 2), (1, 7)), 7)
    assert ([state.index for state in found.taken], found.given_up) == ([1], [0])


def test_other_settings_concern_every_copy() -> None:
    before = topic((1, 7), (1, 2))
    found = changes(before, replace(before, configs={"min.insync.replicas": "2"}), 7)
    assert [state.index for state in found.taken] == [0]


def test_a_topic_made_again_is_another_one() -> None:
    with pytest.raises(AssertionError):
        changes(topic((7,)), replace(topic((7,)), topic_id=UUID(int=10)), 7)
