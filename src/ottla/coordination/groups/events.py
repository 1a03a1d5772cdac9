"""What can happen to groups of either kind and to their offsets. Chance and time come in with the event."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest


class AlarmName(NamedTuple):
    """What a group waits for: a kind of `Waits`, and for some of them a member."""

    kind: str
    group: str
    member: str = ""


class JoinRequested(Struct, frozen=True):
    """Somebody wants to be a member. The reply is a JoinGroupResponse, for most of them later."""

    ticket: int
    request: JoinGroupRequest
    version: int
    """Of the request, as that decides what the client can understand."""
    fresh_id: str
    """A member id that nobody has."""
    client_id: str
    client_host: str
    wall_ms: int


class SyncRequested(Struct, frozen=True):
    """A member wants its assignment, or brings everybody's. The reply is a SyncGroupResponse, maybe later."""

    ticket: int
    request: SyncGroupRequest
    wall_ms: int


class HeartbeatReceived(Struct, frozen=True):
    """A member lives. The reply is an error code."""

    ticket: int
    request: HeartbeatRequest


class LeaveRequested(Struct, frozen=True):
    """Members go. The reply is an error code, or one for each of them, in order."""

    ticket: int
    request: LeaveGroupRequest
    members: Sequence[MemberIdentity]
    wall_ms: int


class CallerGone(Struct, frozen=True):
    """Who waited under `waiting` for the end of a join or a sync has hung up. There is no reply."""

    ticket: int
    group: str
    waiting: int
    wall_ms: int


class AlarmRang(Struct, frozen=True):
    """A moment has come that the machine asked for. There is no reply."""

    ticket: int
    name: AlarmName
    wall_ms: int


class Loaded(Struct, frozen=True):
    """The machine has been built from its log: everybody gets a fresh session. There is no reply."""

    ticket: int
    wall_ms: int


class OffsetsCommitted(Struct, frozen=True):
    """A member, or somebody for a group without members, wants these offsets kept. The reply is an error code."""

    ticket: int
    group: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    wall_ms: int
    """The commit's timestamp."""
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    retention_ms: int = -1
    """How long to keep them; -1 for as long as the broker keeps all."""
    version: int = 10
    """Of the request, as that decides which errors the client knows."""


class TransactionalOffsetsCommitted(Struct, frozen=True):
    """A producer wants these offsets kept once its transaction commits. The reply is an error code."""

    ticket: int
    group: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    producer_id: int
    producer_epoch: int
    wall_ms: int
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class OffsetDeletionRequested(Struct, frozen=True):
    """Somebody wants a group to forget offsets. The reply is an error code, or one for each partition."""

    ticket: int
    group: str
    partitions: Sequence[TopicPartition]


class TopicsDeleted(Struct, frozen=True):
    """Topics are no more: what groups committed for them is forgotten. The reply is the count of offsets forgotten.

    Without it a new topic of the same name would be read from where its predecessor was left.
    """

    ticket: int
    topics: Collection[str]


class GroupDeletionRequested(Struct, frozen=True):
    """Somebody wants groups gone. The reply is an error code for each, in order."""

    ticket: int
    groups: Sequence[str]


class ExpiryDue(Struct, frozen=True):
    """It is time to forget what is too old. The reply is the count of offsets forgotten."""

    ticket: int
    wall_ms: int
