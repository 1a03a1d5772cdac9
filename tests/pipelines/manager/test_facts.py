"""The status of a pipeline after each event."""

from __future__ import annotations

from ottla.pipelines.manager.facts import Facts

PROGRESS = {"batch": 1, "rows_in": 5, "rows_out": 4, "lag": 0, "batch_seconds": 0.5, "dead_letters": 0, "position": 9}


def test_rows_are_summed_and_an_error_is_remembered_after_it_is_over() -> None:
    facts = Facts("p", "topic a", "topic b")
    facts = facts.after("failed", {"reason": "no", "failures": 2}, "waiting", 1.0)
    assert (facts.failures, facts.reason, facts.failed_at) == (2, "no", 1.0)
    for moment in (2.0, 3.0):
        facts = facts.after("progress", PROGRESS, "running", moment)
    assert (facts.rows_in, facts.rows_out, facts.batch, facts.position) == (10, 8, 1, 9)
    assert (facts.failures, facts.reason, facts.failed_at) == (0, "no", 1.0)
    assert facts.to_json()["state"] == "running"
