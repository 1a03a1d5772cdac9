"""CreateAcls: keep rules; none is taken where nobody would enforce it."""

from __future__ import annotations

import uuid

from ottla.broker.access import NO_AUTHORIZER
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.access.acl import Acl
from ottla.coordination.cluster.events import AclsRequested
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import KafkaError
from ottla.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(node: BrokerNode, call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    """When the answer is there the rules are in force; one that is kept already is a success."""
    if node.access is None:
        return CreateAclsResponse(results=[AclCreationResult(*NO_AUTHORIZER) for _ in request.creations])
    acls = [rule(each) for each in request.creations]
    try:
        refusals = node.access.ask(lambda ticket: AclsRequested(ticket, acls, [uuid.uuid4() for _ in acls]))
    except KafkaError as error:
        refusals = [Refusal(error.code, error.reason) for _ in acls]
    return CreateAclsResponse(results=[result(refusal) for refusal in refusals])


def rule(wanted: AclCreation) -> Acl:
    return Acl(
        wanted.resource_type,
        wanted.resource_name,
        wanted.resource_pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission_type,
    )


def result(refusal: Refusal | None) -> AclCreationResult:
    return AclCreationResult(0, None) if refusal is None else AclCreationResult(refusal.code, str(refusal))
