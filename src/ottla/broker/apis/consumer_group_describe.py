"""ConsumerGroupDescribe: the members of groups of KIP-848, with their current and target assignments."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.apis.group_calls import find_code
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.consumer.consumer_groups import not_found
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.member import ConsumerMember, TopicIdPartition, by_topic
from ottla.coordination.groups.consumer.targets import assignor_of
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ottla.protocol.messages.metadata import NO_OPERATIONS

GROUP_OPERATIONS = 328
"""All operations on a group, as bits: read, delete, describe."""
CLASSIC, CONSUMER = 0, 1


def handle(node: BrokerNode, call: Call, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    return ConsumerGroupDescribeResponse(
        groups=[
            hide_unauthorized_topics(node, call, describe_group(node, call, each, with_operations))
            for each in dict.fromkeys(request.group_ids)
        ]
    )


def operations_on(node: BrokerNode, call: Call, group_id: str) -> int:
    """Return the operations that the client is authorized for on a group, as bits."""
    return GROUP_OPERATIONS if node.access is None else node.access.list_operations(call, ResourceType.GROUP, group_id)


def hide_unauthorized_topics(node: BrokerNode, call: Call, group: DescribedGroup) -> DescribedGroup:
    """Return the group, or an error if it reads topics that the client may not describe."""
    access = node.access
    if access is None:
        return group
    names = {
        topic.topic_name
        for member in group.members
        for topic in (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)
    }
    names |= {name for member in group.members for name in member.subscribed_topic_names}
    if all(access.can_describe(call, ResourceType.TOPIC, name) for name in names):
        return group
    text = "members of the group read topics on which DESCRIBE is not allowed"
    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text, group.group_id)


def describe_group(node: BrokerNode, call: Call, group_id: str, with_operations: bool) -> DescribedGroup:
    """Return a group, or the error because of which it is not described."""
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(
            ErrorCode.GROUP_AUTHORIZATION_FAILED, f"DESCRIBE is not allowed on group {group_id!r}", group_id
        )
    if not group_id:
        return DescribedGroup(ErrorCode.INVALID_GROUP_ID, "GroupId can't be empty.", group_id)
    try:
        group = node.groups.find(group_id)
    except KafkaError as error:
        return DescribedGroup(find_code(node, group_id, error), group_id=group_id)
    if not isinstance(group, ConsumerGroup):
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, not_found(group_id, group), group_id)
    image = node.topics.image()
    return DescribedGroup(
        group_id=group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_of(group, node.config.consumer_assignors),
        members=[described_member(group, member, image) for member in group.members.values()],
        authorized_operations=operations_on(node, call, group_id) if with_operations else NO_OPERATIONS,
    )


def described_member(group: ConsumerGroup, member: ConsumerMember, image: TopicImage) -> Member:
    return Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(member.topics),
        member.regex,
        build_assignment(member.assigned, image),
        build_assignment(group.target(member.member_id), image),
        CONSUMER if member.classic is None else CLASSIC,
    )


def build_assignment(owned: Iterable[TopicIdPartition], image: TopicImage) -> Assignment:
    """Return partitions by topic, without those of deleted topics."""
    named = ((image.name_of(topic_id), topic_id, indexes) for topic_id, indexes in by_topic(owned).items())
    return Assignment([TopicPartitions(topic_id, name, indexes) for name, topic_id, indexes in named if name])
