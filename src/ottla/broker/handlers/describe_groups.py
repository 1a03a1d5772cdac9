"""DescribeGroups: the members of groups, and what they were given."""

from __future__ import annotations

from ottla.broker.access import denied
from ottla.broker.group_calls import code_of
from ottla.broker.handlers.consumer_group_describe import operations_on
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from ottla.coordination.groups.consumer.consumer_groups import not_found
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.protocol.messages.metadata import NO_OPERATIONS

NOT_FOUND_SINCE = 6
"""From this version on a group that nobody knows is an error; before, it is Dead (KIP-1043)."""


def handle(node: BrokerNode, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups = [described(node, call, group_id) for group_id in dict.fromkeys(request.groups)]
    if request.include_authorized_operations:
        for group in groups:
            group.authorized_operations = group_operations(node, call, group)
    return DescribeGroupsResponse(groups=groups)


def group_operations(node: BrokerNode, call: Call, group: DescribedGroup) -> int:
    """What the client may do to a group that it may know of."""
    if group.error_code:
        return NO_OPERATIONS
    return operations_on(node, call, group.group_id)


def described(node: BrokerNode, call: Call, group_id: str) -> DescribedGroup:
    """A group, with what the leader gave to whom where that is settled."""
    if denied(node, call, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
    version = call.version
    try:
        group = node.groups.find(group_id)
    except KafkaError as error:
        return DescribedGroup(code_of(node, group_id, error), group_id=group_id)
    if group is None or isinstance(group, ConsumerGroup):
        return unknown(version, group_id, not_found(group_id, group))
    return DescribedGroup(
        group_id=group_id,
        group_state=str(group.state),
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if group.state is ClassicGroupState.STABLE else "",
        members=[described_member(group, member) for member in group.members.values()],
    )


def unknown(version: int, group_id: str, why: str) -> DescribedGroup:
    """A group that is not there, or not one of these."""
    if version < NOT_FOUND_SINCE:
        return DescribedGroup(group_id=group_id, group_state=str(ClassicGroupState.DEAD))
    return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, why, group_id, str(ClassicGroupState.DEAD))


def described_member(group: ClassicGroup, member: ClassicMember) -> DescribedGroupMember:
    """One member; while a rebalance goes on nobody has anything yet."""
    settled = group.state is ClassicGroupState.STABLE
    return DescribedGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.metadata(group.protocol_name) if settled else b"",
        member.assignment if settled else b"",
    )
