"""The states of a broker at the active controller, and the transitions at its heartbeats (KIP-631). Pure.

FENCED ── caught up, want_fence is off ──► UNFENCED ── want_shut_down, leads a partition ──► CONTROLLED_SHUTDOWN
   ▲                                          │ │                                                 │
   └── session expired, or want_fence ────────┘ │ want_shut_down,                                 │ leads nothing, and every other
                                                │ leads nothing                                   │ active broker has replayed that
                                                ▼                                                 ▼
                                           SHUTDOWN_NOW ◄─────────────────────────────────────────┘

A broker starts fenced and asks to stay fenced until it has replayed the metadata. In a controlled shutdown the
controller first elects other leaders for its partitions. The broker may stop only after the other brokers have replayed
those elections: otherwise clients would be sent to a leader that has stopped. A fenced broker may stop at once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest


class BrokerControlState(Enum):
    """The states, with Kafka's names."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        """True if the broker leads nothing and is in no ISR in this state."""
        return self in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)


def next_state(
    state: BrokerControlState,
    request: BrokerHeartbeatRequest,
    is_caught_up: bool,
    leads_partition: Callable[[], bool],
    is_handed_over: Callable[[], bool],
) -> BrokerControlState:
    """Return the state of the broker after a heartbeat.

    `is_caught_up` is true if the broker has replayed its own registration. `leads_partition` returns true if it leads a partition.
    The last argument returns true if every other active broker has replayed the elections of the new leaders.
    """
    if state is BrokerControlState.FENCED:
        return next_state_when_fenced(request, is_caught_up)
    if state is BrokerControlState.UNFENCED:
        return next_state_when_unfenced(request, leads_partition)
    return (
        BrokerControlState.CONTROLLED_SHUTDOWN
        if leads_partition() or not is_handed_over()
        else BrokerControlState.SHUTDOWN_NOW
    )


def next_state_when_fenced(request: BrokerHeartbeatRequest, is_caught_up: bool) -> BrokerControlState:
    """Return the next state of a fenced broker."""
    if request.want_shut_down:
        return BrokerControlState.SHUTDOWN_NOW
    return BrokerControlState.UNFENCED if is_caught_up and not request.want_fence else BrokerControlState.FENCED


def next_state_when_unfenced(
    request: BrokerHeartbeatRequest, leads_partition: Callable[[], bool]
) -> BrokerControlState:
    """Return the next state of an unfenced broker that is not in a controlled shutdown."""
    if request.want_fence:
        return BrokerControlState.SHUTDOWN_NOW if request.want_shut_down else BrokerControlState.FENCED
    if not request.want_shut_down:
        return BrokerControlState.UNFENCED
    return BrokerControlState.CONTROLLED_SHUTDOWN if leads_partition() else BrokerControlState.SHUTDOWN_NOW
