"""Fetches that are begun before they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.feeds.ahead import Ahead

pytestmark = pytest.mark.behaviour("D5")


@pytest.fixture
def ahead() -> Iterator[Ahead[int, int]]:
    found: Ahead[int, int] = Ahead()
    yield found
    found.end(lambda: None)


def test_what_was_begun_is_handed_out_and_not_fetched_again(ahead: Ahead[int, int]) -> None:
    asked: list[int] = []

    def fetch(place: int) -> int:
        asked.append(place)
        return place + 1

    ahead.begin(1, fetch)
    assert [ahead.take(1, fetch), ahead.take(1, fetch)] == [2, 2]
    assert asked == [1, 1]  # the second is for who asks again


def test_what_was_begun_elsewhere_is_not_handed_out(ahead: Ahead[int, int]) -> None:
    ahead.begin(1, lambda place: place + 1)
    assert ahead.take(7, lambda place: place + 1) == 8


def test_what_goes_wrong_ahead_is_told_when_it_is_asked_for_and_tried_again_after(ahead: Ahead[int, int]) -> None:
    def fail(place: int) -> int:
        raise DatabaseError(f"nothing after {place}")

    ahead.begin(1, fail)
    with pytest.raises(DatabaseError, match="nothing after 1"):
        ahead.take(1, lambda place: place + 1)
    assert ahead.take(1, lambda place: place + 1) == 2


def test_all_is_asked_in_one_thread_that_is_not_the_callers(ahead: Ahead[int, int]) -> None:
    threads = [ahead.call(threading.get_ident), ahead.take(1, lambda _: threading.get_ident())]
    ahead.end(lambda: threads.append(threading.get_ident()))
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_one_that_was_never_asked_ends_where_it_is(ahead: Ahead[int, int]) -> None:
    told: list[int] = []
    ahead.end(lambda: told.append(threading.get_ident()))
    assert told == [threading.get_ident()]
