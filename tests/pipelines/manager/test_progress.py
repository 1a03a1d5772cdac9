"""What is told of a micro-batch."""

from __future__ import annotations

from typing import Any

from ottla.pipelines.manager.progress import Progress, progress_of

TOLD: dict[str, Any] = {
    "batchId": 3,
    "numInputRows": 10,
    "durationMs": {"triggerExecution": 1234},
    "observedMetrics": {"rows": {"count": 7}},
    "sources": [{"endOffset": '{"a": {"0": 5}}', "latestOffset": '{"a": {"0": 9}}'}],
}


def test_rows_lag_and_time_are_taken_from_what_spark_tells() -> None:
    assert progress_of(TOLD, dead_letters=2) == Progress(3, 10, 7, 4, 1.234, 2, 5)


def test_a_source_that_is_no_topic_has_no_lag_and_what_nobody_counted_is_nothing() -> None:
    told = {**TOLD, "sources": [{"endOffset": '{"logOffset": 0}', "latestOffset": None}], "observedMetrics": {}}
    assert progress_of(told) == Progress(3, 10, 0, None, 1.234, 0)
