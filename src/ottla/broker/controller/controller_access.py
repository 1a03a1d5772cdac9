"""Authorization at the controller, for connections to its own listener and for forwarded requests of clients.

    node   ──► request of the quorum or of a broker ──► needs CLUSTER_ACTION
    broker ──► envelope ──► needs CLUSTER_ACTION ──► forwarded request ──► needs what the client's request needs

ACLs are in the metadata, and only the active controller applies them. A voter that is not active knows `super.users` alone,
so the principals of nodes have to be super users.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from ottla.broker.apis import authorization_errors
from ottla.broker.apis.permissions import CODES, WHOLE, Need, Scope
from ottla.broker.controller.asker import Requester
from ottla.broker.controller.controller_apis import OF_BROKERS
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.access.authorizer import Authorizer
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.apis import api_of
from ottla.protocol.codec import Reader
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.envelope import DefaultPrincipalData, EnvelopeRequest
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.security.audit_log import AuditLog

OF_NODES = OF_BROKERS | {"BeginQuorumEpoch", "EndQuorumEpoch", "Fetch", "FetchSnapshot", "UpdateRaftVoter", "Vote"}
ACT = (Need((Operation.CLUSTER_ACTION,), ResourceType.CLUSTER, Scope.WHOLE),)
VERSION_BYTES = 2
NO_RULES = AclStore()
"""The ACLs while the metadata is not known. They allow nothing, whatever `allow.everyone.if.no.acl.found` is."""


def read_client(envelope: EnvelopeRequest) -> Requester:
    """Return the client of an envelope's request. KafkaError if the principal or the address is malformed."""
    sent_principal, host = memoryview(envelope.request_principal or b""), bytes(envelope.client_host_address)
    try:
        if bytes(sent_principal[:VERSION_BYTES]) != b"\0\0":
            raise MalformedError("its version is not known")
        who = Reader(sent_principal, VERSION_BYTES).read(plan_of(DefaultPrincipalData, 0))
        return Requester(f"{who.type}:{who.name}", str(ip_address(host)), who.token_authenticated)
    except (MalformedError, ValueError) as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, f"an envelope has no valid principal: {error}"
        ) from None


class ControllerAccess:
    """The authorizer of a controller, with the ACLs that this node knows."""

    def __init__(self, config: BrokerConfig, audit: AuditLog | None = None) -> None:
        """`audit` is the log of decisions, if there is one."""
        self._audit = audit
        self._super_users = config.super_principals
        self._allow_if_no_acl = config.allow_everyone_if_no_acl_found
        self._authorizer = Authorizer(NO_RULES, self._super_users)

    def update_metadata(self, metadata: ClusterMetadata | None) -> None:
        """Use the ACLs of the metadata from now on; `super.users` alone if it is None."""
        acls = NO_RULES if metadata is None else metadata.acls
        if acls is not self._authorizer.acls:
            allow_if_no_acl = self._allow_if_no_acl and acls is not NO_RULES
            self._authorizer = Authorizer(acls, self._super_users, allow_if_no_acl=allow_if_no_acl)

    def allows(self, asker: Requester, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Return True if a client is authorized. The decision is logged in the audit log."""
        allowed = self._authorizer.is_allowed(asker.principal, asker.host, operation, kind, name)
        if self._audit is not None and asker.api_key >= 0:
            self._audit.record_decision(
                *asker[:2], asker.client_id, asker.api_key, operation, kind, name, allowed=allowed
            )
        return allowed

    def find_refusal(self, asker: Requester, request: Message, version: int) -> Message | None:
        """Return the response if the client may not make the request at all, else None."""
        api = api_of(request)
        for need in ACT if api.name in OF_NODES else WHOLE.get(api.key, ()):
            if not any(self.allows(asker, each, need.kind, CLUSTER_NAME) for each in need.operations):
                wanted = " or ".join(each.name for each in need.operations)
                sentence = f"{wanted} is not allowed on the cluster to {asker.principal}"
                return authorization_errors.build_denial(api.key, version, request, CODES[need.kind], sentence)
        return None
