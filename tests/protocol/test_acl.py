"""The names and numbers of ACLs, compared with those of kafka-python."""

from __future__ import annotations

from enum import IntEnum

import pytest
from kafka import admin

from ottla.protocol.acl import Operation, PatternType, PermissionType, ResourceType

YOUNGER = {"TWO_PHASE_COMMIT": 15}
"""The ones unknown to kafka-python, from KIP-939."""


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ResourceType, admin.ResourceType),
        (PatternType, admin.ACLResourcePatternType),
        (Operation, admin.ACLOperation),
        (PermissionType, admin.ACLPermissionType),
    ],
)
def test_names_and_numbers_are_those_of_another_client(ours: type[IntEnum], theirs: type[IntEnum]) -> None:
    known = {each.name: each.value for each in theirs}
    assert {each.name: each.value for each in ours} == known | (YOUNGER if ours is Operation else {})
