"""IncrementalAlterConfigs: set, take back, or edit single configs of topics."""

from __future__ import annotations

from ottla.broker.call import Call
from ottla.broker.config_changes import answers
from ottla.broker.node import Node
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(node: Node, call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """When the answer is there the configs are in force."""
    refusals = node.topics.change_configs(request.resources, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(responses=answers(AlterConfigsResourceResponse, request.resources, refusals))
