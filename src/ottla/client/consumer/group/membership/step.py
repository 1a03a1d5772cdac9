"""The next step of the heartbeat thread, decided by a membership."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.client.consumer.coordinator.generation import Generation
from ottla.protocol.messages.join_group import JoinGroupResponse


class FindCoordinatorStep(NamedTuple):
    """Look up the coordinator, for at most this many seconds."""

    span: float


class SendStep(NamedTuple):
    """Send a request to the coordinator; its result is reported to `handle_response` or `handle_failure`."""

    message: Any
    timeout_ms: int
    generation: Generation
    reason: str = ""
    """The reason of a leave request."""


class AssignStep(NamedTuple):
    """Assign the partitions as the group leader; the result is reported to `distribute` or `fail`."""

    response: JoinGroupResponse


class DisconnectStep(NamedTuple):
    """Disconnect from the coordinator, because it does not respond or is busy with an obsolete request."""

    reason: str
    should_find_coordinator: bool


class WaitStep(NamedTuple):
    """Wait for this many seconds, unless an event occurs."""

    span: float


class EndStep(NamedTuple):
    """Stop the thread: everything is sent."""


Step = FindCoordinatorStep | SendStep | AssignStep | DisconnectStep | WaitStep | EndStep
