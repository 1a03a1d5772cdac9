"""Few sentences a minute, and the number of the others."""

from __future__ import annotations

import logging

import pytest

from ottla.broker.bounded_log import MOST, SPAN_SECONDS, BoundedLog
from ottla.broker.timers import Timers
from ottla.clock import ManualClock

DOOR = "door"


class Minutes:
    """A bounded log, and time that passes when it is told to."""

    def __init__(self) -> None:
        self.timers, self.clock = Timers(), ManualClock(7.0)
        self.log = BoundedLog(logging.getLogger(DOOR), "doors banged", self.timers, self.clock)

    def tell(self, count: int) -> None:
        for number in range(count):
            self.log.tell(f"door {number} banged")

    def pass_by(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Of this log: threads of tests before may have something to say as well."""
    return [record.message for record in caplog.records if record.name == DOOR]


@pytest.fixture
def minutes() -> Minutes:
    return Minutes()


def test_few_sentences_are_all_told_and_nothing_after_them(minutes: Minutes, caplog: pytest.LogCaptureFixture) -> None:
    minutes.tell(MOST)
    minutes.pass_by(SPAN_SECONDS)
    assert told(caplog) == [f"door {number} banged" for number in range(MOST)]
    assert not len(minutes.timers)


def test_of_many_the_number_of_the_others_is_told_when_the_minute_is_over(
    minutes: Minutes, caplog: pytest.LogCaptureFixture
) -> None:
    minutes.tell(1000)
    minutes.pass_by(SPAN_SECONDS - 1)
    assert len(told(caplog)) == MOST
    minutes.pass_by(1)
    assert told(caplog)[MOST:] == ["980 more doors banged within that minute"]


def test_the_next_minute_begins_with_the_next_sentence(minutes: Minutes, caplog: pytest.LogCaptureFixture) -> None:
    minutes.tell(MOST + 1)
    minutes.pass_by(SPAN_SECONDS)
    minutes.pass_by(1000)
    minutes.tell(MOST + 5)
    minutes.pass_by(SPAN_SECONDS - 1)
    assert len(told(caplog)) == 2 * MOST + 1


def test_what_was_not_said_is_said_at_the_end_and_once(minutes: Minutes, caplog: pytest.LogCaptureFixture) -> None:
    minutes.tell(MOST + 3)
    minutes.log.tell_rest()
    minutes.log.tell_rest()
    assert told(caplog)[MOST:] == ["3 more doors banged within that minute"]
