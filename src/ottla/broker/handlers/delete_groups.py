"""DeleteGroups: groups without members, and everything they committed."""

from __future__ import annotations

from ottla.broker.group_calls import code_of
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.groups.events import GroupDeletionRequested
from ottla.errors import KafkaError
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(node: BrokerNode, call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results = [DeletableGroupResult(group_id, delete(node, group_id)) for group_id in request.groups_names]
    return DeleteGroupsResponse(results=results)


def delete(node: BrokerNode, group_id: str) -> int:
    """What the coordinator says of each, or the one error that keeps it from saying so."""
    try:
        (code,) = node.groups.ask(group_id, lambda ticket: GroupDeletionRequested(ticket, [group_id]), make=False)
    except KafkaError as error:
        return code_of(node, group_id, error)
    return int(code)
