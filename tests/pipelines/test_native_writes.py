"""A process does not end amid a write that runs in a thread of Spark's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from ottla.pipelines.native_writes import native_write, wait_for_native_writes
from tests.patience import PATIENCE


def test_there_is_not_a_wait_if_nothing_is_written() -> None:
    assert wait_for_native_writes(0)


def test_the_wait_ends_with_the_last_write() -> None:
    begun, goes_on = [Event(), Event()], [Event(), Event()]

    def write(number: int) -> None:
        with native_write():
            begun[number].set()
            goes_on[number].wait(PATIENCE)

    with ThreadPoolExecutor() as threads:
        writes = [threads.submit(write, number) for number in (0, 1)]
        assert all(each.wait(PATIENCE) for each in begun)
        goes_on[0].set()
        writes[0].result(PATIENCE)
        assert not wait_for_native_writes(0)
        goes_on[1].set()
        assert wait_for_native_writes(PATIENCE)


def test_a_write_that_fails_is_over() -> None:
    with pytest.raises(KeyError), native_write():
        raise KeyError
    assert wait_for_native_writes(0)
