"""DescribeAcls: the rules that a filter means, by the resource that they are about."""

from __future__ import annotations

from ottla.broker.access import NO_AUTHORIZER
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.access.acl import AclFilter
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.cluster.acl_request import filter_refusal
from ottla.protocol.messages.delete_acls import DeleteAclsFilter
from ottla.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle(node: BrokerNode, call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Of the rules in the metadata."""
    return answer(None if node.access is None else node.access.acls, request)


def answer(rules: AclStore | None, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Rules in the order in which they were made, under their resources."""
    if rules is None:
        code, message = NO_AUTHORIZER
        return DescribeAclsResponse(error_code=code, error_message=message)
    wanted = filter_of(request)
    refusal = filter_refusal(wanted)
    if refusal is not None:
        return DescribeAclsResponse(error_code=refusal.code, error_message=str(refusal))
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for _, acl in rules.matching(wanted):
        described = AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        resources.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(described)
    return DescribeAclsResponse(
        error_message=None, resources=[DescribeAclsResource(*place, acls) for place, acls in resources.items()]
    )


def filter_of(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )
