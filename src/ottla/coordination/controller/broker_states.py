"""Where a broker is, as its controller sees it, and where its heartbeat leads it. Pure.

FENCED ──wants in, knows the metadata so far──► UNFENCED ──wants to go, leads something──► CONTROLLED_SHUTDOWN
   ▲                                               │                                              │
   └────silent for too long, or wants it───────────┤ wants to go, leads nothing                   │ leads nothing any more, and
                                                   ▼                                              ▼ all others know
                                              SHUTDOWN_NOW ◄──────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest


class BrokerState(Enum):
    """By Kafka's names for them."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


def next_state(
    state: BrokerState,
    heartbeat: BrokerHeartbeatRequest,
    caught_up: bool,
    leads: Callable[[], bool],
    handed_over: Callable[[], bool],
) -> BrokerState:
    """Where it is after its heartbeat. `leads` is whether it leads a partition, `handed_over` whether all others know who does."""
    if state is BrokerState.FENCED:
        return of_fenced(heartbeat, caught_up)
    if state is BrokerState.UNFENCED:
        return of_unfenced(heartbeat, leads)
    return BrokerState.CONTROLLED_SHUTDOWN if leads() or not handed_over() else BrokerState.SHUTDOWN_NOW


def of_fenced(heartbeat: BrokerHeartbeatRequest, caught_up: bool) -> BrokerState:
    if heartbeat.want_shut_down:
        return BrokerState.SHUTDOWN_NOW
    return BrokerState.UNFENCED if caught_up and not heartbeat.want_fence else BrokerState.FENCED


def of_unfenced(heartbeat: BrokerHeartbeatRequest, leads: Callable[[], bool]) -> BrokerState:
    if heartbeat.want_fence:
        return BrokerState.SHUTDOWN_NOW if heartbeat.want_shut_down else BrokerState.FENCED
    if not heartbeat.want_shut_down:
        return BrokerState.UNFENCED
    return BrokerState.CONTROLLED_SHUTDOWN if leads() else BrokerState.SHUTDOWN_NOW
