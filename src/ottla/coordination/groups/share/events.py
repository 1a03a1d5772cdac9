"""The events of share groups, in addition to those of all groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.groups.consumer.member import TopicIdPartition
from ottla.errors import ErrorCode
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

UNKNOWN_OFFSET = -1
"""The leader of the partition finds the start offset by `share.auto.offset.reset`."""


class ShareHeartbeat(Struct, frozen=True):
    """A member joins, stays or leaves. The reply is a ShareGroupHeartbeatResponse."""

    ticket: int
    request: ShareGroupHeartbeatRequest
    client_id: str
    client_host: str
    wall_ms: int


class StateInitialized(Struct, frozen=True):
    """The share coordinator has created the states of these partitions. There is no reply."""

    ticket: int
    group: str
    partitions: Collection[TopicIdPartition]


class ShareOffsetsAlterRequested(Struct, frozen=True):
    """AlterShareGroupOffsets was received. The reply is an error code, or OffsetChanges to send to the share coordinator.

    As in Kafka the group is created if it does not exist, so that its start can be set before its first member joins.
    """

    ticket: int
    group: str
    offsets: Mapping[tuple[str, int], int]
    """Topic name and partition → start offset."""
    wall_ms: int


class ShareOffsetsDeleteRequested(Struct, frozen=True):
    """DeleteShareGroupOffsets was received. The reply is an error code, or OffsetDeletions to send to the share coordinator."""

    ticket: int
    group: str
    topics: Sequence[str]


class ShareGroupDeletionStarted(Struct, frozen=True):
    """DeleteGroups names a share group: its states are deleted before the group. The reply is an error code, or OffsetDeletions."""

    ticket: int
    group: str


class StateDeleted(Struct, frozen=True):
    """The share coordinator has deleted the states of these topics. There is no reply."""

    ticket: int
    group: str
    topic_ids: Collection[UUID]


class ShareTopicsDeleted(Struct, frozen=True):
    """Topics were deleted; the share coordinator deletes their states by itself. There is no reply."""

    ticket: int
    topic_ids: Collection[UUID]


class InitialOffset(NamedTuple):
    """A state that the share coordinator has to create: InitializeShareGroupState for one partition."""

    topic_id: UUID
    partition: int
    start_offset: int


class Initialization(NamedTuple):
    """The states that a group waits for. The group's epoch becomes their state epoch."""

    group: str
    state_epoch: int
    offsets: tuple[InitialOffset, ...]


class OffsetChanges(Struct, frozen=True):
    """The answer to an alteration: what to initialize, and the partitions that are refused."""

    initialization: Initialization
    errors: Mapping[tuple[str, int], ErrorCode] = field(default_factory=dict)


class OffsetDeletions(Struct, frozen=True):
    """The answer to a deletion: the states to delete, and the topics that are refused."""

    group: str
    partitions: tuple[TopicIdPartition, ...]
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)


class DescribedPartitions(Struct, frozen=True):
    """The partitions of a DescribeShareGroupOffsets request: those whose state summary is read, and those that are refused.

    A partition without a state has no summary, and its start offset in the response is -1.
    """

    partitions: tuple[TopicIdPartition, ...]
    errors: Mapping[tuple[str, int], ErrorCode] = field(default_factory=dict)


ShareGroupEvent = (
    ShareHeartbeat
    | StateInitialized
    | ShareOffsetsAlterRequested
    | ShareOffsetsDeleteRequested
    | ShareGroupDeletionStarted
    | StateDeleted
    | ShareTopicsDeleted
)
