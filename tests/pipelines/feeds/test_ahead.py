"""Fetches that are begun before they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.feeds.ahead import Ahead
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
def ahead(table: Table) -> Iterator[Ahead[int, int]]:
    found = Ahead(table.fetch, table.following, room=2)
    yield found
    table.let(9)
    found.end(lambda: None)


def fetched(table: Table, ahead: Ahead[int, int], *places: int) -> None:
    """Wait until these are, the last of them whole."""
    table.let(len(places) - len(table.asked))
    eventually(lambda: table.asked == list(places))
    ahead.call(lambda: None)


def test_what_was_fetched_ahead_is_handed_out_at_once_and_not_fetched_again(
    table: Table, ahead: Ahead[int, int]
) -> None:
    assert ahead.take(0) == [1]
    fetched(table, ahead, 0, 1, 2)
    assert ahead.take(1) == [2, 3]
    assert table.asked == [0, 1, 2]


def test_no_more_is_fetched_ahead_than_there_is_room_for(table: Table, ahead: Ahead[int, int]) -> None:
    table.end = 100
    ahead.take(0)
    fetched(table, ahead, 0, 1, 2)
    table.let(9)
    assert ahead.call(lambda: list(table.asked)) == [0, 1, 2]


def test_what_was_begun_elsewhere_is_not_handed_out(table: Table, ahead: Ahead[int, int]) -> None:
    ahead.take(0)
    table.let(9)
    assert ahead.take(70) == [71]
    assert ahead.take(71) == [72]


def test_what_goes_wrong_ahead_is_told_when_it_is_asked_for_and_tried_again_after(
    table: Table, ahead: Ahead[int, int]
) -> None:
    table.broken = {1}
    assert ahead.take(0) == [1]
    table.let(9)
    with pytest.raises(DatabaseError, match="nothing after 1"):
        ahead.take(1)
    table.broken.clear()
    assert ahead.take(1)[0] == 2


def test_what_came_before_something_that_goes_wrong_is_handed_out_first(table: Table, ahead: Ahead[int, int]) -> None:
    table.broken = {2}
    ahead.take(0)
    fetched(table, ahead, 0, 1, 2)
    assert ahead.take(1) == [2]
    with pytest.raises(DatabaseError, match="nothing after 2"):
        ahead.take(2)


def test_all_is_asked_in_one_thread_that_is_not_the_callers(table: Table, ahead: Ahead[int, int]) -> None:
    ahead.take(0)
    table.let(9)
    threads = [ahead.call(threading.get_ident)]
    ahead.end(lambda: threads.append(threading.get_ident()))
    assert table.threads == set(threads) != {threading.get_ident()}


def test_one_that_was_never_asked_ends_where_it_is(ahead: Ahead[int, int]) -> None:
    told: list[int] = []
    ahead.end(lambda: told.append(threading.get_ident()))
    assert told == [threading.get_ident()]


def test_one_that_has_ended_can_be_asked_again_from_elsewhere(table: Table, ahead: Ahead[int, int]) -> None:
    ahead.take(0)
    table.let(9)
    ahead.end(lambda: None)
    assert ahead.take(50) == [51]
