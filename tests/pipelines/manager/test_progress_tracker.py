"""The events for batches and for late dead letters, from Spark's reports."""

from __future__ import annotations

import pytest

from ottla.pipelines.manager.progress_tracker import ProgressTracker, Report


def report(second: int, rows: int = 0, *, looked_only: bool = False) -> Report:
    """Return the report of a batch that started at that second."""
    duration = {"triggerExecution": 100} | ({} if looked_only else {"addBatch": 50})
    return {
        "timestamp": f"2026-01-01T00:00:{second:02}.000Z",
        "batchId": second,
        "numInputRows": rows,
        "durationMs": duration,
        "observedMetrics": {"rows": {"count": rows}},
        "sources": [],
    }


def summaries(
    news: ProgressTracker, row_reports: list[Report], dead_letter_reports: list[Report]
) -> list[tuple[int, int, int]]:
    """Return batch, rows in and dead letters of each event."""
    return [
        (one.batch, one.rows_in, one.dead_letters) for one in news.process_reports(row_reports, dead_letter_reports)
    ]


def test_each_batch_is_reported_once_for_any_number_of_reports() -> None:
    news = ProgressTracker()
    assert summaries(news, [report(1, 5), report(2, 6)], []) == [(1, 5, 0), (2, 6, 0)]
    assert summaries(news, [report(1, 5), report(2, 6), report(3, 7)], []) == [(3, 7, 0)]
    assert summaries(news, [report(2, 6), report(3, 7)], []) == []


def test_a_trigger_without_rows_is_not_a_batch() -> None:
    news = ProgressTracker()
    assert summaries(news, [report(1, looked_only=True)], []) == []
    assert news.last_row_report == report(1)["timestamp"]


def test_dead_letters_written_before_their_batch_is_reported_are_reported_with_it() -> None:
    news = ProgressTracker()
    assert summaries(news, [report(1, 5)], [report(1, 2)]) == [(1, 5, 2)]
    assert summaries(news, [report(1, 5), report(2, 6)], [report(1, 2), report(2, 1)]) == [(2, 6, 3)]


def test_dead_letters_after_their_batch_are_reported_separately_and_once() -> None:
    news = ProgressTracker()
    assert summaries(news, [report(1, 5)], []) == [(1, 5, 0)]
    assert summaries(news, [report(1, 5)], [report(1, 2)]) == [(1, 0, 2)]
    assert summaries(news, [report(1, 5)], [report(1, 2)]) == []
    (again,) = news.process_reports([], [report(2, 4)])
    assert (again.batch, again.rows_in, again.rows_out, again.dead_letters) == (1, 0, 0, 6)


def test_dead_letters_before_the_first_batch_are_reported_with_that() -> None:
    news = ProgressTracker()
    assert summaries(news, [], [report(1, 2)]) == []
    assert summaries(news, [report(1, 5)], []) == [(1, 5, 2)]


@pytest.mark.parametrize("second", [1, 3])
def test_restarted_queries_are_reported_from_their_first_batch_and_dead_letters_stay_counted(second: int) -> None:
    news = ProgressTracker()
    news.process_reports([report(2, 5)], [report(2, 2)])
    news.expect_new_queries()
    assert summaries(news, [report(second, 1)], [report(second, 1)]) == [(second, 1, 3)]
