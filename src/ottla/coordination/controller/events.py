"""What can happen to an active controller; everything else that can happen to the metadata is in `cluster/events.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ottla.protocol.schema import Message


class Chance(NamedTuple):
    """What is drawn by whoever asks."""

    topic_ids: Sequence[UUID] = ()
    """An unused id for each topic that is wanted."""
    seed: int = 0
    """Where new partitions begin to be laid out follows from it."""


NO_CHANCE = Chance()


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody asks something of the controller. The reply is the response to it."""

    ticket: int
    request: Message
    chance: Chance = NO_CHANCE


@dataclass(frozen=True, slots=True)
class Activated:
    """The controller leads the quorum from now on: every broker has a session from now on."""


@dataclass(frozen=True, slots=True)
class SessionsDue:
    """The alarm of that name: brokers that were silent for too long are fenced."""


@dataclass(frozen=True, slots=True)
class BrokerGone:
    """The process of a broker has ended: nobody listens at its address, and it has hung up."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class BalanceDue:
    """Leaders are to go back to the preferred replicas. The reply is whether there may be more of them."""

    ticket: int


@dataclass(frozen=True, slots=True)
class RecoveryDue:
    """Partitions that nobody leads are to be led by whoever lives, where that is allowed. The reply is as for BalanceDue."""

    ticket: int


ControllerEvent = Asked | Activated | SessionsDue | BrokerGone | BalanceDue | RecoveryDue
