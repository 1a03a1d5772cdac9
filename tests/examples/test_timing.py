"""The durations of the steps of the demo."""

from __future__ import annotations

from examples.flights.timing import Timing


def test_each_moment_belongs_to_the_stage_that_was_entered_last() -> None:
    moments = iter([0.0, 2.0, 12.0, 12.25, 20.0, 21.0])
    timing = Timing("reading", lambda: next(moments))
    for stage in ("starting", "closing", "starting", "working"):
        timing.enter(stage)
    assert str(timing) == "21 s: 18 s starting, 2 s reading, 1 s working"
