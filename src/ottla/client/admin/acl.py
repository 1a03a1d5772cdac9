"""Access control lists as an admin sees them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.protocol.acl import Operation, PatternType, PermissionType, ResourceType
from ottla.protocol.messages.metadata import NO_OPERATIONS


def members_by_name(kind: type[IntEnum]) -> Mapping[str, int]:
    """Return the members by the names that Kafka's tools use, such as `transactional-id`, without the unknown member."""
    return {each.name.lower().replace("_", "-"): each.value for each in kind if each}


RESOURCE_TYPES = members_by_name(ResourceType)
PATTERN_TYPES = members_by_name(PatternType)
OPERATIONS = members_by_name(Operation)
PERMISSIONS = members_by_name(PermissionType)


def operations_in(bits: int) -> frozenset[str] | None:
    """Return the names of the operations in a bit field (KIP-430); None if the broker sent none."""
    if bits == NO_OPERATIONS:
        return None
    return frozenset(name for name, operation in OPERATIONS.items() if bits >> operation & 1)


class AclBinding(NamedTuple):
    """An access rule: `AclBinding("topic", "flights", "User:alice", "read")`."""

    resource_type: str
    """topic, group, cluster, transactional-id, delegation-token or user."""
    name: str
    """The name or name prefix of the resource; `*` for every name, `kafka-cluster` for the cluster."""
    principal: str
    """The user the rule applies to; `User:*` for every user."""
    operation: str
    """read, write, create, delete, alter, describe, all …"""
    permission: str = "allow"
    """allow or deny. A deny rule takes precedence over every allow rule."""
    pattern_type: str = "literal"
    """literal or prefixed."""
    host: str = "*"
    """The client address the rule applies to, a range of them such as `10.0.0.0/8`, or `*` for every address."""

    def __str__(self) -> str:
        """Describe the rule in words."""
        return f"{self.permission} {self.principal} {self.operation} of {self.resource_type} {self.name!r}"


class AclBindingFilter(NamedTuple):
    """Matches rules that have all of these values; None and "any" match everything."""

    resource_type: str = "any"
    name: str | None = None
    principal: str | None = None
    operation: str = "any"
    permission: str = "any"
    pattern_type: str = "any"
    """`match` finds every rule that applies to the name: literal, prefixed and `*`."""
    host: str | None = None
