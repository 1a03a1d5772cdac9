"""What a membership has the heartbeat's thread do next."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.client.consumer.coordinator.generation import Generation
from ottla.protocol.messages.join_group import JoinGroupResponse


class Find(NamedTuple):
    """Look the coordinator up, and come back after so many seconds at the latest."""

    span: float


class Send(NamedTuple):
    """Send this to the coordinator; the outcome comes back to `answered` or `unanswered`."""

    message: Any
    timeout_ms: int
    generation: Generation
    reason: str = ""
    """Why a member leaves."""


class Assign(NamedTuple):
    """Share the partitions out: this member leads; the outcome comes back to `share` or `fail`."""

    answer: JoinGroupResponse


class Disconnect(NamedTuple):
    """The coordinator is of no more use, or is busy with what no longer matters: end the connection."""

    why: str
    find_anew: bool


class Wait(NamedTuple):
    """Nothing to do for so many seconds, unless something happens."""

    span: float


class End(NamedTuple):
    """Everything is said."""


Step = Find | Send | Assign | Disconnect | Wait | End
