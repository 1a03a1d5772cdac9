"""The life of a pipeline, on paper."""

from __future__ import annotations

from ottla.pipelines.manager.life import LONGEST_BACKOFF, WELL_AFTER, Life, State, backoff


def failed_at(life: Life, *moments: float) -> Life:
    """Started and failed at each of these moments."""
    for now in moments:
        life = life.started(now).failed("no", now)
    return life


def test_a_pipeline_that_fails_is_started_again_after_a_while_that_grows() -> None:
    life = failed_at(Life(), 0.0)
    assert (life.state, life.start_at, life.reason) == (State.WAITING, 1.0, "no")
    assert [life.may_start(now) for now in (0.9, 1.0)] == [False, True]
    assert failed_at(life, 1.0, 10.0).start_at == 10.0 + 4.0
    assert [backoff(n) for n in (1, 2, 7, 1000)] == [1.0, 2.0, LONGEST_BACKOFF, LONGEST_BACKOFF]


def test_failures_before_a_long_good_time_are_forgotten() -> None:
    life = failed_at(Life(), 0.0, 1.0, 3.0).started(7.0).runs()
    assert life.failed("no", 7.0 + WELL_AFTER).failures == 1
    assert life.failed("no", 7.0 + WELL_AFTER - 1).failures == 4


def test_what_is_to_run_once_gives_up_after_three_tries() -> None:
    assert failed_at(Life(once=True), 0.0, 1.0).state is State.WAITING
    assert failed_at(Life(once=True), 0.0, 1.0, 3.0).state is State.FAILED


def test_what_cannot_be_mended_by_starting_again_is_over() -> None:
    life = Life().started(0.0).refused("no such column")
    assert (life.over, life.stopped().state, life.reason) == (True, State.FAILED, "no such column")


def test_a_stop_ends_what_is_not_over() -> None:
    assert [life.stopped().state for life in (Life(), Life().started(0.0).runs(), Life().started(0.0).done())] == [
        State.STOPPED,
        State.STOPPED,
        State.DONE,
    ]


def test_what_is_held_waits_and_starts_at_once_when_it_is_resumed() -> None:
    life = failed_at(Life(), 0.0, 1.0)
    for held, state in ((life.paused(), State.PAUSED), (life.halted(), State.STOPPED)):
        assert (held.state, held.may_start(1000.0)) == (state, False)
        assert held.again(7.0).may_start(7.0)
        assert held.again(7.0).failures == 0
