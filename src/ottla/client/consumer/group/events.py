"""The events of a member's talk with its coordinator, read off requests and answers.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.client.consumer.events import (
    HeartbeatAnswered,
    HeartbeatSent,
    Joined,
    JoinRefused,
    Left,
    RebalanceStarted,
    Synced,
)
from ottla.client.consumer.group.membership.heartbeat_fields import JOINING
from ottla.client.consumer.group.membership.step import Send
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.future import Future
from ottla.errors import name_of
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.sync_group import SyncGroupRequest


def sending(step: Send) -> Iterator[Any]:
    """The events of a request that leaves."""
    match step.message:
        case JoinGroupRequest(reason=reason):
            yield RebalanceStarted(reason or "")
        case ConsumerGroupHeartbeatRequest(member_epoch=epoch) if epoch == JOINING:
            yield RebalanceStarted("")
        case LeaveGroupRequest() | ConsumerGroupHeartbeatRequest() if step.reason:
            yield Left(step.reason)
        case HeartbeatRequest() | ConsumerGroupHeartbeatRequest():
            yield HeartbeatSent(step.generation.generation_id)


def outcome(step: Send, done: Future[ClientResponse]) -> Iterator[Any]:
    """The events of an answer, or of none."""
    error = done.exception(0)
    answer = None if error is not None else done.result(0).message
    trouble = str(error) if answer is None else name_of(answer.error_code) if answer.error_code else ""
    match step.message:
        case HeartbeatRequest():
            yield HeartbeatAnswered(trouble)
        case JoinGroupRequest() | SyncGroupRequest() if trouble:
            yield JoinRefused(trouble)
        case JoinGroupRequest():
            assert answer is not None
            leads = answer.leader == answer.member_id
            yield Joined(answer.generation_id, answer.member_id, answer.protocol_name or "", leads)
        case SyncGroupRequest():
            yield Synced(step.generation.generation_id)
        case ConsumerGroupHeartbeatRequest() if not step.reason:
            yield from of_heartbeat(step.message, answer, trouble)


def of_heartbeat(request: ConsumerGroupHeartbeatRequest, answer: Any, trouble: str) -> Iterator[Any]:
    """The events of a heartbeat of KIP-848, which joins and syncs as well."""
    joins = request.member_epoch == JOINING
    if answer is None or trouble:
        yield JoinRefused(trouble) if joins else HeartbeatAnswered(trouble)
        return
    if joins:
        yield Joined(answer.member_epoch, answer.member_id or request.member_id, "consumer", leads=False)
    else:
        yield HeartbeatAnswered("")
    if answer.assignment is not None:
        if not joins:
            yield RebalanceStarted("the coordinator has shared out anew")
        yield Synced(answer.member_epoch)
