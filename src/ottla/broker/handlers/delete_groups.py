"""DeleteGroups: groups without members, and everything they committed."""

from __future__ import annotations

from ottla.broker.access import denied
from ottla.broker.group_calls import code_of
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.groups.events import GroupDeletionRequested
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(node: BrokerNode, call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results = [DeletableGroupResult(group_id, delete(node, call, group_id)) for group_id in request.groups_names]
    return DeleteGroupsResponse(results=results)


def delete(node: BrokerNode, call: Call, group_id: str) -> int:
    """What the coordinator says of each, or the one error that keeps it from saying so."""
    if denied(node, call, Operation.DELETE, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    try:
        (code,) = node.groups.ask(group_id, lambda ticket: GroupDeletionRequested(ticket, [group_id]), make=False)
    except KafkaError as error:
        return code_of(node, group_id, error)
    return int(code)
