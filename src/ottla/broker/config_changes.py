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
    if not denied(node, call, operation, owner, CLUSTER_NAME if owner is ResourceType.CLUSTER else name):
        return None
    return Refusal(code, f"{operation.name} is not allowed on {owner.name.lower()} {name!r}")


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
