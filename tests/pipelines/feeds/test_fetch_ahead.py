"""Fetches that start before their rows are requested."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.feeds.fetch_ahead import FetchAhead
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.behaviour("D5")


class Table:
    """Gives a place's successor, up to an end, as often as it is let."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.threads: set[int] = set()
        self.end = 3
        self.broken: set[int] = set()
        self._leave = threading.Semaphore(1)

    def let(self, fetches: int) -> None:
        self._leave.release(fetches)

    def fetch(self, place: int) -> int:
        assert self._leave.acquire(timeout=PATIENCE)
        self.asked.append(place)
        self.threads.add(threading.get_ident())
        if place in self.broken:
            raise DatabaseError(f"nothing after {place}")
        return place + 1

    def following(self, found: int) -> int | None:
        return found if found < self.end else None


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def fetch_ahead(table: Table) -> Iterator[FetchAhead[int, int]]:
    found = FetchAhead(table.fetch, table.following, room=2)
    yield found
    table.let(9)
    found.end_thread(lambda: None)


def fetched(table: Table, fetch_ahead: FetchAhead[int, int], *places: int) -> None:
    """Wait until these are, the last of them whole."""
    table.let(len(places) - len(table.asked))
    eventually(lambda: table.asked == list(places))
    fetch_ahead.call_in_thread(lambda: None)


def test_prefetched_rows_are_returned_at_once_and_not_fetched_again(
    table: Table, fetch_ahead: FetchAhead[int, int]
) -> None:
    assert fetch_ahead.fetch_next(0) == [1]
    fetched(table, fetch_ahead, 0, 1, 2)
    assert fetch_ahead.fetch_next(1) == [2, 3]
    assert table.asked == [0, 1, 2]


def test_no_more_is_fetched_ahead_than_there_is_room_for(table: Table, fetch_ahead: FetchAhead[int, int]) -> None:
    table.end = 100
    fetch_ahead.fetch_next(0)
    fetched(table, fetch_ahead, 0, 1, 2)
    table.let(9)
    assert fetch_ahead.call_in_thread(lambda: list(table.asked)) == [0, 1, 2]


def test_a_fetch_from_another_place_is_not_returned(table: Table, fetch_ahead: FetchAhead[int, int]) -> None:
    fetch_ahead.fetch_next(0)
    table.let(9)
    assert fetch_ahead.fetch_next(70) == [71]
    assert fetch_ahead.fetch_next(71) == [72]


def test_an_error_of_a_fetch_ahead_is_raised_when_its_rows_are_requested_and_then_retried(
    table: Table, fetch_ahead: FetchAhead[int, int]
) -> None:
    table.broken = {1}
    assert fetch_ahead.fetch_next(0) == [1]
    table.let(9)
    with pytest.raises(DatabaseError, match="nothing after 1"):
        fetch_ahead.fetch_next(1)
    table.broken.clear()
    assert fetch_ahead.fetch_next(1)[0] == 2


def test_rows_before_an_error_are_returned_first(table: Table, fetch_ahead: FetchAhead[int, int]) -> None:
    table.broken = {2}
    fetch_ahead.fetch_next(0)
    fetched(table, fetch_ahead, 0, 1, 2)
    assert fetch_ahead.fetch_next(1) == [2]
    with pytest.raises(DatabaseError, match="nothing after 2"):
        fetch_ahead.fetch_next(2)


def test_all_fetches_run_in_one_background_thread(table: Table, fetch_ahead: FetchAhead[int, int]) -> None:
    fetch_ahead.fetch_next(0)
    table.let(9)
    threads = [fetch_ahead.call_in_thread(threading.get_ident)]
    fetch_ahead.end_thread(lambda: threads.append(threading.get_ident()))
    assert table.threads == set(threads) != {threading.get_ident()}


def test_the_end_without_a_fetch_is_reported_in_the_calling_thread(fetch_ahead: FetchAhead[int, int]) -> None:
    reported: list[int] = []
    fetch_ahead.end_thread(lambda: reported.append(threading.get_ident()))
    assert reported == [threading.get_ident()]


def test_after_the_end_a_fetch_can_start_at_another_position(table: Table, fetch_ahead: FetchAhead[int, int]) -> None:
    fetch_ahead.fetch_next(0)
    table.let(9)
    fetch_ahead.end_thread(lambda: None)
    assert fetch_ahead.fetch_next(50) == [51]
