"""StreamsGroupDescribe: the state, the topology and the members of streams groups, with their tasks (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.broker.apis.consumer_group_describe import operations_on
from ottla.broker.apis.group_calls import find_code
from ottla.broker.apis.streams_group_heartbeat import STREAMS_OFF, has_streams_groups
from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.authorization import lacks_permission
from ottla.coordination.groups.streams import sticky_assignor
from ottla.coordination.groups.streams.group import NO_OFFSETS, StreamsGroup
from ottla.coordination.groups.streams.member import StreamsMember, Task, Tasks, task_ids
from ottla.coordination.groups.streams.records import StreamsGroupTopologyValue, TopicConfig
from ottla.coordination.groups.streams.topology import ConfiguredTopology, InternalTopic
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    Topology,
)
from ottla.protocol.messages.streams_group_heartbeat import KeyValue, TaskOffset, TopicInfo
from ottla.protocol.messages.streams_group_topology_description_update import TopologyDescription

NOT_REQUESTED, NOT_STORED, AVAILABLE = 0, 1, 3
"""The statuses of a topology's description (KIP-1331)."""


def handle(node: BrokerNode, call: Call, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    groups = [described(node, call, each, request) for each in dict.fromkeys(request.group_ids)]
    return StreamsGroupDescribeResponse(groups=[visible(node, call, each) for each in groups])


def described(node: BrokerNode, call: Call, group_id: str, request: StreamsGroupDescribeRequest) -> DescribedGroup:
    """Return a group, or the error because of which it is not described."""
    if not has_streams_groups(node):
        return DescribedGroup(ErrorCode.UNSUPPORTED_VERSION, STREAMS_OFF, group_id)
    if lacks_permission(node, call, Operation.DESCRIBE, ResourceType.GROUP, group_id):
        text = f"DESCRIBE is not allowed on group {group_id!r}"
        return DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, text, group_id)
    if not group_id:
        return DescribedGroup(ErrorCode.INVALID_GROUP_ID, "the group id is empty", group_id)
    try:
        shard = node.groups.find_shard(group_id)
    except KafkaError as error:
        return DescribedGroup(find_code(node, group_id, error), group_id=group_id)
    group = None if shard is None else shard.streams.groups.get(group_id)
    if shard is None or group is None:
        is_other = shard is not None and (shard.find(group_id) is not None or group_id in shard.shares.groups)
        text = f"group {group_id} is not a streams group" if is_other else f"there is no group {group_id}"
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, text, group_id, "Dead")
    configured = None if group.topology is None else shard.streams.configured(group)
    description = find_description(group) if request.include_topology_description else None
    return DescribedGroup(
        group_id=group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=described_topology(group.topology, configured),
        members=[described_member(group, member) for member in group.members.values()],
        authorized_operations=(
            operations_on(node, call, group_id) if request.include_authorized_operations else NO_OPERATIONS
        ),
        topology_description=description,
        topology_description_status=(
            NOT_REQUESTED
            if not request.include_topology_description
            else NOT_STORED
            if description is None
            else AVAILABLE
        ),
        assignor_name=sticky_assignor.NAME,
    )


def find_description(group: StreamsGroup) -> TopologyDescription | None:
    """Return the stored description of the group's present topology."""
    stored = group.volatile.description.stored
    is_present = stored is not None and group.topology is not None and stored.epoch == group.topology.epoch
    return stored.description if stored is not None and is_present else None


def described_topology(
    topology: StreamsGroupTopologyValue | None, configured: ConfiguredTopology | None
) -> Topology | None:
    """Return a topology with its numbers of partitions if they are known, else as the application sent it."""
    if topology is None:
        return None
    if configured is not None and configured.is_ready:
        return Topology(
            topology.epoch,
            [
                Subtopology(
                    each.subtopology_id,
                    each.source_topics,
                    each.repartition_sink_topics,
                    configured_topics(each.changelog_topics),
                    configured_topics(each.repartition_source_topics),
                )
                for each in configured.subtopologies.values()
            ],
        )
    return Topology(
        topology.epoch,
        [
            Subtopology(
                each.subtopology_id,
                sorted(each.source_topics),
                sorted(each.repartition_sink_topics),
                [
                    TopicInfo(one.name, one.partitions, one.replication_factor, topic_configs(one.topic_configs))
                    for one in each.state_changelog_topics
                ],
                [
                    TopicInfo(one.name, one.partitions, one.replication_factor, topic_configs(one.topic_configs))
                    for one in each.repartition_source_topics
                ],
            )
            for each in topology.subtopologies
        ],
    )


def configured_topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            each.name,
            each.partitions,
            each.replication_factor,
            [KeyValue(name, each.configs[name]) for name in sorted(each.configs)],
        )
        for each in topics
    ]


def topic_configs(configs: Iterable[TopicConfig]) -> list[KeyValue]:
    return [KeyValue(each.key, each.value) for each in configs]


def described_member(group: StreamsGroup, member: StreamsMember) -> Member:
    reported = group.volatile.reported.get(member.member_id, NO_OFFSETS)
    return Member(
        member.member_id,
        member.epoch,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topology_epoch,
        member.process_id,
        member.endpoint,
        [KeyValue(name, member.tags[name]) for name in sorted(member.tags)],
        task_offsets(reported.offsets.items()),
        task_offsets(reported.end_offsets.items()),
        assignment_of(member.assigned),
        assignment_of(group.target(member.member_id)),
    )


def task_offsets(offsets: Iterable[tuple[Task, int]]) -> list[TaskOffset]:
    return [TaskOffset(subtopology, partition, offset) for (subtopology, partition), offset in sorted(offsets)]


def assignment_of(tasks: Tasks) -> Assignment:
    return Assignment(task_ids(tasks.active), task_ids(tasks.standby), task_ids(tasks.warmup))


def visible(node: BrokerNode, call: Call, group: DescribedGroup) -> DescribedGroup:
    """Return the group, or an error if its topology has topics that the client may not describe."""
    access = node.access
    if access is None or group.topology is None:
        return group
    names = {
        name
        for each in group.topology.subtopologies or ()
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.state_changelog_topics),
            *(topic.name for topic in each.repartition_source_topics),
        )
    }
    if all(access.can_describe(call, ResourceType.TOPIC, name) for name in names):
        return group
    text = "the topology has topics on which DESCRIBE is not allowed"
    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text, group.group_id)
