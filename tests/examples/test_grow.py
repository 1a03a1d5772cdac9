"""The drawing of a topic that moves to another cluster."""

from __future__ import annotations

from examples.grow.timeline import Moment, Timeline


def test_an_event_is_drawn_before_the_sample_that_shows_it() -> None:
    timeline = Timeline(lambda: 0, lambda: "")
    timeline.moments = [Moment(0.5, 500, "KK"), Moment(1.0, 1000, "OK")]
    timeline.steps = [(0.7, "one has moved")]
    assert timeline.drawing().splitlines() == [
        f"   0.5 s  KK  {'█' * 20} 500/s",
        "          ── one has moved",
        f"   1.0 s  OK  {'█' * 40} 1,000/s",
    ]


def test_a_stopped_load_is_drawn_too() -> None:
    timeline = Timeline(lambda: 0, lambda: "")
    timeline.moments = [Moment(0.5, 0, "··")]
    assert timeline.drawing() == "   0.5 s  ··   0/s"
