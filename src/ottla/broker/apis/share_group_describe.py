"""ShareGroupDescribe: the state and the members of share groups, with their assignments (KIP-932)."""

from __future__ import annotations

from ottla.broker.apis.consumer_group_describe import operations_on
from ottla.broker.apis.group_calls import find_code
from ottla.broker.apis.share_state_calls import has_share_groups
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.member import by_topic
from ottla.coordination.groups.share.group import ShareGroup, ShareMember
from ottla.coordination.groups.share.share_groups import ASSIGNOR
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


def handle(node: BrokerNode, call: Call, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    groups = [described(node, call, each, with_operations) for each in dict.fromkeys(request.group_ids)]
    return ShareGroupDescribeResponse(groups=[visible(node, call, each) for each in groups])


def described(node: BrokerNode, call: Call, group_id: str, with_operations: bool) -> DescribedGroup:
    """Return a group, or the error because of which it is not described."""
    if not has_share_groups(node):
        text = "share groups are off: raise the feature share.version"
        return DescribedGroup(ErrorCode.UNSUPPORTED_VERSION, text, group_id)
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        text = f"DESCRIBE is not allowed on group {group_id!r}"
        return DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, text, group_id)
    if not group_id:
        return DescribedGroup(ErrorCode.INVALID_GROUP_ID, "the group id is empty", group_id)
    try:
        group = node.groups.find(group_id)
    except KafkaError as error:
        return DescribedGroup(find_code(node, group_id, error), group_id=group_id)
    if not isinstance(group, ShareGroup):
        text = f"there is no group {group_id}" if group is None else f"group {group_id} is not a share group"
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id, "Dead")
    image = node.topics.image()
    return DescribedGroup(
        group_id=group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[described_member(member, image) for member in group.members.values()],
        authorized_operations=operations_on(node, call, group_id) if with_operations else NO_OPERATIONS,
    )


def described_member(member: ShareMember, image: TopicImage) -> Member:
    """Return a member, without partitions of deleted topics."""
    named = ((image.name_of(topic_id), topic_id, found) for topic_id, found in by_topic(member.assigned).items())
    return Member(
        member.member_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(member.topics),
        Assignment([TopicPartitions(topic_id, name, found) for name, topic_id, found in named if name]),
    )


def visible(node: BrokerNode, call: Call, group: DescribedGroup) -> DescribedGroup:
    """Return the group, or an error if it reads topics that the client may not describe."""
    access = node.access
    if access is None:
        return group
    names = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    names |= {name for member in group.members for name in member.subscribed_topic_names}
    if all(access.can_describe(call, ResourceType.TOPIC, name) for name in names):
        return group
    text = "members of the group read topics on which DESCRIBE is not allowed"
    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text, group.group_id)
