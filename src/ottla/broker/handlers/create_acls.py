"""CreateAcls: no rule is taken that nobody would enforce."""

from __future__ import annotations

from ottla.broker.access import NO_AUTHORIZER
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(node: BrokerNode, call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(results=[AclCreationResult(*NO_AUTHORIZER) for _ in request.creations])
