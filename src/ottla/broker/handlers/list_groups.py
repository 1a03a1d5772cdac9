"""ListGroups: every group, or those in some states and of some types."""

from __future__ import annotations

from ottla.broker.group_calls import code_of
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import KafkaError
from ottla.protocol.acl import CLUSTER_NAME, ResourceType
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(node: BrokerNode, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    """Names, states and types, as Kafka writes them; filters do not mind the case."""
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    try:
        groups = sorted(node.groups.all(), key=lambda group: group.group_id)
        if node.access is not None and not node.access.sees(call, ResourceType.CLUSTER, CLUSTER_NAME):
            groups = [group for group in groups if node.access.sees(call, ResourceType.GROUP, group.group_id)]
    except KafkaError as error:
        return ListGroupsResponse(error_code=code_of(node, "*", error))
    return ListGroupsResponse(
        groups=[
            ListedGroup(group.group_id, group.protocol_type, str(group.state), group.kind)
            for group in groups
            if (not states or str(group.state).lower() in states) and (not types or group.kind in types)
        ]
    )
