"""Who may have a controller do what: the cluster's rules, for who comes to its listener and for whoever a broker speaks for.

    node   ──► what the quorum and brokers ask ──► CLUSTER_ACTION
    broker ──► envelope ──► CLUSTER_ACTION ──► what a client asks ──► as that client may

Rules are in the metadata, which the active controller alone has read. The others know `super.users`: nodes are to be among them.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import NamedTuple

from ottla.broker import denials
from ottla.broker.controllers.controller_apis import OF_BROKERS
from ottla.broker.permissions import CODES, WHOLE, Need, Scope
from ottla.broker.requests.connection import Connection
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

OF_NODES = OF_BROKERS | {"BeginQuorumEpoch", "EndQuorumEpoch", "Fetch", "FetchSnapshot", "UpdateRaftVoter", "Vote"}
ACT = (Need((Operation.CLUSTER_ACTION,), ResourceType.CLUSTER, Scope.WHOLE),)
VERSION_BYTES = 2
NO_RULES = AclStore()
"""Where the cluster's are not known: nothing is allowed for the want of one."""


class Asker(NamedTuple):
    """Who asks, and from where."""

    principal: str
    host: str
    by_token: bool = False
    """Whether a delegation token is what it logged in by."""


def asker_of(connection: Connection) -> Asker:
    return Asker(connection.principal, connection.peer[0], connection.by_token)


def client_of(envelope: EnvelopeRequest) -> Asker:
    """For whom a broker asks; KafkaError where that cannot be read."""
    told, host = memoryview(envelope.request_principal or b""), bytes(envelope.client_host_address)
    try:
        if bytes(told[:VERSION_BYTES]) != b"\0\0":
            raise MalformedError("its version is not known")
        who = Reader(told, VERSION_BYTES).read(plan_of(DefaultPrincipalData, 0))
        return Asker(f"{who.type}:{who.name}", str(ip_address(host)), who.token_authenticated)
    except (MalformedError, ValueError) as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, f"an envelope does not say for whom it is: {error}"
        ) from None


class ControllerAccess:
    """The rules as far as this node knows them."""

    def __init__(self, config: BrokerConfig) -> None:
        self._super_users = config.super_principals
        self._allow_if_no_acl = config.allow_everyone_if_no_acl_found
        self._authorizer = Authorizer(NO_RULES, self._super_users)

    def know(self, metadata: ClusterMetadata | None) -> None:
        """Go by these rules from now on, or by `super.users` alone."""
        acls = NO_RULES if metadata is None else metadata.acls
        if acls is not self._authorizer.acls:
            allow_if_no_acl = self._allow_if_no_acl and acls is not NO_RULES
            self._authorizer = Authorizer(acls, self._super_users, allow_if_no_acl=allow_if_no_acl)

    def allows(self, asker: Asker, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self._authorizer.allows(asker.principal, asker.host, operation, kind, name)

    def refusal(self, asker: Asker, request: Message, version: int) -> Message | None:
        """The answer to who may not have any of it done."""
        api = api_of(request)
        for need in ACT if api.name in OF_NODES else WHOLE.get(api.key, ()):
            if not any(self.allows(asker, each, need.kind, CLUSTER_NAME) for each in need.operations):
                wanted = " or ".join(each.name for each in need.operations)
                sentence = f"{wanted} is not allowed on the cluster to {asker.principal}"
                return denials.denial(api.key, version, request, CODES[need.kind], sentence)
        return None
