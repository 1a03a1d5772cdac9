"""DescribeAcls: the ACLs that match a filter, grouped by resource."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import NO_AUTHORIZER
from ottla.coordination.access.acl import AclFilter
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.cluster.acl_request import find_filter_error
from ottla.protocol.messages.delete_acls import DeleteAclsFilter
from ottla.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle(node: BrokerNode, call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the ACLs in the metadata."""
    return build_response(None if node.access is None else node.access.acls, request)


def build_response(rules: AclStore | None, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Return the matching ACLs in the order of their creation, grouped by resource."""
    if rules is None:
        code, message = NO_AUTHORIZER
        return DescribeAclsResponse(error_code=code, error_message=message)
    wanted = read_filter(request)
    refusal = find_filter_error(wanted)
    if refusal is not None:
        return DescribeAclsResponse(error_code=refusal.code, error_message=str(refusal))
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for _, acl in rules.find_matching(wanted):
        described = AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        resources.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(described)
    return DescribeAclsResponse(
        error_message=None, resources=[DescribeAclsResource(*place, acls) for place, acls in resources.items()]
    )


def read_filter(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )
