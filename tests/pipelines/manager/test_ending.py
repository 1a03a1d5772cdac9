"""Queries are ended between two batches, if they come there in time."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.pipelines.manager.ending import PAUSE, end_all, end_queries


class PipelineEvent:
    """A query with Spark's status at each moment, and the time when it was stopped."""

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


def stopped_at(query: PipelineEvent, until: float = 60.0) -> int:
    end_queries([query], until, clock=lambda: query.now * PAUSE, wait=query.pass_time)
    return query.stopped_at


def test_a_task_that_waits_for_rows_stops_at_once() -> None:
    assert stopped_at(PipelineEvent((False, "1"))) == 0


def test_a_task_in_a_batch_stops_after_it() -> None:
    assert stopped_at(PipelineEvent((True, None), (True, None), (False, "1"))) == 2


def test_a_query_that_is_never_between_batches_ends_after_the_next_reported_one() -> None:
    assert stopped_at(PipelineEvent((True, "1"), (True, "1"), (True, "2"), (True, "2"))) == 2


def test_a_batch_that_takes_too_long_is_broken_off() -> None:
    assert stopped_at(PipelineEvent(*[(True, None)] * 9), until=5 * PAUSE) == 5


def test_one_that_has_failed_is_not_waited_for() -> None:
    query = PipelineEvent((True, None))
    query.isActive = False
    assert stopped_at(query) == 0


class EndedJavaError(Exception):
    """The error of a call to a Java process that has ended."""


def refused() -> None:
    raise EndedJavaError


def test_all_queries_are_stopped_even_if_spark_stops_at_the_same_moment() -> None:
    ended: list[int] = []
    end_all([lambda: ended.append(1), refused, lambda: ended.append(2)], is_java_ending=lambda: True)
    assert ended == [1, 2]


def test_an_error_while_spark_runs_is_raised() -> None:
    with pytest.raises(EndedJavaError):
        end_all([refused], is_java_ending=lambda: False)
