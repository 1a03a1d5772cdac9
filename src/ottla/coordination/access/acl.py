"""One rule: who may, or may not, do something to a resource; and filters over rules."""

from __future__ import annotations

from typing import NamedTuple

from ottla.protocol.acl import WILDCARD, Operation, PatternType, PermissionType, ResourceType

EVERYBODY = "User:*"


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
