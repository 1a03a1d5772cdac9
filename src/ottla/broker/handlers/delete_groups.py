"""DeleteGroups: groups without members, and everything they committed."""

from __future__ import annotations

from ottla.broker.access import denied
from ottla.broker.group_calls import code_of, once_committed
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.coordination.groups.events import GroupDeletionRequested
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: DeleteGroupsRequest) -> Message | Outcome:
    """A code for each group."""
    names = request.groups_names

    def answer() -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[DeletableGroupResult(name, delete(node, call, name)) for name in names])

    def refused(code: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[DeletableGroupResult(name, code) for name in names])

    return once_committed(node, call, names, answer, refused)


def delete(node: BrokerNode, call: Call, group_id: str) -> int:
    """What the coordinator says of each, or the one error that keeps it from saying so."""
    if denied(node, call, Operation.DELETE, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    try:
        (code,) = node.groups.ask(group_id, lambda ticket: GroupDeletionRequested(ticket, [group_id]), make=False)
    except KafkaError as error:
        return code_of(node, group_id, error)
    return int(code)
