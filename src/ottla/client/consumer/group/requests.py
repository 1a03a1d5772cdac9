"""What a member says to its coordinator.

Pure: builds messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.coordinator.generation import Generation
from ottla.protocol.messages.consumer_protocol import PROTOCOL_TYPE
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

LONGEST_REASON = 255
"""The coordinator refuses longer ones (KIP-800)."""


def join(
    config: ConsumerConfig, generation: Generation, protocols: Sequence[JoinGroupRequestProtocol], reason: str | None
) -> JoinGroupRequest:
    """Ask to be let in, or to stay when the group is made up anew."""
    return JoinGroupRequest(
        group_id=config.group_id or "",
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.max_poll_interval_ms,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason and reason[:LONGEST_REASON],
    )


def sync(config: ConsumerConfig, generation: Generation, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
    """Ask what one was given; the leader brings what it gave to each member id."""
    return SyncGroupRequest(
        group_id=config.group_id or "",
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=generation.protocol_name,
        assignments=[SyncGroupRequestAssignment(member, data) for member, data in assignments.items()],
    )


def heartbeat(config: ConsumerConfig, generation: Generation) -> HeartbeatRequest:
    """Say that one is there."""
    return HeartbeatRequest(
        group_id=config.group_id or "",
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id,
    )


def leave(group_id: str, member_id: str, reason: str) -> LeaveGroupRequest:
    """Say good-bye; in the form that coordinators since Kafka 2.4 take."""
    return LeaveGroupRequest(
        group_id=group_id, members=[MemberIdentity(member_id=member_id, reason=reason[:LONGEST_REASON])]
    )


def leave_of_old(message: LeaveGroupRequest) -> LeaveGroupRequest:
    """The same for an older coordinator."""
    return LeaveGroupRequest(group_id=message.group_id, member_id=message.members[0].member_id)
