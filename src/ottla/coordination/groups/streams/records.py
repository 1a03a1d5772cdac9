"""The records of groups of Kafka Streams in `__consumer_offsets`, in Kafka's schemas.

A record without a value deletes the earlier one of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.serde import decode_pair, encode_pair, pairs_of
from ottla.protocol.messages import streams_group_heartbeat
from ottla.protocol.messages.streams_group_heartbeat import CopartitionGroup, Endpoint, KeyValue
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Message, String, message, struct, tagged


@message(key=17, versions="0")
class StreamsGroupMetadataKey(Message):
    group_id: String = ""


@struct
class LastAssignmentConfig:
    key: String = ""
    value: String = ""


@message(key=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue(Message):
    epoch: Int32 = 0
    metadata_hash: Int64 = 0
    """The digest of the topics that the group reads (KIP-1101); each coordinator may compute it in its own way."""
    validated_topology_epoch: Int32 = tagged(0, since=0, default=-1)
    """The epoch of the topology of which the topics have been checked."""
    last_assignment_configs: Sequence[LastAssignmentConfig] | None = tagged(1, since=0, default=())
    stored_description_topology_epoch: Int32 = tagged(2, since=0, default=-1)
    """The epoch of the stored description; -1 for none, -2 if it is not known whether it was stored (KIP-1331)."""
    failed_description_topology_epoch: Int32 = tagged(3, since=0, default=-1)
    """The epoch of a description that was refused for good; no member has to send it again."""


@message(key=19, versions="0")
class StreamsGroupMemberMetadataKey(Message):
    group_id: String = ""
    member_id: String = ""


@message(key=19, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue(Message):
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32 = 0
    process_id: String = ""
    user_endpoint: Endpoint | None = None
    client_tags: Sequence[KeyValue] = ()


@message(key=20, versions="0")
class StreamsGroupTargetAssignmentMetadataKey(Message):
    group_id: String = ""


@message(key=20, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Int64 = tagged(0, since=0, default=0, ignorable=True)
    """The time at which the assignment was computed (KIP-1263)."""


@struct
class TaskIds:
    """The tasks of one subtopology; the epochs are those in which its active tasks were assigned."""

    subtopology_id: String = ""
    partitions: Sequence[Int32] = ()
    assignment_epochs: Sequence[Int32] | None = tagged(0, since=0, default=())


@message(key=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey(Message):
    group_id: String = ""
    member_id: String = ""


@message(key=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: Sequence[streams_group_heartbeat.TaskIds] = ()
    standby_tasks: Sequence[streams_group_heartbeat.TaskIds] = ()
    warmup_tasks: Sequence[streams_group_heartbeat.TaskIds] = ()


@message(key=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey(Message):
    group_id: String = ""
    member_id: String = ""


@message(key=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    active_tasks: Sequence[TaskIds] = ()
    standby_tasks: Sequence[TaskIds] = ()
    warmup_tasks: Sequence[TaskIds] = ()
    active_tasks_pending_revocation: Sequence[TaskIds] = ()
    standby_tasks_pending_revocation: Sequence[TaskIds] = ()
    warmup_tasks_pending_revocation: Sequence[TaskIds] = ()


@message(key=23, versions="0")
class StreamsGroupTopologyKey(Message):
    group_id: String = ""


@struct
class TopicConfig:
    key: String = ""
    value: String = ""


@struct
class TopicInfo:
    """An internal topic of the application; 0 stands for a number that the application does not determine."""

    name: String = ""
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    topic_configs: Sequence[TopicConfig] = ()


@struct
class Subtopology:
    subtopology_id: String = ""
    source_topics: Sequence[String] = ()
    source_topic_regex: Sequence[String] = ()
    state_changelog_topics: Sequence[TopicInfo] = ()
    repartition_sink_topics: Sequence[String] = ()
    repartition_source_topics: Sequence[TopicInfo] = ()
    copartition_groups: Sequence[CopartitionGroup] = ()


@message(key=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue(Message):
    epoch: Int32 = 0
    subtopologies: Sequence[Subtopology] = ()


PAIRS = pairs_of(
    (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
)


class StreamsGroupRecord(NamedTuple):
    """One record of a group of Kafka Streams: a key of one of the kinds, and a value or None."""

    key: Message
    value: Message | None

    @property
    def group_id(self) -> str:
        group_id: str = self.key.group_id  # type: ignore[attr-defined]  # the first field of each key
        return group_id


def encode_record(record: StreamsGroupRecord) -> tuple[bytes, bytes | None]:
    """Return key and value as bytes."""
    return encode_pair(record.key, record.value)


def decode_record(key: bytes | None, value: bytes | None) -> StreamsGroupRecord | None:
    """Return a record of the log; None if its kind is not in `PAIRS`. Raise CorruptRecordError if it is malformed."""
    found = decode_pair(PAIRS, key, value)
    return None if found is None else StreamsGroupRecord(*found)
