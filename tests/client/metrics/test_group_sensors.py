"""Metrics of a group member, derived from its events."""

from __future__ import annotations

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
from ottla.client.metrics.client_metrics import ClientMetrics, MetricsBuilder
from ottla.client.metrics.group_sensors import GroupSensors
from ottla.client.metrics.registry import Registry
from ottla.clock import ManualClock

NAMED = JoinRefused("MEMBER_ID_REQUIRED")
JOINED = Joined(1, "m", "range", leads=True)
ASSIGNED = Assigned((), ())


class Member:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.sensors = GroupSensors(Registry(2, 30_000, self.clock.monotonic()), self.clock.monotonic)

    def hears(self, *events: Any, each: float = 1.0) -> None:
        for event in events:
            self.clock.advance(each)
            self.sensors.record_event(event)

    def metrics(self) -> ClientMetrics:
        builder = MetricsBuilder("c")
        self.sensors.write(builder, self.clock.monotonic())
        return builder.build()


def test_a_rebalance_lasts_from_its_beginning_to_the_assignment_and_a_name_is_no_failure() -> None:
    member = Member()
    member.hears(RebalanceStarted(""), NAMED, RebalanceStarted(""), JOINED, Synced(1), ASSIGNED)
    metrics = member.metrics()
    assert (metrics.value("rebalance-total"), metrics.value("failed-rebalance-total")) == (1, 0)
    assert metrics.value("rebalance-latency-total") == metrics.value("rebalance-latency-max") == 5000
    assert (metrics.value("join-time-avg"), metrics.value("sync-time-avg")) == (3000, 1000)
    member.clock.advance(7)
    assert member.metrics().value("last-rebalance-seconds-ago") == 7


def test_a_failed_join_is_counted_and_an_abandoned_one_is_not() -> None:
    member = Member()
    member.hears(RebalanceStarted(""), JoinRefused("REBALANCE_IN_PROGRESS"), Left("the consumer is closed"), ASSIGNED)
    metrics = member.metrics()
    assert (metrics.value("failed-rebalance-total"), metrics.value("rebalance-total")) == (1, 0)


def test_heartbeats_are_counted_and_the_slowest_response_is_reported() -> None:
    member = Member()
    member.hears(HeartbeatSent(1), HeartbeatAnswered(""))
    member.hears(HeartbeatSent(1), HeartbeatAnswered(""), each=0.25)
    metrics = member.metrics()
    assert (metrics.value("heartbeat-total"), metrics.value("heartbeat-response-time-max")) == (2, 1000)
    assert metrics.value("last-heartbeat-seconds-ago") == 0
