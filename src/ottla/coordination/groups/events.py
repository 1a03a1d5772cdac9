"""The events of groups of either kind and of their offsets. Random ids and times are part of an event."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest


class TimerName(NamedTuple):
    """The name of a group's timer: a kind, a group, and for some kinds a member."""

    kind: str
    group: str
    member: str = ""


class JoinRequested(Struct, frozen=True):
    """JoinGroup was received. The reply is a JoinGroupResponse, usually sent later."""

    ticket: int
    request: JoinGroupRequest
    version: int
    """The version of the request, which determines what the client understands."""
    new_member_id: str
    """A random, unused member id."""
    client_id: str
    client_host: str
    wall_ms: int


class SyncRequested(Struct, frozen=True):
    """SyncGroup was received, with the assignments if the member is the leader. The reply is a SyncGroupResponse, possibly sent later."""

    ticket: int
    request: SyncGroupRequest
    wall_ms: int


class HeartbeatReceived(Struct, frozen=True):
    """Heartbeat was received. The reply is an error code."""

    ticket: int
    request: HeartbeatRequest


class LeaveRequested(Struct, frozen=True):
    """LeaveGroup was received. The reply is an error code, or a list with one for each member."""

    ticket: int
    request: LeaveGroupRequest
    members: Sequence[MemberIdentity]
    wall_ms: int


class ClientDisconnected(Struct, frozen=True):
    """The connection of the request with the ticket `waiting` was closed. There is no reply."""

    ticket: int
    group: str
    waiting: int
    wall_ms: int


class TimerExpired(Struct, frozen=True):
    """A timer of the shard expired. There is no reply."""

    ticket: int
    name: TimerName
    wall_ms: int


class Loaded(Struct, frozen=True):
    """The shard was built from its log: every member gets a new session. There is no reply."""

    ticket: int
    wall_ms: int


class OffsetsCommitted(Struct, frozen=True):
    """OffsetCommit was received. The reply is an error code."""

    ticket: int
    group: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    wall_ms: int
    """The timestamp of the commit."""
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    retention_ms: int = -1
    """How long to keep the offsets; -1 for the broker's default."""
    version: int = 10
    """The version of the request, which determines the errors that the client knows."""


class TransactionalOffsetsCommitted(Struct, frozen=True):
    """TxnOffsetCommit was received: the offsets take effect when the transaction commits. The reply is an error code."""

    ticket: int
    group: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    producer_id: int
    producer_epoch: int
    wall_ms: int
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    version: int = 5
    """The version of the request, which determines the errors that the client knows."""


class OffsetDeletionRequested(Struct, frozen=True):
    """OffsetDelete was received. The reply is an error code, or a list with one for each partition."""

    ticket: int
    group: str
    partitions: Sequence[TopicPartition]


class TopicsDeleted(Struct, frozen=True):
    """Topics were deleted, so their committed offsets are deleted. The reply is the number of deleted offsets.

    Otherwise a new topic of the same name would be read from the offset at which the old one was left.
    """

    ticket: int
    topics: Collection[str]


class GroupDeletionRequested(Struct, frozen=True):
    """DeleteGroups was received. The reply is a list with an error code for each group."""

    ticket: int
    groups: Sequence[str]


class ExpiryDue(Struct, frozen=True):
    """Expired offsets are to be deleted. The reply is the number of deleted offsets."""

    ticket: int
    wall_ms: int
