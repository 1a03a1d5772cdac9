"""What can happen to an active controller; everything else that can happen to the metadata is in `cluster/events.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from ottla.protocol.schema import Message


class Chance(NamedTuple):
    """What is drawn by whoever asks."""

    topic_ids: Sequence[UUID] = ()
    """An unused id for each topic that is wanted."""
    seed: int = 0
    """Where new partitions begin to be laid out follows from it."""


NO_CHANCE = Chance()


class Asked(Struct, frozen=True):
    """Somebody asks something of the controller. The reply is the response to it."""

    ticket: int
    request: Message
    chance: Chance = NO_CHANCE


class Activated(Struct, frozen=True):
    """The controller leads the quorum from now on: every broker has a session from now on."""


class SessionsDue(Struct, frozen=True):
    """The alarm of that name: brokers that were silent for too long are fenced."""


class BrokerGone(Struct, frozen=True):
    """The process of a broker has ended: nobody listens at its address, and it has hung up."""

    broker_id: int
    broker_epoch: int


class BalanceDue(Struct, frozen=True):
    """Leaders are to go back to the preferred replicas. The reply is whether there may be more of them."""

    ticket: int


class RecoveryDue(Struct, frozen=True):
    """Partitions that nobody leads are to be led by whoever lives, where that is allowed. The reply is as for BalanceDue."""

    ticket: int


ControllerEvent = Asked | Activated | SessionsDue | BrokerGone | BalanceDue | RecoveryDue
