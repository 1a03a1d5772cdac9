"""The last values of what clients have pushed, within bounds."""

from __future__ import annotations

import math
from uuid import UUID

import pytest

from ottla.coordination.telemetry.pushed_metrics import LONGEST_NAME, PushedMetrics
from ottla.coordination.telemetry.subscription import Client
from ottla.protocol.metrics_data import MetricKind, Point

WHO = Client(*"abcdef")
A, B, C = (UUID(int=number) for number in (5, 6, 7))


def values(pushed: PushedMetrics) -> dict[UUID, dict[str, float]]:
    return {who: {name: value.number for (name, _), value in pusher.values.items()} for who, pusher in pushed}


def test_deltas_are_added_up_and_other_metrics_keep_the_last_value() -> None:
    pushed = PushedMetrics()
    for number in (1.0, 2.0, 4.0):
        pushed.take(A, WHO, [Point(kind.value, kind, number) for kind in MetricKind])
    assert values(pushed) == {A: {"gauge": 4.0, "delta": 7.0, "cumulative": 4.0}}


def test_metrics_missing_from_a_push_stay_and_expired_ones_are_removed() -> None:
    pushed = PushedMetrics()
    pushed.take(A, WHO, [Point("x", MetricKind.GAUGE, 1.0)])
    pushed.take(A, WHO, [Point("y", MetricKind.GAUGE, 2.0)])
    assert (values(pushed), pushed.series_count) == ({A: {"x": 1.0, "y": 2.0}}, 2)
    pushed.forget([A, B])
    assert (values(pushed), pushed.series_count) == ({}, 0)


def test_the_longest_silent_client_is_evicted_and_never_the_new_one() -> None:
    pushed = PushedMetrics(most_series=3)
    for who in (A, B):
        pushed.take(who, WHO, [Point("x", MetricKind.GAUGE, 1.0)])
    pushed.take(A, WHO, [])
    pushed.take(C, WHO, [Point(str(number), MetricKind.GAUGE, 1.0) for number in range(5)])
    assert (set(values(pushed)), pushed.series_count) == ({C}, 3)
    pushed.take(C, WHO, [Point("0", MetricKind.GAUGE, 9.0), Point("more", MetricKind.GAUGE, 9.0)])
    assert values(pushed)[C] == {"0": 9.0, "1": 1.0, "2": 1.0}


@pytest.mark.parametrize(
    "point",
    [
        Point("", MetricKind.GAUGE, 1.0),
        Point("n", MetricKind.GAUGE, math.nan),
        Point("n", MetricKind.DELTA, math.inf),
        Point("n" * (LONGEST_NAME + 1), MetricKind.GAUGE, 1.0),
        Point("n", MetricKind.GAUGE, 1.0, (("k", "v" * (LONGEST_NAME + 1)),)),
        Point("n", MetricKind.GAUGE, 1.0, tuple((str(number), "") for number in range(21))),
    ],
)
def test_invalid_metrics_are_ignored(point: Point) -> None:
    pushed = PushedMetrics()
    pushed.take(A, WHO, [point])
    assert pushed.series_count == 0
