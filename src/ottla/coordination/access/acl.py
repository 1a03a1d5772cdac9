"""One rule: who may, or may not, do something to a resource; and filters over rules. Numbers are Kafka's."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
"""Every host, or every name of a kind of resource where it is a literal name."""
EVERYBODY = "User:*"
CLUSTER_NAME = "kafka-cluster"
"""What the one resource of the kind CLUSTER is called."""


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name in a rule stands for names of resources; ANY and MATCH are for filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What somebody wants to do."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """A rule; two that say the same are the same."""

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def covers(self, resource_type: int, name: str) -> bool:
        """Whether the rule is about that resource."""
        if self.resource_type != resource_type:
            return False
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def is_for(self, principal: str, host: str) -> bool:
        return self.principal in (principal, EVERYBODY) and self.host in (host, WILDCARD)


class AclFilter(NamedTuple):
    """Which rules are meant; None and ANY stand for all, MATCH for every pattern that covers the name."""

    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = PermissionType.ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (PermissionType.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type == PatternType.MATCH:
            return acl.covers(acl.resource_type, self.name)
        return self.name == acl.name


def is_principal(text: str) -> bool:
    """Whether it has a type and a name, as `User:alice`; a name may have colons itself."""
    kind, colon, name = text.partition(":")
    return bool(kind and colon and name)
