"""The events of a member's talk with its coordinator, read off requests and answers.

Pure.
"""

from __future__ import annotations

from typing import Any

from ottla.client.client_response import ClientResponse
from ottla.client.consumer.events import (
    HeartbeatAnswered,
    HeartbeatSent,
    Joined,
    JoinRefused,
    Left,
    RebalanceStarted,
    Synced,
)
from ottla.client.consumer.membership.step import Send
from ottla.client.future import Future
from ottla.errors import name_of
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.sync_group import SyncGroupRequest


def sending(step: Send) -> Any:
    """The event of a request that leaves; None where that is no news."""
    match step.message:
        case JoinGroupRequest(reason=reason):
            return RebalanceStarted(reason or "")
        case HeartbeatRequest():
            return HeartbeatSent(step.generation.generation_id)
        case LeaveGroupRequest(members=members):
            return Left(members[0].reason or "")
    return None


def outcome(step: Send, done: Future[ClientResponse]) -> Any:
    """The event of an answer, or of none; None where that is no news."""
    error = done.exception(0)
    answer = None if error is not None else done.result(0).message
    trouble = str(error) if answer is None else name_of(answer.error_code) if answer.error_code else ""
    match step.message:
        case HeartbeatRequest():
            return HeartbeatAnswered(trouble)
        case JoinGroupRequest() | SyncGroupRequest() if trouble:
            return JoinRefused(trouble)
        case JoinGroupRequest():
            assert answer is not None
            leads = answer.leader == answer.member_id
            return Joined(answer.generation_id, answer.member_id, answer.protocol_name or "", leads)
        case SyncGroupRequest():
            return Synced(step.generation.generation_id)
    return None
