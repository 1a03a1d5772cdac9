"""What is told of batches and of late dead letters: from reports as Spark gives them."""

from __future__ import annotations

import pytest

from ottla.pipelines.manager.news import News, Report


def report(second: int, rows: int = 0, *, looked_only: bool = False) -> Report:
    """Of a batch that began at that second."""
    duration = {"triggerExecution": 100} | ({} if looked_only else {"addBatch": 50})
    return {
        "timestamp": f"2026-01-01T00:00:{second:02}.000Z",
        "batchId": second,
        "numInputRows": rows,
        "durationMs": duration,
        "observedMetrics": {"rows": {"count": rows}},
        "sources": [],
    }


def summaries(news: News, of_rows: list[Report], of_letters: list[Report]) -> list[tuple[int, int, int]]:
    """Batch, rows in and dead letters of each that is told."""
    return [(one.batch, one.rows_in, one.dead_letters) for one in news.hear(of_rows, of_letters)]


def test_each_batch_is_told_once_however_often_it_is_reported() -> None:
    news = News()
    assert summaries(news, [report(1, 5), report(2, 6)], []) == [(1, 5, 0), (2, 6, 0)]
    assert summaries(news, [report(1, 5), report(2, 6), report(3, 7)], []) == [(3, 7, 0)]
    assert summaries(news, [report(2, 6), report(3, 7)], []) == []


def test_a_look_that_found_no_rows_is_no_batch() -> None:
    news = News()
    assert summaries(news, [report(1, looked_only=True)], []) == []
    assert news.last_of_rows == report(1)["timestamp"]


def test_dead_letters_that_are_there_with_their_batch_are_told_with_it() -> None:
    news = News()
    assert summaries(news, [report(1, 5)], [report(1, 2)]) == [(1, 5, 2)]
    assert summaries(news, [report(1, 5), report(2, 6)], [report(1, 2), report(2, 1)]) == [(2, 6, 3)]


def test_dead_letters_that_come_after_their_batch_are_told_by_themselves_and_once() -> None:
    news = News()
    assert summaries(news, [report(1, 5)], []) == [(1, 5, 0)]
    assert summaries(news, [report(1, 5)], [report(1, 2)]) == [(1, 0, 2)]
    assert summaries(news, [report(1, 5)], [report(1, 2)]) == []
    (again,) = news.hear([], [report(2, 4)])
    assert (again.batch, again.rows_in, again.rows_out, again.dead_letters) == (1, 0, 0, 6)


def test_dead_letters_that_come_before_the_first_batch_are_told_with_that() -> None:
    news = News()
    assert summaries(news, [], [report(1, 2)]) == []
    assert summaries(news, [report(1, 5)], []) == [(1, 5, 2)]


@pytest.mark.parametrize("second", [1, 3])
def test_queries_that_are_begun_anew_are_heard_from_their_first_batch_and_letters_stay_counted(second: int) -> None:
    news = News()
    news.hear([report(2, 5)], [report(2, 2)])
    news.begin_anew()
    assert summaries(news, [report(second, 1)], [report(second, 1)]) == [(second, 1, 3)]
