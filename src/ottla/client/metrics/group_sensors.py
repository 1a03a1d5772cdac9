"""Sensors of group membership, recorded from the consumer's events. All of them are rare.

Events come from the heartbeat thread and from the user's thread; a lock serializes them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from ottla.client.consumer.events import (
    Assigned,
    HeartbeatAnswered,
    HeartbeatSent,
    Joined,
    JoinRefused,
    Left,
    RebalanceStarted,
    Synced,
)
from ottla.client.metrics.client_metrics import MetricsBuilder
from ottla.client.metrics.network_sensors import write_counted, write_spread
from ottla.client.metrics.registry import Registry

GROUP = "consumer-coordinator-metrics"
HOUR = 3600
MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
"""Not a failure: the response contains the member id for the second JoinGroup (KIP-394)."""


class GroupSensors:
    """The group metrics of one member."""

    def __init__(self, registry: Registry, monotonic: Callable[[], float]) -> None:
        self._registry = registry
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._heartbeats, self._answers = registry.sensor(), registry.sensor()
        self._joins, self._syncs = registry.sensor(), registry.sensor()
        self._rebalances, self._refusals = registry.sensor(), registry.sensor()
        self._sent: float | None = None
        self._answered: float | None = None
        self._start: float | None = None
        """The start of the rebalance in progress."""
        self._joined: float | None = None
        self._rebalanced: float | None = None
        """The end of the last rebalance."""

    def record_event(self, event: Any) -> None:
        """Record an event of the consumer."""
        handler = HANDLERS.get(type(event))
        if handler is not None:
            with self._lock:
                now = self._monotonic()
                self._registry.tick(now)
                handler(self, event, now)

    def _record_heartbeat_sent(self, event: Any, now: float) -> None:
        self._heartbeats.record(1)
        self._sent = now

    def _record_heartbeat_response(self, event: Any, now: float) -> None:
        if self._sent is not None:
            self._answers.record(now - self._sent)
        self._sent, self._answered = None, now

    def _record_rebalance_started(self, event: Any, now: float) -> None:
        self._start = self._start or now  # otherwise this is a retry within the same rebalance
        self._joined = now

    def _record_join_refused(self, event: JoinRefused, now: float) -> None:
        if event.error != MEMBER_ID_REQUIRED:
            self._refusals.record(1)

    def _record_joined(self, event: Any, now: float) -> None:
        if self._start is not None:
            self._joins.record(now - self._start)
        self._joined = now

    def _record_synced(self, event: Any, now: float) -> None:
        if self._joined is not None:
            self._syncs.record(now - self._joined)

    def _record_assigned(self, event: Any, now: float) -> None:
        if self._start is not None:
            self._rebalances.record(now - self._start)
        self._start, self._rebalanced = None, now

    def _record_left(self, event: Any, now: float) -> None:
        self._start = None

    def write_heartbeats(self, builder: MetricsBuilder, now: float, group: str) -> None:
        """Write the metrics of heartbeats."""
        read, answered = self._registry.read, self._answered
        write_counted(builder.select_group(group), "heartbeat", [read(self._heartbeats, now)])
        builder.put("heartbeat-response-time-max", read(self._answers, now).maximum * 1000)
        builder.put("last-heartbeat-seconds-ago", math.nan if answered is None else max(0.0, now - answered))

    def write(self, builder: MetricsBuilder, now: float) -> None:
        """Write `consumer-coordinator-metrics`."""
        read = self._registry.read
        self.write_heartbeats(builder, now, GROUP)
        for name, sensor in (("join", self._joins), ("sync", self._syncs)):
            write_counted(builder, name, [read(sensor, now)])
            write_spread(builder, f"{name}-time", read(sensor, now), 1000)
        rebalances = read(self._rebalances, now)
        builder.put("rebalance-total", rebalances.event_count)
        builder.put("rebalance-rate-per-hour", rebalances.per_second(rebalances.recent_count) * HOUR)
        builder.put("rebalance-latency-total", rebalances.total * 1000)
        write_spread(builder, "rebalance-latency", rebalances, 1000)
        refusals = read(self._refusals, now)
        builder.put("failed-rebalance-total", refusals.event_count)
        builder.put("failed-rebalance-rate-per-hour", refusals.per_second(refusals.recent_count) * HOUR)
        rebalanced = self._rebalanced
        builder.put("last-rebalance-seconds-ago", math.nan if rebalanced is None else max(0.0, now - rebalanced))


HANDLERS: dict[type, Callable[[GroupSensors, Any, float], None]] = {
    HeartbeatSent: GroupSensors._record_heartbeat_sent,
    HeartbeatAnswered: GroupSensors._record_heartbeat_response,
    RebalanceStarted: GroupSensors._record_rebalance_started,
    Joined: GroupSensors._record_joined,
    JoinRefused: GroupSensors._record_join_refused,
    Synced: GroupSensors._record_synced,
    Assigned: GroupSensors._record_assigned,
    Left: GroupSensors._record_left,
}
