"""ListConfigResources: the resources with configs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.settings.broker_loggers import LOGGER_RESOURCE
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TYPES_SINCE = 1
"""From this version on types other than client metrics can be requested."""


def handle(node: BrokerNode, call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """Return all resources of the requested types; of every type if none is requested."""
    wanted = request.resource_types if call.version >= TYPES_SINCE else (CLIENT_METRICS_RESOURCE,)
    if any(kind not in RESOURCES for kind in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, kind)
            for kind in RESOURCES
            if not wanted or kind in wanted
            for name in RESOURCES[kind](node, call)
        ]
    )


def broker_names(node: BrokerNode, call: Call) -> list[str]:
    """Return the ids of the brokers that are not fenced."""
    return [str(each) for each in node.brokers.list_alive(call.connection.listener)]


RESOURCES: dict[int, Callable[[BrokerNode, Call], Iterable[str]]] = {
    TOPIC_RESOURCE: lambda node, _: (topic.name for topic in node.topics.all()),
    BROKER_RESOURCE: broker_names,
    LOGGER_RESOURCE: broker_names,
    CLIENT_METRICS_RESOURCE: lambda node, _: node.topics.subscriptions,
    GROUP_RESOURCE: lambda node, _: node.topics.group_configs,
}
"""The resource names of each type; of groups, only those with configs."""
