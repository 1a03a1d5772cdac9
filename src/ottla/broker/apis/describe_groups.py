"""DescribeGroups: the members of groups, and their assignments."""

from __future__ import annotations

from ottla.broker.apis.consumer_group_describe import operations_on
from ottla.broker.apis.group_calls import find_code
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState, ClassicMember
from ottla.coordination.groups.consumer.consumer_groups import not_found
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
"""From this version on an unknown group is an error; before, its state is Dead (KIP-1043)."""


def handle(node: BrokerNode, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups = [describe_group(node, call, group_id) for group_id in dict.fromkeys(request.groups)]
    if request.include_authorized_operations:
        for group in groups:
            group.authorized_operations = group_operations(node, call, group)
    return DescribeGroupsResponse(groups=groups)


def group_operations(node: BrokerNode, call: Call, group: DescribedGroup) -> int:
    """Return the operations that the client is authorized for on a group that it may describe."""
    if group.error_code:
        return NO_OPERATIONS
    return operations_on(node, call, group.group_id)


def describe_group(node: BrokerNode, call: Call, group_id: str) -> DescribedGroup:
    """Return a group, with the members' assignments if it is stable."""
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id)
    version = call.version
    try:
        group = node.groups.find(group_id)
    except KafkaError as error:
        return DescribedGroup(find_code(node, group_id, error), group_id=group_id)
    if not isinstance(group, ClassicGroup):
        return build_unknown_group(version, group_id, not_found(group_id, group))
    return DescribedGroup(
        group_id=group_id,
        group_state=str(group.state),
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if group.state is ClassicGroupState.STABLE else "",
        members=[described_member(group, member) for member in group.members.values()],
    )


def build_unknown_group(version: int, group_id: str, why: str) -> DescribedGroup:
    """Return the result for a group that is unknown, or is not a classic one."""
    if version < NOT_FOUND_SINCE:
        return DescribedGroup(group_id=group_id, group_state=str(ClassicGroupState.DEAD))
    return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, why, group_id, str(ClassicGroupState.DEAD))


def described_member(group: ClassicGroup, member: ClassicMember) -> DescribedGroupMember:
    """Return one member. During a rebalance members have no assignments."""
    settled = group.state is ClassicGroupState.STABLE
    return DescribedGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.metadata(group.protocol_name) if settled else b"",
        member.assignment if settled else b"",
    )
