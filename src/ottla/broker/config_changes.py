"""Changes of configs, resource by resource: who may ask for them, and what is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ottla.broker.access import denied
from ottla.broker.loggers import LOGGER_RESOURCE
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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
"""Whose the configs of a kind of resource are, and what is said to who may not have them."""


def denial_of(node: BrokerNode, call: Call, operation: Operation, kind: int, name: str) -> Refusal | None:
    """Why a client may not see or change the configs of a resource; kinds that there are not are refused for that."""
    if node.access is None or kind not in GUARDED:
        return None
    owner, code = GUARDED[kind]
    guarded_name = CLUSTER_NAME if owner is ResourceType.CLUSTER else name
    if not denied(node, call, operation, owner, guarded_name):
        return None
    return Refusal(code, f"{operation.name} is not allowed on {owner.name.lower()} {guarded_name!r}")


def guarded(
    node: BrokerNode, call: Call, resources: Sequence[Any], change: Callable[[Sequence[Any]], list[Refusal | None]]
) -> list[Refusal | None]:
    """Let `change` have those that the client may change; what became of each, in order."""
    denials = [
        denial_of(node, call, Operation.ALTER_CONFIGS, each.resource_type, each.resource_name) for each in resources
    ]
    allowed = [each for each, denial in zip(resources, denials, strict=True) if denial is None]
    changed = iter(change(allowed))
    return [next(changed) if denial is None else denial for denial in denials]


def is_own(request: Any) -> bool:
    """Whether a request asks for nothing but levels of loggers, which each broker of a cluster changes for itself."""
    resources = request.resources if isinstance(request, IncrementalAlterConfigsRequest) else ()
    return bool(resources) and all(each.resource_type == LOGGER_RESOURCE for each in resources)


def refused_here(node: BrokerNode, call: Call, request: Any) -> Message | None:
    """What a broker answers instead of handing a change on to the controllers: that it cannot act by configs of its own, or
    cannot say for another broker whether that one could.
    """
    make = CHANGES.get(type(request))
    if make is None:
        return None
    faults = [
        own_fault(node, call, each, replaces=isinstance(request, AlterConfigsRequest)) for each in request.resources
    ]
    first = next(filter(None, faults), None)
    if first is None:
        return None
    left = Refusal(
        ErrorCode.INVALID_REQUEST, f"nothing was changed, for a broker's configs were refused: {short(str(first))}"
    )
    return make(request.resources, [fault or left for fault in faults])


def own_fault(node: BrokerNode, call: Call, resource: Any, *, replaces: bool) -> Refusal | None:
    """Told to those alone who may change them: it says what files there are."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == LOGGER_RESOURCE and not replaces:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            "loggers are a broker's own, other configs are the cluster's: set their levels in a request of its own",
        )
    if kind != BROKER_RESOURCE or not name.isdecimal():
        return None
    if denial_of(node, call, Operation.ALTER_CONFIGS, kind, name) is not None:
        return None
    if int(name) != node.config.node_id:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"this is broker {node.config.node_id}, and only broker {name} knows what it can act by: ask it itself",
        )
    return node.topics.fault_of(resource, replaces=replaces)


def answers(make: Callable[..., R], resources: Sequence[Any], refusals: Sequence[Refusal | None]) -> list[R]:
    """One answer for each resource, made by `make`: AlterConfigs and IncrementalAlterConfigs have a class each."""
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
        responses=answers(AlterConfigsResourceResponse, resources, refusals)
    ),
    IncrementalAlterConfigsRequest: lambda resources, refusals: IncrementalAlterConfigsResponse(
        responses=answers(incremental_alter_configs.AlterConfigsResourceResponse, resources, refusals)
    ),
}
"""How each request that changes configs is answered."""
