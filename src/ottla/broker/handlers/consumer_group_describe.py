"""ConsumerGroupDescribe: who is in groups of KIP-848, what everybody has, and what it is to have."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.access import denied
from ottla.broker.group_calls import code_of
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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
"""Everything that can be allowed on a group, a bit for each: read, delete, describe."""
CLASSIC, CONSUMER = 0, 1


def handle(node: BrokerNode, call: Call, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    return ConsumerGroupDescribeResponse(
        groups=[
            visible(node, call, described(node, call, each, with_operations))
            for each in dict.fromkeys(request.group_ids)
        ]
    )


def operations_on(node: BrokerNode, call: Call, group_id: str) -> int:
    """What the client may do to a group, a bit for each."""
    return GROUP_OPERATIONS if node.access is None else node.access.operations(call, ResourceType.GROUP, group_id)


def visible(node: BrokerNode, call: Call, group: DescribedGroup) -> DescribedGroup:
    """The group, unless it reads what the client may not know of."""
    access = node.access
    if access is None:
        return group
    names = {
        topic.topic_name
        for member in group.members
        for topic in (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)
    }
    names |= {name for member in group.members for name in member.subscribed_topic_names}
    if all(access.sees(call, ResourceType.TOPIC, name) for name in names):
        return group
    text = "members of the group read topics on which DESCRIBE is not allowed"
    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text, group.group_id)


def described(node: BrokerNode, call: Call, group_id: str, with_operations: bool) -> DescribedGroup:
    """A group, or why it is not described."""
    if denied(node, call, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(
            ErrorCode.GROUP_AUTHORIZATION_FAILED, f"DESCRIBE is not allowed on group {group_id!r}", group_id
        )
    if not group_id:
        return DescribedGroup(ErrorCode.INVALID_GROUP_ID, "GroupId can't be empty.", group_id)
    try:
        group = node.groups.find(group_id)
    except KafkaError as error:
        return DescribedGroup(code_of(node, group_id, error), group_id=group_id)
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
        assignment(member.assigned, image),
        assignment(group.target(member.member_id), image),
        CONSUMER if member.classic is None else CLASSIC,
    )


def assignment(owned: Iterable[TopicIdPartition], image: TopicImage) -> Assignment:
    """Partitions by topic; those of topics that are no more are left out."""
    named = ((image.name_of(topic_id), topic_id, indexes) for topic_id, indexes in by_topic(owned).items())
    return Assignment([TopicPartitions(topic_id, name, indexes) for name, topic_id, indexes in named if name])
