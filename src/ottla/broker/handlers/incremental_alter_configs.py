"""IncrementalAlterConfigs: set, take back, or edit single configs of topics, groups and the broker, and the levels of its loggers."""

from __future__ import annotations

from ottla.broker import loggers
from ottla.broker.config_changes import answers
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(node: BrokerNode, call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """When the answer is there the configs are in force."""
    dry = request.validate_only
    stored = [resource for resource in request.resources if resource.resource_type != loggers.LOGGER_RESOURCE]
    changed = iter(node.topics.change_configs(stored, validate_only=dry))
    refusals = [
        loggers.change(node.config.node_id, resource, validate_only=dry)
        if resource.resource_type == loggers.LOGGER_RESOURCE
        else next(changed)
        for resource in request.resources
    ]
    return IncrementalAlterConfigsResponse(responses=answers(AlterConfigsResourceResponse, request.resources, refusals))
