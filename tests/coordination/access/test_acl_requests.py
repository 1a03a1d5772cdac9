"""Creation and deletion of ACLs in the metadata of the cluster."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.access.acl import Acl, AclFilter
from ottla.coordination.cluster.events import AclCreationRequested, AclDeletionRequested
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller import client_changes
from ottla.coordination.controller.config import ControllerConfig
from ottla.errors import ErrorCode

READ_T = Acl(2, "t", 3, "User:a", "*", 3, 3)
WRITE_T = READ_T._replace(operation=4)


def reply_of(machine: ClusterMetadata, event: Any) -> tuple[Any, int]:
    """The reply and how many records were written."""
    decision = client_changes.decide(machine, event, ControllerConfig("c"))
    for record in decision.records:
        machine.replay(record)
    machine.check()
    return decision.replies[0].message, len(decision.records)


def create(machine: ClusterMetadata, *acls: Acl) -> tuple[Any, int]:
    return reply_of(
        machine, AclCreationRequested(1, acls, [UUID(int=len(machine.acls.by_id) + n) for n, _ in enumerate(acls, 1)])
    )


def test_a_rule_is_written_once_even_if_requested_repeatedly() -> None:
    machine = ClusterMetadata()
    assert create(machine, READ_T, READ_T, WRITE_T) == ([None, None, None], 2)
    assert create(machine, READ_T) == ([None], 0)


def metadata_at(level: int) -> ClusterMetadata:
    """Return empty metadata at a level of metadata.version."""
    machine = ClusterMetadata()
    machine.replay(FeatureLevelRecord("metadata.version", level))
    return machine


@pytest.mark.parametrize("host", ["*", "10.0.0.7", "10.0.0.0/8", "2001:db8::/32"])
def test_a_rule_is_for_an_address_or_a_range_of_addresses(host: str) -> None:
    assert create(metadata_at(32), READ_T._replace(host=host)) == ([None], 1)


def test_a_range_of_addresses_is_refused_where_a_broker_may_not_know_ranges() -> None:
    (refusal, kept), written = create(metadata_at(31), READ_T._replace(host="10.0.0.0/8"), WRITE_T)
    assert refusal.code == ErrorCode.UNSUPPORTED_VERSION
    assert "ranges of addresses need metadata.version 32, and the cluster is at 31: raise it first" in str(refusal)
    assert (kept, written) == (None, 1)


@pytest.mark.parametrize("host", ["10.0.0.0/33", "10.0.0/8", "everywhere/8", "/", "10.0.0.0/255.0.0.0", "::/129", ""])
def test_a_malformed_range_of_addresses_is_refused(host: str) -> None:
    (refusal,), written = create(metadata_at(33), READ_T._replace(host=host))
    assert written == 0
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert str(refusal) == f"invalid host {host!r} of a rule: expected an address, a range such as 10.0.0.0/8, or *"


def test_a_filter_deletes_every_match_and_two_filters_may_overlap() -> None:
    machine = ClusterMetadata()
    create(machine, READ_T, WRITE_T)
    every, reading = AclFilter(), AclFilter(operation=3)
    assert reply_of(machine, AclDeletionRequested(1, [reading, every])) == ([[READ_T], [READ_T, WRITE_T]], 2)
    assert reply_of(machine, AclDeletionRequested(1, [every])) == ([[]], 0)


def test_a_snapshot_has_the_rules() -> None:
    machine, again = ClusterMetadata(), ClusterMetadata()
    create(machine, READ_T, WRITE_T)
    for record in machine.records():
        again.replay(record)
    assert again.acls.by_id == machine.acls.by_id


def test_the_removal_of_an_unknown_rule_is_ignored() -> None:
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
        (READ_T._replace(principal="alice"), "invalid principal 'alice'"),
    ],
)
def test_an_invalid_rule_is_rejected_with_a_message_and_the_others_are_kept(rule: Acl, words: str) -> None:
    machine = ClusterMetadata()
    (refusal, kept), count = create(machine, rule, WRITE_T)
    assert isinstance(refusal, Refusal)
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert words in str(refusal)
    assert (kept, count) == (None, 1)


@pytest.mark.parametrize("wanted", [AclFilter(resource_type=0), AclFilter(operation=77), AclFilter(pattern_type=0)])
def test_an_invalid_filter_is_rejected(wanted: AclFilter) -> None:
    machine = ClusterMetadata()
    create(machine, READ_T)
    (refusal,), count = reply_of(machine, AclDeletionRequested(1, [wanted]))
    assert refusal.code == ErrorCode.INVALID_REQUEST
    assert count == 0
