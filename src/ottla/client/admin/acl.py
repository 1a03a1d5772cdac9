"""Rules of who may do what, as an admin sees them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

RESOURCE_TYPES: Mapping[str, int] = {
    "any": 1,
    "topic": 2,
    "group": 3,
    "cluster": 4,
    "transactional-id": 5,
    "delegation-token": 6,
    "user": 7,
}
PATTERN_TYPES: Mapping[str, int] = {"any": 1, "match": 2, "literal": 3, "prefixed": 4}
OPERATIONS: Mapping[str, int] = {
    "any": 1,
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster-action": 9,
    "describe-configs": 10,
    "alter-configs": 11,
    "idempotent-write": 12,
    "create-tokens": 13,
    "describe-tokens": 14,
    "two-phase-commit": 15,
}
PERMISSIONS: Mapping[str, int] = {"any": 1, "deny": 2, "allow": 3}
CLUSTER = "kafka-cluster"
"""The name of the one resource of the type cluster."""


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
