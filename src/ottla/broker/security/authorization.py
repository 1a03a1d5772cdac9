"""Authorization of requests, as the APIs ask for it.

Without an authorizer `BrokerNode.access` is None, and every client is authorized for everything. The operation that an
API requires is a row of `apis/permissions.py`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from ottla.broker.network_server.call import Call
from ottla.broker.network_server.connection import Connection
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.access.authorizer import Authorizer
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from ottla.broker.security.audit_log import AuditLog
    from ottla.broker.security.metadata_source import MetadataSource

log = logging.getLogger(__name__)
READ, WRITE, TOPIC = int(Operation.READ), int(Operation.WRITE), int(ResourceType.TOPIC)
NO_AUTHORIZER = (
    ErrorCode.SECURITY_DISABLED,
    "This broker has no authorizer: every operation is allowed, and ACLs are not stored. Set authorizer.class.name.",
)
"""The error of requests that list or change ACLs without an authorizer."""


class Access:
    """The authorizer over the ACLs in the cluster's metadata, with the audit log."""

    def __init__(
        self,
        cluster: MetadataSource,
        super_users: frozenset[str],
        *,
        allow_if_no_acl: bool,
        audit: AuditLog | None = None,
    ) -> None:
        self._cluster = cluster
        self._super_users = super_users
        self._allow_if_no_acl = allow_if_no_acl
        self._audit = audit
        self._known = self._make_authorizer(cluster.machine.acls)

    @property
    def acls(self) -> AclStore:
        return self._cluster.machine.acls

    def allows(self, call: Call, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return True if the caller is authorized. The decision is logged in the audit log."""
        connection = call.connection
        allowed = self._authorizer.is_allowed(connection.principal, connection.peer[0], operation, kind, name)
        if self._audit is not None:
            who = connection.principal, connection.peer[0], call.header.client_id, call.header.api_key
            self._audit.record_decision(*who, operation, kind, name, allowed=allowed)
        return allowed

    def lets_write(self, connection: Connection, topic: str) -> bool:
        """Return True if the connection may write to a topic and there is no audit log.

        Otherwise use `allows`, which logs the decision.
        """
        return self._audit is None and self._authorizer.is_allowed(
            connection.principal, connection.peer[0], WRITE, TOPIC, topic
        )

    def lets_read(self, connection: Connection, topic: str) -> bool:
        """Return True if the connection may read a topic and there is no audit log.

        Otherwise use `allows`, which logs the decision.
        """
        return self._audit is None and self._authorizer.is_allowed(
            connection.principal, connection.peer[0], READ, TOPIC, topic
        )

    def allows_any(self, call: Call, operation: Operation, kind: ResourceType) -> bool:
        """Return True if the caller is authorized for any resource of a type."""
        connection = call.connection
        return self._authorizer.is_any_allowed(connection.principal, connection.peer[0], operation, kind)

    def can_describe(self, call: Call, kind: ResourceType, name: str) -> bool:
        """Return True if the caller may see a resource that it has not named. Not logged in the audit log."""
        return self.is_visible(call, Operation.DESCRIBE, kind, name)

    def is_visible(self, call: Call, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return True if the caller may see a resource that it has not named, by the given operation."""
        connection = call.connection
        return self._authorizer.is_allowed(connection.principal, connection.peer[0], operation, kind, name)

    def can_describe_as_broker(self, call: Call) -> bool:
        """Return True if the caller is a broker, from which nothing is hidden. Not logged in the audit log."""
        principal, host = call.connection.principal, call.connection.peer[0]
        return self._authorizer.is_allowed(
            principal, host, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def list_operations(self, call: Call, kind: ResourceType, name: str) -> int:
        """Return the operations that the caller is authorized for, as bits."""
        connection = call.connection
        return self._authorizer.operations(connection.principal, connection.peer[0], kind, name)

    @property
    def _authorizer(self) -> Authorizer:
        # A failed write replaces the metadata by another object.
        acls = self._cluster.machine.acls
        if self._known.acls is not acls:
            self._known = self._make_authorizer(acls)
        return self._known

    def _make_authorizer(self, acls: AclStore) -> Authorizer:
        return Authorizer(acls, self._super_users, allow_if_no_acl=self._allow_if_no_acl)


class Guarded(Protocol):
    """An object with an authorizer or none."""

    @property
    def access(self) -> Access | None: ...


def lacks_permission(node: Guarded, call: Call, operation: Operation, kind: ResourceType, name: str) -> bool:
    """Return True if the caller is not authorized."""
    access = node.access
    return access is not None and not access.allows(call, operation, kind, name)


def may_create(node: Guarded, call: Call, topic: str) -> bool:
    """Return True if the caller may create this topic, or any."""
    access = node.access
    return (
        access is None
        or access.allows(call, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        or access.allows(call, Operation.CREATE, ResourceType.TOPIC, topic)
    )


def open_audit_log(config: BrokerConfig) -> AuditLog | None:
    """Open the log of authorization decisions, if there are any. ConfigError if it cannot be opened."""
    if not (config.authorizer_class_name and config.audit_log):
        return None
    from ottla.broker.security.audit_log import AuditLog  # it loads pickle and sockets

    return AuditLog(config.audit_log, config.audit_log_max_bytes, denied_only=config.audit_log_denied_only)


def access_over(cluster: MetadataSource, config: BrokerConfig, audit: AuditLog | None) -> Access | None:
    """Return the interface to the authorizer, or None without `authorizer.class.name`."""
    if not config.authorizer_class_name:
        if config.super_principals:
            log.warning(
                "super.users has no effect without authorizer.class.name, and every client is authorized for everything: "
                "set authorizer.class.name = standard"
            )
        return None
    return Access(cluster, config.super_principals, allow_if_no_acl=config.allow_everyone_if_no_acl_found, audit=audit)
