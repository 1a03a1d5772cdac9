"""DeleteGroups: delete groups without members, and their committed offsets.

The states of a share group are deleted before the group. Since version 3 a result has a message, which Kafka sets only for
GROUP_DELETION_FAILED; the other codes need none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.broker.apis.group_calls import find_code, respond_when_committed
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.broker.state_machines.runtime import PendingReply
from ottla.coordination.groups.events import GroupDeletionRequested
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: DeleteGroupsRequest) -> Message | Outcome:
    """Return an error code for each group."""
    names = request.groups_names
    left = {name for name in names if is_share_group(node, call, name)}
    failed: dict[str, int] = {}
    has_returned = False

    def complete(name: str, code: int) -> None:
        if code:
            failed[name] = code
        left.discard(name)
        if has_returned and not left:
            call.resume(lambda: delete_all(node, call, names, failed))

    for name in list(left):
        delete_states(node, name, lambda code, name=name: complete(name, code))
    if not left:
        return delete_all(node, call, names, failed)
    has_returned = True
    return Outcome.LATER


def delete_all(node: BrokerNode, call: Call, names: Any, failed: Mapping[str, int]) -> Message | Outcome:
    """Delete the groups of which the states were deleted; `failed` has the codes of the others."""

    def answer() -> DeleteGroupsResponse:
        results = [DeletableGroupResult(name, failed.get(name) or delete(node, call, name)) for name in names]
        return DeleteGroupsResponse(results=results)

    def refused(code: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[DeletableGroupResult(name, code) for name in names])

    return respond_when_committed(node, call, names, answer, refused)


def is_share_group(node: BrokerNode, call: Call, group_id: str) -> bool:
    """Return True for a share group that the client may delete."""
    try:
        group = node.groups.find(group_id)
    except KafkaError:
        return False
    if group is None or group.kind != "share":
        return False
    return not lacks_permission(node, call, Operation.DELETE, ResourceType.GROUP, group_id)


def delete_states(node: BrokerNode, group_id: str, on_code: Any) -> None:
    """Delete the states of a share group; `on_code` is called with the error code, possibly within this call."""
    from ottla.coordination.groups.share.events import OffsetDeletions, ShareGroupDeletionStarted

    def proceed(reply: Any) -> None:
        if isinstance(reply, OffsetDeletions):
            node.groups.share_states.delete(
                group_id,
                reply.partitions,
                lambda results: on_code(next((each.error for each in results.values() if is_failure(each.error)), 0)),
            )
        else:
            on_code(find_code(node, group_id, reply) if isinstance(reply, KafkaError) else int(reply))

    try:
        reply = node.groups.submit(
            group_id, lambda ticket: ShareGroupDeletionStarted(ticket, group_id), proceed, make=False
        )
    except KafkaError as error:
        reply = error
    if not isinstance(reply, PendingReply):
        proceed(reply)


def is_failure(code: int) -> bool:
    """Return True if a state was not deleted. That of a topic which does not exist any more need not be."""
    return code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def delete(node: BrokerNode, call: Call, group_id: str) -> int:
    """Return the coordinator's result for a group, or the error of the coordinator."""
    if lacks_permission(node, call, Operation.DELETE, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    try:
        (code,) = node.groups.submit(group_id, lambda ticket: GroupDeletionRequested(ticket, [group_id]), make=False)
    except KafkaError as error:
        return find_code(node, group_id, error)
    return int(code)
