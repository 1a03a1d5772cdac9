"""DeleteAcls: there are no rules to be deleted."""

from __future__ import annotations

from ottla.broker.access import NO_AUTHORIZER
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(node: BrokerNode, call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(*NO_AUTHORIZER) for _ in request.filters])
