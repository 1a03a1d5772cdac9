"""DeleteAcls: let every rule go that a filter means."""

from __future__ import annotations

from ottla.broker.access import NO_AUTHORIZER
from ottla.broker.handlers.describe_acls import filter_of
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.access.acl import Acl
from ottla.coordination.cluster.events import AclsUnwanted
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import KafkaError
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def handle(node: BrokerNode, call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """When the answer is there the rules are in force no more."""
    if node.access is None:
        return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(*NO_AUTHORIZER) for _ in request.filters])
    filters = [filter_of(each) for each in request.filters]
    try:
        answers = node.access.ask(lambda ticket: AclsUnwanted(ticket, filters))
    except KafkaError as error:
        answers = [Refusal(error.code, error.reason) for _ in filters]
    return DeleteAclsResponse(filter_results=[result(answer) for answer in answers])


def result(answer: Refusal | list[Acl]) -> DeleteAclsFilterResult:
    if isinstance(answer, Refusal):
        return DeleteAclsFilterResult(answer.code, str(answer))
    return DeleteAclsFilterResult(0, None, [DeleteAclsMatchingAcl(0, None, *acl) for acl in answer])
