"""AlterConfigs: give topics and groups these configs and no others; clients of today ask for IncrementalAlterConfigs."""

from __future__ import annotations

from ottla.broker.config_changes import answers, guarded
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(node: BrokerNode, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """When the answer is there the configs are in force."""
    refusals = guarded(
        node,
        call,
        request.resources,
        lambda allowed: node.topics.replace_configs(allowed, validate_only=request.validate_only),
    )
    return AlterConfigsResponse(responses=answers(AlterConfigsResourceResponse, request.resources, refusals))
