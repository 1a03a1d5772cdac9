"""ListGroups: every group, or those in some states and of some types."""

from __future__ import annotations

from ottla.broker.apis.group_calls import find_code
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.errors import KafkaError
from ottla.protocol.acl import CLUSTER_NAME, ResourceType
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(node: BrokerNode, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    """Return names, states and types, in Kafka's spelling. Filters ignore the case."""
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    try:
        groups = sorted(node.groups.all(), key=lambda group: group.group_id)
        if node.access is not None and not node.access.can_describe(call, ResourceType.CLUSTER, CLUSTER_NAME):
            groups = [group for group in groups if node.access.can_describe(call, ResourceType.GROUP, group.group_id)]
    except KafkaError as error:
        return ListGroupsResponse(error_code=find_code(node, "*", error))
    return ListGroupsResponse(
        groups=[
            ListedGroup(group.group_id, group.protocol_type, str(group.state), group.kind)
            for group in groups
            if (not states or str(group.state).lower() in states) and (not types or group.kind in types)
        ]
    )
