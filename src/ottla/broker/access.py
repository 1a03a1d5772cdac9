"""Who may do what, as handlers ask it of those who call.

Without an authorizer `BrokerNode.access` is None, and everybody may do everything. What is asked is what a row of
`permissions.py` says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.machines.runtime import Runtime
from ottla.broker.requests.call import Call
from ottla.broker.requests.connection import Connection
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.access.authorizer import Authorizer
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from ottla.broker.audit_log import AuditLog

log = logging.getLogger(__name__)
READ, WRITE, TOPIC = int(Operation.READ), int(Operation.WRITE), int(ResourceType.TOPIC)
NO_AUTHORIZER = (
    ErrorCode.SECURITY_DISABLED,
    "This broker has no authorizer: everybody may do everything, and no rules are kept.",
)
"""What is answered to who asks for rules, or would change them."""


class Access:
    """The authorizer over the rules in the cluster's metadata, and the log of what it said."""

    def __init__(
        self,
        cluster: Runtime[ClusterMetadata],
        super_users: frozenset[str],
        *,
        allow_if_no_acl: bool,
        audit: AuditLog | None = None,
    ) -> None:
        self._cluster = cluster
        self._super_users = super_users
        self._allow_if_no_acl = allow_if_no_acl
        self._audit = audit
        self._known = self._over(cluster.machine.acls)

    @property
    def acls(self) -> AclStore:
        return self._cluster.machine.acls

    def ask(self, event: Callable[[int], Any]) -> Any:
        """The reply to a wish for rules; KafkaError where they cannot be written."""
        return self._cluster.ask(event)

    def allows(self, call: Call, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether who calls may do that, as they want to."""
        connection = call.connection
        allowed = self._authorizer.allows(connection.principal, connection.peer[0], operation, kind, name)
        if self._audit is not None:
            self._audit.note(call, operation, kind, name, allowed=allowed)
        return allowed

    def lets_write(self, connection: Connection, topic: str) -> bool:
        """Whether who is there may write to a topic; not where an audit has to hear of the question, which `allows` tells."""
        return self._audit is None and self._authorizer.allows(
            connection.principal, connection.peer[0], WRITE, TOPIC, topic
        )

    def lets_read(self, connection: Connection, topic: str) -> bool:
        """Whether who is there may read a topic, as far as no audit has to hear of that."""
        return self._audit is None and self._authorizer.allows(
            connection.principal, connection.peer[0], READ, TOPIC, topic
        )

    def allows_any(self, call: Call, operation: Operation, kind: ResourceType) -> bool:
        """Whether who calls may do that to something of a kind."""
        connection = call.connection
        return self._authorizer.allows_any(connection.principal, connection.peer[0], operation, kind)

    def sees(self, call: Call, kind: ResourceType, name: str) -> bool:
        """Whether who calls may know of something that they have not named; nothing that an audit is about."""
        return self.shows(call, Operation.DESCRIBE, kind, name)

    def shows(self, call: Call, operation: Operation, kind: ResourceType, name: str) -> bool:
        """The same, where it takes another operation to know of it."""
        connection = call.connection
        return self._authorizer.allows(connection.principal, connection.peer[0], operation, kind, name)

    def sees_as_broker(self, call: Call) -> bool:
        """Whether who calls is another broker, to which nothing is hidden; no matter for an audit where it is none."""
        principal, host = call.connection.principal, call.connection.peer[0]
        return self._authorizer.allows(principal, host, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)

    def operations(self, call: Call, kind: ResourceType, name: str) -> int:
        """All that who calls may do to something, a bit for each."""
        connection = call.connection
        return self._authorizer.operations(connection.principal, connection.peer[0], kind, name)

    def close(self) -> None:
        if self._audit is not None:
            self._audit.close()

    @property
    def _authorizer(self) -> Authorizer:
        # After a failed write the metadata is another machine with other rules.
        acls = self._cluster.machine.acls
        if self._known.acls is not acls:
            self._known = self._over(acls)
        return self._known

    def _over(self, acls: AclStore) -> Authorizer:
        return Authorizer(acls, self._super_users, allow_if_no_acl=self._allow_if_no_acl)


class Guarded(Protocol):
    """What has an authorizer, or none."""

    @property
    def access(self) -> Access | None: ...


def denied(node: Guarded, call: Call, operation: Operation, kind: ResourceType, name: str) -> bool:
    """Whether who calls may not do that."""
    access = node.access
    return access is not None and not access.allows(call, operation, kind, name)


def may_create(node: Guarded, call: Call, topic: str) -> bool:
    """Whether who calls may make a topic: any at all, or this one."""
    access = node.access
    return (
        access is None
        or access.allows(call, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        or access.allows(call, Operation.CREATE, ResourceType.TOPIC, topic)
    )


def access_over(cluster: Runtime[ClusterMetadata], config: BrokerConfig) -> Access | None:
    """What asks the authorizer, where there is one."""
    if not config.authorizer_class_name:
        if config.super_principals:
            log.warning(
                "super.users is set and authorizer.class.name is not, so that everybody may do everything: "
                "set authorizer.class.name = standard as well"
            )
        return None
    audit = None
    if config.audit_log:
        from ottla.broker.audit_log import AuditLog  # pickle and sockets for logs come along

        audit = AuditLog(config.audit_log, config.audit_log_max_bytes, denied_only=config.audit_log_denied_only)
    return Access(cluster, config.super_principals, allow_if_no_acl=config.allow_everyone_if_no_acl_found, audit=audit)
