"""StreamsGroupDescribe: the state, the topology and the members of groups of Kafka Streams (KIP-1071)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskIds, TaskOffset, TopicInfo
from ottla.protocol.messages.streams_group_topology_description_update import TopologyDescription
from ottla.protocol.schema import Bool, Int8, Int16, Int32, Message, String, message, part, since, struct


@message(key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest(Message):
    group_ids: Sequence[String] = ()
    include_authorized_operations: Bool = False
    include_topology_description: Bool = since(1, default=False)


@struct
class Subtopology:
    subtopology_id: String = ""
    source_topics: Sequence[String] = ()
    repartition_sink_topics: Sequence[String] = ()
    state_changelog_topics: Sequence[TopicInfo] = ()
    repartition_source_topics: Sequence[TopicInfo] = ()


@struct
class Topology:
    epoch: Int32 = 0
    subtopologies: Sequence[Subtopology] | None = None
    """None if the topology has not been initialized."""


@struct
class Assignment:
    active_tasks: Sequence[TaskIds] = ()
    standby_tasks: Sequence[TaskIds] = ()
    warmup_tasks: Sequence[TaskIds] = ()


@struct
class Member:
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: Sequence[KeyValue] = ()
    task_offsets: Sequence[TaskOffset] = ()
    task_end_offsets: Sequence[TaskOffset] = ()
    assignment: Assignment = part(Assignment)
    target_assignment: Assignment = part(Assignment)
    is_classic: Bool = False
    """True for a member that uses the classic protocol."""


@struct
class DescribedGroup:
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    topology: Topology | None = None
    members: Sequence[Member] = ()
    authorized_operations: Int32 = NO_OPERATIONS
    topology_description: TopologyDescription | None = since(1, default=None)
    topology_description_status: Int8 = since(1, default=0)
    """0 not requested, 1 not stored, 2 error, 3 available (KIP-1331)."""
    assignor_name: String | None = since(1, default=None, ignorable=True)
    """The assignor of the next assignment, which may differ from that of the current one (KIP-1357)."""


@message(key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: Sequence[DescribedGroup] = ()
