"""The events of the active controller. Events of the metadata alone are in `cluster/events.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from ottla.protocol.schema import Message


class RandomValues(NamedTuple):
    """The random values of an event. The caller draws them, so that the decision stays deterministic."""

    topic_ids: Sequence[UUID] = ()
    """A new id for each requested topic."""
    seed: int = 0
    """The seed of the placement of new partitions."""


NO_RANDOM_VALUES = RandomValues()


class ControllerRequest(Struct, frozen=True):
    """A request to the active controller. The reply is the response message."""

    ticket: int
    request: Message
    random_values: RandomValues = NO_RANDOM_VALUES


class ControllerActivated(Struct, frozen=True):
    """The event that this controller became the active one. Every unfenced broker gets a session."""


class SessionTimerExpired(Struct, frozen=True):
    """The timer SESSIONS expired: brokers without a heartbeat for the session timeout are fenced."""


class BrokerProcessEnded(Struct, frozen=True):
    """The process of a broker has ended: its connection closed, and its address refuses new ones."""

    broker_id: int
    broker_epoch: int


class PreferredElectionDue(Struct, frozen=True):
    """Elect the preferred leaders. The reply is true if there may be more partitions to balance."""

    ticket: int


class UncleanElectionDue(Struct, frozen=True):
    """Elect leaders for leaderless partitions of topics with unclean elections. The reply is as for PreferredElectionDue."""

    ticket: int


ControllerEvent = (
    ControllerRequest
    | ControllerActivated
    | SessionTimerExpired
    | BrokerProcessEnded
    | PreferredElectionDue
    | UncleanElectionDue
)
