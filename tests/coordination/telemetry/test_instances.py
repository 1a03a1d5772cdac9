"""Clients that push metrics: timing and responses, with time as an argument."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.telemetry import instances
from ottla.coordination.telemetry.instances import Instance, Instances
from ottla.coordination.telemetry.subscription import Client, TelemetrySubscription
from ottla.errors import ErrorCode

WHO = Client("", "web-1", "mine", "1.2", "127.0.0.1", "4711")
ME, OTHER = UUID(int=77), UUID(int=78)
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def of(*configs: dict[str, str]) -> Instances:
    found = Instances()
    found.subscribe(map(TelemetrySubscription.of, configs))
    return found


def request_subscription(known: Instances, now: float, who: UUID = ME) -> Instance:
    found = known.subscribe_client(who, WHO, now)
    assert isinstance(found, Instance), found
    return found


def push(known: Instances, now: float, *, terminating: bool = False, subscription: int | None = None) -> int:
    """Push with the current subscription, unless another is given."""
    current = known._instances[ME].subscription_id if ME in known._instances else 0
    number = current if subscription is None else subscription
    return known.push(ME, WHO, number, 4, 10, 100, now, terminating=terminating)


def test_a_client_may_push_once_per_interval_and_at_once_after_a_subscription() -> None:
    known = of({"metrics": "*", "interval.ms": "1000"})
    request_subscription(known, 0.0)
    assert [push(known, now) for now in (0.1, 1.0, 1.1, 2.0, 2.1)] == [0, THROTTLED, 0, THROTTLED, 0]


def test_a_client_may_get_the_subscription_once_per_interval_and_after_an_error() -> None:
    known = of({"metrics": "*", "interval.ms": "1000"})
    request_subscription(known, 0.0)
    assert known.subscribe_client(ME, WHO, 0.9) == THROTTLED
    assert push(known, 1.0, subscription=5) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    request_subscription(known, 1.1)
    assert push(known, 1.2) == 0
    assert known.subscribe_client(ME, WHO, 2.1) == THROTTLED
    request_subscription(known, 2.2)


def test_the_last_push_is_accepted_at_any_time_and_nothing_after_it() -> None:
    known = of({"metrics": "*"})
    request_subscription(known, 0.0)
    assert push(known, 0.1) == 0
    assert push(known, 0.2, terminating=True) == 0
    assert push(known, 1000.0) == ErrorCode.INVALID_REQUEST


def test_a_client_gets_the_union_of_the_matching_subscriptions() -> None:
    mine = {"metrics": "b.,a.", "interval.ms": "2000", "match": "client_id=web-.*,client_source_port=4711"}
    other = {"metrics": "c.", "interval.ms": "100", "match": "client_id=web"}
    assert request_subscription(of(mine, other), 0.0).wanted == (("a.", "b."), 2000)
    assert request_subscription(of(mine, {"metrics": "*", "interval.ms": "400000"}), 0.0).wanted == (("*",), 2000)
    assert request_subscription(of(), 0.0).wanted == ((), 300_000)
    assert request_subscription(of({"metrics": "*", "match": "client_id=("}), 0.0).wanted == ((), 300_000)


def test_the_subscription_id_changes_with_the_subscription_and_the_client() -> None:
    known = of({"metrics": "a."})
    mine, others = (
        request_subscription(known, 0.0).subscription_id,
        request_subscription(known, 0.0, OTHER).subscription_id,
    )
    known.subscribe([TelemetrySubscription.of({"metrics": "b."})])
    assert len({mine, others, request_subscription(known, 0.0).subscription_id}) == 3
    assert all(-(2**31) <= number < 2**31 for number in (mine, others))


def test_a_client_silent_for_three_intervals_is_removed_but_not_within_a_minute() -> None:
    known = of({"metrics": "*", "interval.ms": "30000"})
    request_subscription(known, 0.0)
    assert (known.expire(89.9), known.expire(90.0), len(known)) == ([], [ME], 0)
    known.subscribe([TelemetrySubscription.of({"metrics": "*", "interval.ms": "100"})])
    request_subscription(known, 100.0)
    assert (known.expire(159.9), known.expire(160.0)) == ([], [ME])


def test_the_longest_silent_client_is_evicted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "MOST_INSTANCES", 2)
    known = of({"metrics": "*", "interval.ms": "100"})
    for now, number in enumerate((77, 78, 77, 79)):
        request_subscription(known, float(now), UUID(int=number))
    assert (known.expire(3.0), len(known)) == ([OTHER], 2)
