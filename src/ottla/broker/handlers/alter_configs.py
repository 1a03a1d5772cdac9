"""AlterConfigs: give topics these configs and no others; clients of today ask for IncrementalAlterConfigs."""

from __future__ import annotations

from ottla.broker.call import Call
from ottla.broker.node import Node
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import KafkaError
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(node: Node, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """When the answer is there the configs are in force."""
    try:
        refusals = node.topics.replace_configs(request.resources, validate_only=request.validate_only)
    except KafkaError as error:
        refusals = [Refusal(error.code, str(error))] * len(request.resources)
    pairs = zip(request.resources, refusals, strict=True)
    return AlterConfigsResponse(responses=[answered(resource, refusal) for resource, refusal in pairs])


def answered(resource: AlterConfigsResource, refusal: Refusal | None) -> AlterConfigsResourceResponse:
    """The answer for one resource."""
    response = AlterConfigsResourceResponse(resource_type=resource.resource_type, resource_name=resource.resource_name)
    if refusal is not None:
        response.error_code, response.error_message = refusal.code, str(refusal)
    return response
