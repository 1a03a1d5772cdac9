"""Derive the events of a membership from its requests and responses. Pure."""

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
from ottla.client.consumer.group.membership.step import SendStep
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.future import Future
from ottla.errors import name_of
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.protocol.messages.sync_group import SyncGroupRequest


def request_events(step: SendStep) -> Iterator[Any]:
    """Yield the events of a request that is sent."""
    match step.message:
        case JoinGroupRequest(reason=reason):
            yield RebalanceStarted(reason or "")
        case ConsumerGroupHeartbeatRequest(member_epoch=epoch) | ShareGroupHeartbeatRequest(member_epoch=epoch) if (
            epoch == JOINING
        ):
            yield RebalanceStarted("")
        case LeaveGroupRequest() | ConsumerGroupHeartbeatRequest() | ShareGroupHeartbeatRequest() if step.reason:
            yield Left(step.reason)
        case HeartbeatRequest() | ConsumerGroupHeartbeatRequest() | ShareGroupHeartbeatRequest():
            yield HeartbeatSent(step.generation.generation_id)


def response_events(step: SendStep, done: Future[ClientResponse]) -> Iterator[Any]:
    """Yield the events of a response, or of its failure."""
    error = done.exception(0)
    answer = None if error is not None else done.result(0).message
    error_text = str(error) if answer is None else name_of(answer.error_code) if answer.error_code else ""
    match step.message:
        case HeartbeatRequest():
            yield HeartbeatAnswered(error_text)
        case JoinGroupRequest() | SyncGroupRequest() if error_text:
            yield JoinRefused(error_text)
        case JoinGroupRequest():
            assert answer is not None
            leads = answer.leader == answer.member_id
            yield Joined(answer.generation_id, answer.member_id, answer.protocol_name or "", leads)
        case SyncGroupRequest():
            yield Synced(step.generation.generation_id)
        case ConsumerGroupHeartbeatRequest() if not step.reason:
            yield from heartbeat_events(step.message, answer, error_text, "consumer")
        case ShareGroupHeartbeatRequest() if not step.reason:
            yield from heartbeat_events(step.message, answer, error_text, "share")


def heartbeat_events(
    request: ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest, answer: Any, error_text: str, protocol: str
) -> Iterator[Any]:
    """Yield the events of a heartbeat of KIP-848 or KIP-932, which also joins and syncs."""
    joins = request.member_epoch == JOINING
    if answer is None or error_text:
        yield JoinRefused(error_text) if joins else HeartbeatAnswered(error_text)
        return
    if joins:
        yield Joined(answer.member_epoch, answer.member_id or request.member_id, protocol, leads=False)
    else:
        yield HeartbeatAnswered("")
    if answer.assignment is not None:
        if not joins:
            yield RebalanceStarted("the coordinator changed the assignment")
        yield Synced(answer.member_epoch)
