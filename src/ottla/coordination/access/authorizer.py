"""The authorization of operations, with the semantics of Kafka's StandardAuthorizer.

    super user → allowed;  a DENY matches → denied;  an ALLOW matches → allowed
    no entry for the resource at all → the default;  else denied

ALLOW of READ, WRITE, DELETE or ALTER implies DESCRIBE, ALLOW of ALTER_CONFIGS implies DESCRIBE_CONFIGS. DENY applies only to the operation
that it names.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.access.acl import Acl
from ottla.coordination.access.acl_store import AclStore
from ottla.protocol.acl import WILDCARD, Operation, PatternType, PermissionType, ResourceType

IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""The operations that imply another one."""
ALLOWING = {operation: frozenset((Operation.ALL, operation, *IMPLIED_BY.get(operation, ()))) for operation in Operation}
DENYING = {operation: frozenset((Operation.ALL, operation)) for operation in Operation}
ANY_NAME = "hardcode"
"""The resource name with which Kafka checks whether an operation is allowed by the default alone."""
MOST_VERDICTS = 10_000
"""The maximum number of cached results: requests with invented names must not fill the memory."""
OPERATIONS = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
}
"""The operations on each kind of resource, as clients receive them."""


class Authorizer:
    """Rules with their defaults; knows every verdict of late by heart until a rule changes."""

    def __init__(self, acls: AclStore, super_users: Iterable[str] = (), *, allow_if_no_acl: bool = False) -> None:
        self.acls = acls
        self.super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._verdicts: dict[tuple[str, str, int, int, str | None], bool] = {}
        self._version = acls.version

    def is_allowed(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Return True if the principal may do the operation on the resource from this host."""
        question = principal, host, operation, resource_type, name
        verdict = self._verdicts.get(question) if self._version == self.acls.version else None
        return self._keep(question, self._decide(*question)) if verdict is None else verdict

    def is_any_allowed(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return True if a resource name of that kind exists on which the principal may do the operation; nothing is implied here (KIP-679)."""
        question = principal, host, operation, resource_type, None
        verdict = self._verdicts.get(question) if self._version == self.acls.version else None
        if verdict is None:
            named = principal, host, operation, resource_type, ANY_NAME
            verdict = self._keep(question, self._decide(*named) or self._decide_any(*named[:4]))
        return verdict

    def operations(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """Return all operations that the principal may do on a resource, as a bit field."""
        return sum(
            1 << operation
            for operation in OPERATIONS[ResourceType(resource_type)]
            if self.is_allowed(principal, host, operation, resource_type, name)
        )

    def _keep(self, question: tuple[str, str, int, int, str | None], verdict: bool) -> bool:
        if self._version != self.acls.version or len(self._verdicts) >= MOST_VERDICTS:
            self._verdicts.clear()
            self._version = self.acls.version
        self._verdicts[question] = verdict
        return verdict

    def _decide(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        if principal in self.super_users:
            return True
        known = allowed = False
        for acl in self.acls.find_literal(resource_type, name):
            known = True
            if not acl.is_for(principal, host):
                continue
            if acl.permission == PermissionType.DENY:
                if acl.operation in DENYING[Operation(operation)]:
                    return False
            elif acl.operation in ALLOWING[Operation(operation)]:
                allowed = True
        return allowed if known else self._allow_if_no_acl

    def _decide_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        fitting = [
            acl
            for acl in self.acls.of_type(resource_type)
            if acl.is_for(principal, host) and acl.operation in DENYING[Operation(operation)]
        ]
        denials = [acl for acl in fitting if acl.permission == PermissionType.DENY]
        return any(
            acl.permission == PermissionType.ALLOW and not any(is_stronger(other, acl) for other in denials)
            for acl in fitting
        )


def is_stronger(denial: Acl, allowance: Acl) -> bool:
    """Return True if a denial covers everything that an allowance allows."""
    if is_everything(denial):
        return True
    if is_everything(allowance):
        return False
    if denial.pattern_type == PatternType.PREFIXED:
        return allowance.name.startswith(denial.name)
    return allowance.pattern_type == PatternType.LITERAL and denial.name == allowance.name


def is_everything(acl: Acl) -> bool:
    """Return True if an entry applies to every name."""
    return acl.pattern_type == PatternType.LITERAL and acl.name == WILDCARD
