"""What a consumer measures of its place in the group, heard from the events that tell of it anyway: all of them are rare.

Told by the heartbeat's thread and by the user's, one at a time.
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
from ottla.client.metrics.client_metrics import Sheet
from ottla.client.metrics.network_sensors import write_counted, write_spread
from ottla.client.metrics.registry import Registry

GROUP = "consumer-coordinator-metrics"
HOUR = 3600
NEEDS_NAME = "MEMBER_ID_REQUIRED"
"""No error: it brings the name with which to ask again (KIP-394)."""


class GroupSensors:
    """Of one member."""

    def __init__(self, registry: Registry, monotonic: Callable[[], float]) -> None:
        self._registry = registry
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._heartbeats, self._answers = registry.sensor(), registry.sensor()
        self._joins, self._syncs = registry.sensor(), registry.sensor()
        self._rebalances, self._refusals = registry.sensor(), registry.sensor()
        self._sent: float | None = None
        self._answered: float | None = None
        self._begun: float | None = None
        """When the rebalance began that is under way."""
        self._joined: float | None = None
        self._rebalanced: float | None = None
        """When the last one was over."""

    def hear(self, event: Any) -> None:
        """An event of this consumer's."""
        note = TOLD.get(type(event))
        if note is not None:
            with self._lock:
                now = self._monotonic()
                self._registry.tick(now)
                note(self, event, now)

    def _heartbeat_sent(self, event: Any, now: float) -> None:
        self._heartbeats.record(1)
        self._sent = now

    def _heartbeat_answered(self, event: Any, now: float) -> None:
        if self._sent is not None:
            self._answers.record(now - self._sent)
        self._sent, self._answered = None, now

    def _rebalance_started(self, event: Any, now: float) -> None:
        self._begun = self._begun or now  # else it is tried again
        self._joined = now

    def _was_refused(self, event: JoinRefused, now: float) -> None:
        if event.error != NEEDS_NAME:
            self._refusals.record(1)

    def _has_joined(self, event: Any, now: float) -> None:
        if self._begun is not None:
            self._joins.record(now - self._begun)
        self._joined = now

    def _has_synced(self, event: Any, now: float) -> None:
        if self._joined is not None:
            self._syncs.record(now - self._joined)

    def _was_assigned(self, event: Any, now: float) -> None:
        if self._begun is not None:
            self._rebalances.record(now - self._begun)
        self._begun, self._rebalanced = None, now

    def _has_left(self, event: Any, now: float) -> None:
        self._begun = None

    def write(self, sheet: Sheet, now: float) -> None:
        """Of `consumer-coordinator-metrics`."""
        read = self._registry.read
        write_counted(sheet.of(GROUP), "heartbeat", [read(self._heartbeats, now)])
        sheet.put("heartbeat-response-time-max", read(self._answers, now).maximum * 1000)
        for name, sensor in (("join", self._joins), ("sync", self._syncs)):
            write_counted(sheet, name, [read(sensor, now)])
            write_spread(sheet, f"{name}-time", read(sensor, now), 1000)
        rebalances = read(self._rebalances, now)
        sheet.put("rebalance-total", rebalances.times)
        sheet.put("rebalance-rate-per-hour", rebalances.per_second(rebalances.lately) * HOUR)
        sheet.put("rebalance-latency-total", rebalances.total * 1000)
        write_spread(sheet, "rebalance-latency", rebalances, 1000)
        refusals = read(self._refusals, now)
        sheet.put("failed-rebalance-total", refusals.times)
        sheet.put("failed-rebalance-rate-per-hour", refusals.per_second(refusals.lately) * HOUR)
        for name, moment in (("heartbeat", self._answered), ("rebalance", self._rebalanced)):
            sheet.put(f"last-{name}-seconds-ago", math.nan if moment is None else max(0.0, now - moment))


TOLD: dict[type, Callable[[GroupSensors, Any, float], None]] = {
    HeartbeatSent: GroupSensors._heartbeat_sent,
    HeartbeatAnswered: GroupSensors._heartbeat_answered,
    RebalanceStarted: GroupSensors._rebalance_started,
    Joined: GroupSensors._has_joined,
    JoinRefused: GroupSensors._was_refused,
    Synced: GroupSensors._has_synced,
    Assigned: GroupSensors._was_assigned,
    Left: GroupSensors._has_left,
}
