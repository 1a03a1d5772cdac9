"""Which clients push, when, and what they are answered, in time that is only told."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.telemetry import instances
from ottla.coordination.telemetry.instances import Instance, Instances
from ottla.coordination.telemetry.subscription import Client, Subscription
from ottla.errors import ErrorCode

WHO = Client("", "web-1", "mine", "1.2", "127.0.0.1", "4711")
ME, OTHER = UUID(int=77), UUID(int=78)
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def of(*configs: dict[str, str]) -> Instances:
    found = Instances()
    found.subscribe(map(Subscription.of, configs))
    return found


def asked(known: Instances, now: float, who: UUID = ME) -> Instance:
    found = known.ask(who, WHO, now)
    assert isinstance(found, Instance), found
    return found


def push(known: Instances, now: float, *, terminating: bool = False, subscription: int | None = None) -> int:
    """By the subscription of now, unless another is told."""
    current = known._instances[ME].subscription_id if ME in known._instances else 0
    number = current if subscription is None else subscription
    return known.push(ME, WHO, number, 4, 10, 100, now, terminating=terminating)


def test_a_client_pushes_once_in_an_interval_and_at_once_after_it_has_asked() -> None:
    known = of({"metrics": "*", "interval.ms": "1000"})
    asked(known, 0.0)
    assert [push(known, now) for now in (0.1, 1.0, 1.1, 2.0, 2.1)] == [0, THROTTLED, 0, THROTTLED, 0]


def test_a_client_asks_once_in_an_interval_and_again_after_a_refusal_that_says_so() -> None:
    known = of({"metrics": "*", "interval.ms": "1000"})
    asked(known, 0.0)
    assert known.ask(ME, WHO, 0.9) == THROTTLED
    assert push(known, 1.0, subscription=5) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    asked(known, 1.1)
    assert push(known, 1.2) == 0
    assert known.ask(ME, WHO, 2.1) == THROTTLED
    asked(known, 2.2)


def test_the_last_push_may_come_at_any_time_and_nothing_after_it() -> None:
    known = of({"metrics": "*"})
    asked(known, 0.0)
    assert push(known, 0.1) == 0
    assert push(known, 0.2, terminating=True) == 0
    assert push(known, 1000.0) == ErrorCode.INVALID_REQUEST


def test_what_is_wanted_of_a_client_is_what_all_subscriptions_want_that_match() -> None:
    mine = {"metrics": "b.,a.", "interval.ms": "2000", "match": "client_id=web-.*,client_source_port=4711"}
    other = {"metrics": "c.", "interval.ms": "100", "match": "client_id=web"}
    assert asked(of(mine, other), 0.0).wanted == (("a.", "b."), 2000)
    assert asked(of(mine, {"metrics": "*", "interval.ms": "400000"}), 0.0).wanted == (("*",), 2000)
    assert asked(of(), 0.0).wanted == ((), 300_000)
    assert asked(of({"metrics": "*", "match": "client_id=("}), 0.0).wanted == ((), 300_000)


def test_the_number_of_what_is_wanted_changes_with_it_and_with_the_client() -> None:
    known = of({"metrics": "a."})
    mine, others = asked(known, 0.0).subscription_id, asked(known, 0.0, OTHER).subscription_id
    known.subscribe([Subscription.of({"metrics": "b."})])
    assert len({mine, others, asked(known, 0.0).subscription_id}) == 3
    assert all(-(2**31) <= number < 2**31 for number in (mine, others))


def test_a_client_that_is_silent_for_three_intervals_goes_but_not_within_a_minute() -> None:
    known = of({"metrics": "*", "interval.ms": "30000"})
    asked(known, 0.0)
    assert (known.expire(89.9), known.expire(90.0), len(known)) == ([], [ME], 0)
    known.subscribe([Subscription.of({"metrics": "*", "interval.ms": "100"})])
    asked(known, 100.0)
    assert (known.expire(159.9), known.expire(160.0)) == ([], [ME])


def test_of_too_many_the_one_goes_that_was_silent_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "MOST_INSTANCES", 2)
    known = of({"metrics": "*", "interval.ms": "100"})
    for now, number in enumerate((77, 78, 77, 79)):
        asked(known, float(now), UUID(int=number))
    assert (known.expire(3.0), len(known)) == ([OTHER], 2)
