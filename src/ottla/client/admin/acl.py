"""Rules of who may do what, as an admin sees them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.protocol.acl import Operation, PatternType, PermissionType, ResourceType
from ottla.protocol.messages.metadata import NO_OPERATIONS


def by_name(kind: type[IntEnum]) -> Mapping[str, int]:
    """What Kafka's tools call its members, the unknown one left out: `transactional-id`."""
    return {each.name.lower().replace("_", "-"): each.value for each in kind if each}


RESOURCE_TYPES = by_name(ResourceType)
PATTERN_TYPES = by_name(PatternType)
OPERATIONS = by_name(Operation)
PERMISSIONS = by_name(PermissionType)


def operations_in(bits: int) -> frozenset[str] | None:
    """The names of operations that an answer has a bit each for (KIP-430); None where the broker told none."""
    if bits == NO_OPERATIONS:
        return None
    return frozenset(name for name, operation in OPERATIONS.items() if bits >> operation & 1)


class AclBinding(NamedTuple):
    """A rule: `AclBinding("topic", "flights", "User:alice", "read")`."""

    resource_type: str
    """topic, group, cluster, transactional-id, delegation-token or user."""
    name: str
    """Of the resource, or what its name begins with; `*` for every name, `kafka-cluster` for the cluster."""
    principal: str
    """Whom it is about; `User:*` is everybody."""
    operation: str
    """read, write, create, delete, alter, describe, all …"""
    permission: str = "allow"
    """allow or deny; what is denied is denied whatever else is allowed."""
    pattern_type: str = "literal"
    """literal or prefixed."""
    host: str = "*"
    """The address from which; `*` is everywhere."""

    def __str__(self) -> str:
        """As in a sentence about it."""
        return f"{self.permission} {self.principal} {self.operation} of {self.resource_type} {self.name!r}"


class AclBindingFilter(NamedTuple):
    """Rules that have all of this; None and "any" stand for everything."""

    resource_type: str = "any"
    name: str | None = None
    principal: str | None = None
    operation: str = "any"
    permission: str = "any"
    pattern_type: str = "any"
    """`match` finds every rule that counts for the name: literal, prefixed and `*`."""
    host: str | None = None
