"""Build the requests of a classic member. Pure."""

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
"""The coordinator rejects longer reasons (KIP-800)."""


def build_join(
    config: ConsumerConfig, generation: Generation, protocols: Sequence[JoinGroupRequestProtocol], reason: str | None
) -> JoinGroupRequest:
    """Build the request to join, or to rejoin in a rebalance."""
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


def build_sync(config: ConsumerConfig, generation: Generation, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
    """Build the request for the assignment; the leader includes the assignments of all members."""
    return SyncGroupRequest(
        group_id=config.group_id or "",
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=generation.protocol_name,
        assignments=[SyncGroupRequestAssignment(member, data) for member, data in assignments.items()],
    )


def build_heartbeat(config: ConsumerConfig, generation: Generation) -> HeartbeatRequest:
    """Build a heartbeat."""
    return HeartbeatRequest(
        group_id=config.group_id or "",
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=config.group_instance_id,
    )


def build_leave(group_id: str, member_id: str, reason: str) -> LeaveGroupRequest:
    """Build the leave request in the form of Kafka 2.4 and later."""
    return LeaveGroupRequest(
        group_id=group_id, members=[MemberIdentity(member_id=member_id, reason=reason[:LONGEST_REASON])]
    )


def leave_request_before_v3(message: LeaveGroupRequest) -> LeaveGroupRequest:
    """Convert a leave request to the form of older coordinators."""
    return LeaveGroupRequest(group_id=message.group_id, member_id=message.members[0].member_id)
