"""A process does not end amid a write that runs in a thread of Spark's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from ottla.pipelines.under_way import none_under_way, under_way
from tests.patience import PATIENCE


def test_nobody_waits_where_nothing_is_written() -> None:
    assert none_under_way(0)


def test_who_waits_goes_on_when_the_last_write_is_over() -> None:
    begun, goes_on = [Event(), Event()], [Event(), Event()]

    def write(number: int) -> None:
        with under_way():
            begun[number].set()
            goes_on[number].wait(PATIENCE)

    with ThreadPoolExecutor() as threads:
        writes = [threads.submit(write, number) for number in (0, 1)]
        assert all(each.wait(PATIENCE) for each in begun)
        goes_on[0].set()
        writes[0].result(PATIENCE)
        assert not none_under_way(0)
        goes_on[1].set()
        assert none_under_way(PATIENCE)


def test_a_write_that_fails_is_over() -> None:
    with pytest.raises(KeyError), under_way():
        raise KeyError
    assert none_under_way(0)
