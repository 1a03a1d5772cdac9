"""The life of a pipeline, on paper."""

from __future__ import annotations

from ottla.pipelines.manager.lifecycle import LONGEST_BACKOFF, WELL_AFTER, Lifecycle, PipelineState, backoff


def failed_at(lifecycle: Lifecycle, *moments: float) -> Lifecycle:
    """Started and failed at each of these moments."""
    for now in moments:
        lifecycle = lifecycle.as_started(now).as_failed("no", now)
    return lifecycle


def test_a_pipeline_that_fails_is_started_again_after_a_while_that_grows() -> None:
    lifecycle = failed_at(Lifecycle(), 0.0)
    assert (lifecycle.state, lifecycle.start_at, lifecycle.reason) == (PipelineState.WAITING, 1.0, "no")
    assert [lifecycle.can_start(now) for now in (0.9, 1.0)] == [False, True]
    assert failed_at(lifecycle, 1.0, 10.0).start_at == 10.0 + 4.0
    assert [backoff(n) for n in (1, 2, 7, 1000)] == [1.0, 2.0, LONGEST_BACKOFF, LONGEST_BACKOFF]


def test_failures_before_a_long_good_time_are_forgotten() -> None:
    lifecycle = failed_at(Lifecycle(), 0.0, 1.0, 3.0).as_started(7.0).as_running()
    assert lifecycle.as_failed("no", 7.0 + WELL_AFTER).failures == 1
    assert lifecycle.as_failed("no", 7.0 + WELL_AFTER - 1).failures == 4


def test_a_run_once_pipeline_fails_after_three_attempts() -> None:
    assert failed_at(Lifecycle(once=True), 0.0, 1.0).state is PipelineState.WAITING
    assert failed_at(Lifecycle(once=True), 0.0, 1.0, 3.0).state is PipelineState.FAILED


def test_a_permanent_error_ends_the_pipeline() -> None:
    lifecycle = Lifecycle().as_started(0.0).as_refused("no such column")
    assert (lifecycle.is_over, lifecycle.as_stopped().state, lifecycle.reason) == (
        True,
        PipelineState.FAILED,
        "no such column",
    )


def test_a_stop_ends_a_running_pipeline() -> None:
    assert [
        lifecycle.as_stopped().state
        for lifecycle in (Lifecycle(), Lifecycle().as_started(0.0).as_running(), Lifecycle().as_started(0.0).as_done())
    ] == [
        PipelineState.STOPPED,
        PipelineState.STOPPED,
        PipelineState.DONE,
    ]


def test_a_paused_pipeline_waits_and_starts_at_once_when_resumed() -> None:
    lifecycle = failed_at(Lifecycle(), 0.0, 1.0)
    for held, state in ((lifecycle.as_paused(), PipelineState.PAUSED), (lifecycle.as_halted(), PipelineState.STOPPED)):
        assert (held.state, held.can_start(1000.0)) == (state, False)
        assert held.as_restarted(7.0).can_start(7.0)
        assert held.as_restarted(7.0).failures == 0
