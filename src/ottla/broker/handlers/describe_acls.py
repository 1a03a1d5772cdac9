"""DescribeAcls: there are no rules, since nobody enforces any."""

from __future__ import annotations

from ottla.broker.access import NO_AUTHORIZER
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(node: BrokerNode, call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    code, message = NO_AUTHORIZER
    return DescribeAclsResponse(error_code=code, error_message=message)
