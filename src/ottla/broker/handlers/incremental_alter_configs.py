"""IncrementalAlterConfigs: set, take back, or edit single configs of topics."""

from __future__ import annotations

from ottla.broker.call import Call
from ottla.broker.node import Node
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import KafkaError
from ottla.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(node: Node, call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """When the answer is there the configs are in force."""
    try:
        refusals = node.topics.change_configs(request.resources, validate_only=request.validate_only)
    except KafkaError as error:
        refusals = [Refusal(error.code, str(error))] * len(request.resources)
    pairs = zip(request.resources, refusals, strict=True)
    return IncrementalAlterConfigsResponse(responses=[answered(resource, refusal) for resource, refusal in pairs])


def answered(resource: AlterConfigsResource, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    """The answer for one resource."""
    response = AlterConfigsResourceResponse(resource_type=resource.resource_type, resource_name=resource.resource_name)
    if refusal is not None:
        response.error_code, response.error_message = refusal.code, str(refusal)
    return response
