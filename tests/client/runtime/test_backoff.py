from __future__ import annotations

from random import Random

import pytest

from ottla.client.runtime.backoff import ExponentialBackoff


class NoJitter(Random):
    def uniform(self, a: float, b: float) -> float:
        return 1.0


def test_each_pause_is_twice_as_long_up_to_the_longest() -> None:
    backoff = ExponentialBackoff(100, 1000, NoJitter())
    assert [backoff.span(n) for n in range(7)] == [0.0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_pauses_differ_by_up_to_a_fifth() -> None:
    backoff = ExponentialBackoff(100, 1000, Random(1))
    spans = [backoff.span(1) for _ in range(200)]
    assert 0.08 <= min(spans) < 0.085
    assert 0.115 < max(spans) <= 0.12


def test_the_longest_pause_is_never_exceeded() -> None:
    backoff = ExponentialBackoff(100, 1000, Random(1))
    assert max(backoff.span(n) for n in range(1, 5000)) <= 1.0


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_first_pause_above_the_longest_counts_as_both(attempts: int) -> None:
    assert ExponentialBackoff(500, 100, NoJitter()).span(attempts) == 0.5
