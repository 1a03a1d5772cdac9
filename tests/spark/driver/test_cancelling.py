"""Ctrl-C in a program that has started Spark."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from ottla.spark.driver.session import cancel_at_interrupt

pytestmark = [pytest.mark.behaviour("D1"), pytest.mark.usefixtures("usual_signals")]


def session(done: list[str]) -> SparkSession:
    """Return a session with jobs that complete at once."""
    context = SimpleNamespace(cancelAllJobs=lambda: done.append("cancelled"))
    return cast(SparkSession, SimpleNamespace(sparkContext=context))


def test_jobs_are_cancelled_and_the_program_is_interrupted() -> None:
    done: list[str] = []
    cancel_at_interrupt(session(done))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert done == ["cancelled"]


def test_an_interrupt_works_after_java_has_ended() -> None:
    broken = SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=lambda: 1 / 0))
    cancel_at_interrupt(cast(SparkSession, broken))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_handler_of_the_program_stays() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    cancel_at_interrupt(session([]))
    signal.raise_signal(signal.SIGINT)
    assert heard == [signal.SIGINT]
