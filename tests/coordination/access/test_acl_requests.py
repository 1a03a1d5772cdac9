"""Rules that are asked for and let go, in the cluster's metadata."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.access.acl import Acl, AclFilter
from ottla.coordination.cluster.events import AclsRequested, AclsUnwanted
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode

READ_T = Acl(2, "t", 3, "User:a", "*", 3, 3)
WRITE_T = READ_T._replace(operation=4)


def told(machine: ClusterMetadata, event: Any) -> tuple[Any, int]:
    """The reply and how many records were written."""
    decision = machine.decide(event, 0.0)
    for record in decision.records:
        machine.replay(record)
    machine.check()
    return decision.replies[0].message, len(decision.records)


def create(machine: ClusterMetadata, *acls: Acl) -> tuple[Any, int]:
    return told(machine, AclsRequested(1, acls, [UUID(int=len(machine.acls.by_id) + n) for n, _ in enumerate(acls, 1)]))


def test_a_rule_is_written_once_however_often_it_is_asked_for() -> None:
    machine = ClusterMetadata()
    assert create(machine, READ_T, READ_T, WRITE_T) == ([None, None, None], 2)
    assert create(machine, READ_T) == ([None], 0)


def test_a_filter_takes_all_that_it_means_and_two_may_mean_the_same() -> None:
    machine = ClusterMetadata()
    create(machine, READ_T, WRITE_T)
    every, reading = AclFilter(), AclFilter(operation=3)
    assert told(machine, AclsUnwanted(1, [reading, every])) == ([[READ_T], [READ_T, WRITE_T]], 2)
    assert told(machine, AclsUnwanted(1, [every])) == ([[]], 0)


def test_a_snapshot_has_the_rules() -> None:
    machine, again = ClusterMetadata(), ClusterMetadata()
    create(machine, READ_T, WRITE_T)
    for record in machine.records():
        again.replay(record)
    assert again.acls.by_id == machine.acls.by_id


def test_the_end_of_a_rule_that_is_not_there_is_passed_over() -> None:
    machine = ClusterMetadata()
    machine.replay(RemoveAccessControlEntryRecord(UUID(int=9)))
    machine.replay(AccessControlEntryRecord(UUID(int=1), *READ_T))
    machine.replay(AccessControlEntryRecord(UUID(int=2), *READ_T))
    machine.replay(RemoveAccessControlEntryRecord(UUID(int=1)))
    machine.check()
    assert READ_T in machine.acls


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (READ_T._replace(resource_type=1), "the resource type ANY"),
        (READ_T._replace(resource_type=99), "the resource type 99"),
        (READ_T._replace(pattern_type=2), "the pattern type MATCH"),
        (READ_T._replace(pattern_type=0), "the pattern type UNKNOWN"),
        (READ_T._replace(operation=1), "the operation ANY"),
        (READ_T._replace(permission=1), "the permission ANY"),
        (READ_T._replace(name=""), "the name is empty"),
        (READ_T._replace(resource_type=4), "the cluster is called 'kafka-cluster'"),
        (READ_T._replace(principal="alice"), "'alice' is no principal"),
    ],
)
def test_what_is_no_rule_is_refused_in_a_sentence_and_the_others_are_kept(rule: Acl, words: str) -> None:
    machine = ClusterMetadata()
    (refusal, kept), count = create(machine, rule, WRITE_T)
    assert isinstance(refusal, Refusal)
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert words in str(refusal)
    assert (kept, count) == (None, 1)


@pytest.mark.parametrize("wanted", [AclFilter(resource_type=0), AclFilter(operation=77), AclFilter(pattern_type=0)])
def test_a_filter_that_means_nothing_is_refused(wanted: AclFilter) -> None:
    machine = ClusterMetadata()
    create(machine, READ_T)
    (refusal,), count = told(machine, AclsUnwanted(1, [wanted]))
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert count == 0
