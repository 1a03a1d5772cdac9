"""Ctrl-C while Java is starting."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from ottla.spark.driver.held_back import interrupt_held_back

pytestmark = pytest.mark.behaviour("D1")


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """As a program has it that has not started Spark."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(done: list[str], interrupts: int, error: Exception | None = None) -> None:
    """A start that is interrupted so many times before it is done."""
    with interrupt_held_back():
        for _ in range(interrupts):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error
        done.append("started")


@pytest.mark.parametrize(("interrupts", "wanted"), [(1, ["started"]), (2, [])])
def test_one_counts_once_java_is_there_and_a_second_one_at_once(interrupts: int, wanted: list[str]) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        start(done, interrupts)
    assert done == wanted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_there_is_the_error() -> None:
    with pytest.raises(ValueError, match="no Java"):
        start([], 1, ValueError("no Java"))


def test_handlers_of_others_stay() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    with interrupt_held_back():
        signal.raise_signal(signal.SIGINT)
        assert heard == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupt_held_back():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
