"""The progress of a pipeline from the report of a micro-batch."""

from __future__ import annotations

from typing import Any

from ottla.pipelines.manager.progress import PipelineProgress, progress_of

TOLD: dict[str, Any] = {
    "batchId": 3,
    "numInputRows": 10,
    "durationMs": {"triggerExecution": 1234},
    "observedMetrics": {"rows": {"count": 7}},
    "sources": [{"endOffset": '{"a": {"0": 5}}', "latestOffset": '{"a": {"0": 9}}'}],
}


def test_rows_lag_and_time_are_taken_from_sparks_progress() -> None:
    assert progress_of(TOLD, dead_letters=2) == PipelineProgress(3, 10, 7, 4, 1.234, 2, 5)


def test_a_source_that_is_not_a_topic_has_no_lag_and_missing_counts_are_zero() -> None:
    reported = {**TOLD, "sources": [{"endOffset": '{"logOffset": 0}', "latestOffset": None}], "observedMetrics": {}}
    assert progress_of(reported) == PipelineProgress(3, 10, 0, None, 1.234, 0)
