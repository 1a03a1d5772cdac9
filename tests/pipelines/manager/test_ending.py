"""Queries are ended between two batches, if they come there in time."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.manager.ending import PAUSE, end, end_all


class Told:
    """A query as Spark tells of it at each moment, and when it was stopped."""

    def __init__(self, *moments: tuple[bool, str | None]) -> None:
        self.moments, self.now, self.stopped_at = moments, 0, -1
        self.isActive = True

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self.moments[self.now][0]}

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        begun = self.moments[self.now][1]
        return None if begun is None else {"timestamp": begun}

    def stop(self) -> None:
        self.stopped_at, self.isActive = self.now, False

    def pass_time(self, _: float) -> None:
        self.now += 1


def stopped_at(query: Told, until: float = 60.0) -> int:
    end([query], until, clock=lambda: query.now * PAUSE, wait=query.pass_time)
    return query.stopped_at


def test_one_that_waits_for_rows_ends_at_once() -> None:
    assert stopped_at(Told((False, "1"))) == 0


def test_one_at_a_batch_ends_after_it() -> None:
    assert stopped_at(Told((True, None), (True, None), (False, "1"))) == 2


def test_one_that_is_never_between_batches_ends_after_the_next_that_is_told_of() -> None:
    assert stopped_at(Told((True, "1"), (True, "1"), (True, "2"), (True, "2"))) == 2


def test_a_batch_that_takes_too_long_is_broken_off() -> None:
    assert stopped_at(Told(*[(True, None)] * 9), until=5 * PAUSE) == 5


def test_one_that_has_failed_is_not_waited_for() -> None:
    query = Told((True, None))
    query.isActive = False
    assert stopped_at(query) == 0


class EndedJavaError(Exception):
    """What a question to a process that has ended comes to."""


def refused() -> None:
    raise EndedJavaError


def test_all_are_ended_though_spark_goes_at_the_same_moment() -> None:
    ended: list[int] = []
    end_all([lambda: ended.append(1), refused, lambda: ended.append(2)], goes=lambda: True)
    assert ended == [1, 2]


def test_what_fails_while_spark_is_there_is_raised() -> None:
    with pytest.raises(EndedJavaError):
        end_all([refused], goes=lambda: False)
