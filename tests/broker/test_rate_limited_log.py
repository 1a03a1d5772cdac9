"""Few sentences a minute, and the number of the others."""

from __future__ import annotations

import logging

import pytest

from ottla.broker.event_loop.rate_limited_log import MOST, SPAN_SECONDS, RateLimitedLog
from ottla.broker.event_loop.timers import Timers
from ottla.clock import ManualClock

DOOR = "door"


class Minutes:
    """A rate-limited log with a manual clock."""

    def __init__(self) -> None:
        self.timers, self.clock = Timers(), ManualClock(7.0)
        self.log = RateLimitedLog(logging.getLogger(DOOR), "doors banged", self.timers, self.clock)

    def log_lines(self, count: int) -> None:
        for number in range(count):
            self.log.log(f"door {number} banged")

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())


def list_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages of this log; threads of earlier tests may still log."""
    return [record.message for record in caplog.records if record.name == DOOR]


@pytest.fixture
def minutes() -> Minutes:
    return Minutes()


def test_few_messages_are_all_logged(minutes: Minutes, caplog: pytest.LogCaptureFixture) -> None:
    minutes.log_lines(MOST)
    minutes.advance(SPAN_SECONDS)
    assert list_messages(caplog) == [f"door {number} banged" for number in range(MOST)]
    assert not len(minutes.timers)


def test_of_many_messages_the_number_of_the_suppressed_ones_is_logged_after_a_minute(
    minutes: Minutes, caplog: pytest.LogCaptureFixture
) -> None:
    minutes.log_lines(1000)
    minutes.advance(SPAN_SECONDS - 1)
    assert len(list_messages(caplog)) == MOST
    minutes.advance(1)
    assert list_messages(caplog)[MOST:] == ["980 more doors banged in the last minute"]


def test_the_next_minute_starts_with_the_next_message(minutes: Minutes, caplog: pytest.LogCaptureFixture) -> None:
    minutes.log_lines(MOST + 1)
    minutes.advance(SPAN_SECONDS)
    minutes.advance(1000)
    minutes.log_lines(MOST + 5)
    minutes.advance(SPAN_SECONDS - 1)
    assert len(list_messages(caplog)) == 2 * MOST + 1


def test_suppressed_messages_are_counted_once_at_the_end(minutes: Minutes, caplog: pytest.LogCaptureFixture) -> None:
    minutes.log_lines(MOST + 3)
    minutes.log.log_suppressed()
    minutes.log.log_suppressed()
    assert list_messages(caplog)[MOST:] == ["3 more doors banged in the last minute"]
