"""IncrementalAlterConfigs: set, take back, or edit single configs of topics, groups and the broker, and the levels of its loggers."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker import loggers
from ottla.broker.config_changes import answers, guarded
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.cluster.topic_request import Refusal
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(node: BrokerNode, call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """When the answer is there the configs are in force."""
    refusals = guarded(node, call, request.resources, lambda allowed: change(node, allowed, dry=request.validate_only))
    return IncrementalAlterConfigsResponse(responses=answers(AlterConfigsResourceResponse, request.resources, refusals))


def change(node: BrokerNode, resources: Sequence[AlterConfigsResource], *, dry: bool) -> list[Refusal | None]:
    """What has become of each resource."""
    stored = [resource for resource in resources if resource.resource_type != loggers.LOGGER_RESOURCE]
    changed = iter(node.topics.change_configs(stored, validate_only=dry) if stored else ())
    return [
        loggers.change(node.config.node_id, resource, validate_only=dry)
        if resource.resource_type == loggers.LOGGER_RESOURCE
        else next(changed)
        for resource in resources
    ]
