"""StreamsGroupHeartbeat: join, stay in and leave a group of Kafka Streams with server-side assignment of tasks (KIP-1071)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Int64, Message, String, UInt16, message, part, since, struct


@struct
class KeyValue:
    key: String = ""
    value: String = ""


@struct
class TopicInfo:
    """An internal topic of the application; 0 stands for a number that the application does not determine."""

    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: Sequence[KeyValue] = ()


@struct
class CopartitionGroup:
    """Topics that need the same number of partitions, by their positions in the lists of the subtopology."""

    source_topics: Sequence[Int16] = ()
    source_topic_regex: Sequence[Int16] = ()
    repartition_source_topics: Sequence[Int16] = ()


@struct
class Subtopology:
    subtopology_id: String = ""
    source_topics: Sequence[String] = ()
    source_topic_regex: Sequence[String] = ()
    state_changelog_topics: Sequence[TopicInfo] = ()
    repartition_sink_topics: Sequence[String] = ()
    repartition_source_topics: Sequence[TopicInfo] = ()
    copartition_groups: Sequence[CopartitionGroup] = ()


@struct
class Topology:
    epoch: Int32 = 0
    subtopologies: Sequence[Subtopology] = ()


@struct
class TaskIds:
    """The tasks of one subtopology: one for each partition of its input topics."""

    subtopology_id: String = ""
    partitions: Sequence[Int32] = ()


@struct
class Endpoint:
    """Where a member answers interactive queries."""

    host: String = ""
    port: UInt16 = 0


@struct
class TaskOffset:
    """The sum of the offsets in a task's changelogs."""

    subtopology_id: String = ""
    partition: Int32 = 0
    offset: Int64 = 0


@message(key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest(Message):
    """None, and -1 for times, mean: unchanged since the last heartbeat."""

    group_id: String = ""
    member_id: String = ""
    """Created by the member itself."""
    member_epoch: Int32 = 0
    """0 to join, -1 to leave, -2 to leave temporarily as a static member."""
    endpoint_information_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: Topology | None = None
    """Sent only to join."""
    active_tasks: Sequence[TaskIds] | None = None
    standby_tasks: Sequence[TaskIds] | None = None
    warmup_tasks: Sequence[TaskIds] | None = None
    process_id: String | None = None
    """The process of the member, which may run several members."""
    user_endpoint: Endpoint | None = None
    client_tags: Sequence[KeyValue] | None = None
    task_offsets: Sequence[TaskOffset] | None = None
    task_end_offsets: Sequence[TaskOffset] | None = None
    shutdown_application: Bool = False
    """True to stop all members of the group."""


@struct
class Status:
    """A condition of the group that the member should report."""

    status_code: Int8 = 0
    status_detail: String = ""


@struct
class TopicPartition:
    topic: String = ""
    partitions: Sequence[Int32] = ()


@struct
class EndpointToPartitions:
    """The partitions of one member, with its endpoint; several members may have the same endpoint."""

    user_endpoint: Endpoint = part(Endpoint)
    active_partitions: Sequence[TopicPartition] = ()
    standby_partitions: Sequence[TopicPartition] = ()


@message(key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse(Message):
    """None means: unchanged since the last heartbeat."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String = ""
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    acceptable_recovery_lag_legacy: Int32 = since(0, until=0, default=0)
    task_offset_interval_ms: Int32 = 0
    acceptable_recovery_lag: Int64 = since(1, default=-1, ignorable=True)
    """The largest lag of a task that may become active; -1 if the broker does not know the config."""
    status: Sequence[Status] | None = None
    active_tasks: Sequence[TaskIds] | None = None
    standby_tasks: Sequence[TaskIds] | None = None
    warmup_tasks: Sequence[TaskIds] | None = None
    topology_description_required: Bool = since(1, default=False)
    """True if the member should send its topology in StreamsGroupTopologyDescriptionUpdate (KIP-1331)."""
    endpoint_information_epoch: Int32 = 0
    partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = None
