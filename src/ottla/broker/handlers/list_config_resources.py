"""ListConfigResources: what DescribeConfigs can be asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ottla.broker.loggers import LOGGER_RESOURCE
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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
"""From this version on other types than client metrics may be asked for."""


def handle(node: BrokerNode, call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """All resources of the wanted types; of no type means of every type."""
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
    """The numbers of all brokers that clients may be sent to."""
    known = [node.config.node_id] if node.brokers is None else node.brokers.alive(call.connection.listener)
    return [str(each) for each in known]


RESOURCES: dict[int, Callable[[BrokerNode, Call], Iterable[str]]] = {
    TOPIC_RESOURCE: lambda node, _: (topic.name for topic in node.topics.all()),
    BROKER_RESOURCE: broker_names,
    LOGGER_RESOURCE: broker_names,
    CLIENT_METRICS_RESOURCE: lambda node, _: node.topics.subscriptions,
    GROUP_RESOURCE: lambda node, _: node.topics.group_configs,
}
"""Type → the names that there are; of groups those that set anything."""
