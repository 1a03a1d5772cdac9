"""Changes of configs, resource by resource: authorization, and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.broker.settings import broker_loggers
from ottla.broker.settings.broker_loggers import LOGGER_RESOURCE
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.messages import incremental_alter_configs
from ottla.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ottla.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.schema import Message
from ottla.protocol.sentences import short

R = TypeVar("R")
GUARDED = {
    TOPIC_RESOURCE: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    GROUP_RESOURCE: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    **dict.fromkeys(
        (BROKER_RESOURCE, LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE),
        (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ),
}
"""For each type of config resource, the resource type for authorization and the error code of a denial."""


def find_denial(node: BrokerNode, call: Call, operation: Operation, kind: int, name: str) -> Refusal | None:
    """Return why a client may not see or change the configs of a resource. Unknown types are rejected elsewhere."""
    if node.access is None or kind not in GUARDED:
        return None
    owner, code = GUARDED[kind]
    guarded_name = CLUSTER_NAME if owner is ResourceType.CLUSTER else name
    if not lacks_permission(node, call, operation, owner, guarded_name):
        return None
    return Refusal(code, f"{operation.name} is not allowed on {owner.name.lower()} {guarded_name!r}")


def is_for_this_broker(request: Any) -> bool:
    """Return True if a request changes only levels of loggers, which each broker of a cluster changes itself."""
    resources = request.resources if isinstance(request, IncrementalAlterConfigsRequest) else ()
    return bool(resources) and all(each.resource_type == LOGGER_RESOURCE for each in resources)


def change_loggers(
    node: BrokerNode, call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the levels of loggers that the client is authorized for."""
    refusals = [
        find_denial(node, call, Operation.ALTER_CONFIGS, each.resource_type, each.resource_name)
        or broker_loggers.change_level(node.config.node_id, each, validate_only=request.validate_only)
        for each in request.resources
    ]
    results = build_results(incremental_alter_configs.AlterConfigsResourceResponse, request.resources, refusals)
    return IncrementalAlterConfigsResponse(responses=results)


def refused_here(node: BrokerNode, call: Call, request: Any) -> Message | None:
    """Return a broker's response to a change that it does not forward to the controllers.

    It cannot apply one of its own configs, or the change is for another broker.
    """
    make = CHANGES.get(type(request))
    if make is None:
        return None
    faults = [
        find_own_fault(node, call, each, replaces=isinstance(request, AlterConfigsRequest))
        for each in request.resources
    ]
    first = next(filter(None, faults), None)
    if first is None:
        return None
    left = Refusal(
        ErrorCode.INVALID_REQUEST, f"nothing was changed, for a broker's configs were refused: {short(str(first))}"
    )
    return make(request.resources, [fault or left for fault in faults])


def find_own_fault(node: BrokerNode, call: Call, resource: Any, *, replaces: bool) -> Refusal | None:
    """Return why this broker cannot apply the change.

    It names files, and is sent only to clients that may change configs.
    """
    kind, name = resource.resource_type, resource.resource_name
    if kind == LOGGER_RESOURCE and not replaces:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            "loggers are a broker's own, other configs are the cluster's: set their levels in a request of its own",
        )
    if kind != BROKER_RESOURCE or not name.isdecimal():
        return None
    if find_denial(node, call, Operation.ALTER_CONFIGS, kind, name) is not None:
        return None
    if int(name) != node.config.node_id:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {node.config.node_id}, and only broker {name} can apply its configs: send the request to that broker",
        )
    return node.topics.find_fault(resource, replaces=replaces)


def build_results(make: Callable[..., R], resources: Sequence[Any], refusals: Sequence[Refusal | None]) -> list[R]:
    """Return one result for each resource, made by `make`: the class differs between the two APIs."""
    return [
        make(
            error_code=refusal.code if refusal else 0,
            error_message=str(refusal) if refusal else None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, refusal in zip(resources, refusals, strict=True)
    ]


CHANGES: dict[type[Message], Callable[[Sequence[Any], Sequence[Refusal | None]], Message]] = {
    AlterConfigsRequest: lambda resources, refusals: AlterConfigsResponse(
        responses=build_results(AlterConfigsResourceResponse, resources, refusals)
    ),
    IncrementalAlterConfigsRequest: lambda resources, refusals: IncrementalAlterConfigsResponse(
        responses=build_results(incremental_alter_configs.AlterConfigsResourceResponse, resources, refusals)
    ),
}
"""The function that answers each type of request."""
