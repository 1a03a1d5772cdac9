"""A cluster whose program is ended while its nodes start, or that cannot start one more: none is left behind, and none unwatched."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ottla import Cluster
from ottla.broker import local_cluster
from ottla.broker.process import BrokerProcess
from ottla.broker.settings.config import BrokerConfig


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_two_starts_ends_all_that_were_started(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = at_the_third_start(lambda: signal.raise_signal(number), monkeypatch)
    with heard(number), pytest.raises(SystemExit):
        Cluster(3).open()
    assert [process.is_running for process in started] == [False] * 3


def test_where_one_more_cannot_be_started_those_that_were_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started = at_the_third_start(too_many, monkeypatch)
    with pytest.raises(BlockingIOError):
        Cluster(3).open()
    assert [process.is_running for process in started] == [False] * 2


def at_the_third_start(do: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[BrokerProcess]:
    """The processes of nodes, as they start; `do` is done before the third."""
    started: list[BrokerProcess] = []

    def start(config: BrokerConfig, *, wait: bool) -> BrokerProcess:
        if len(started) == 2:
            do()
        started.append(BrokerProcess(config, wait=wait))
        return started[-1]

    monkeypatch.setattr(local_cluster, "BrokerProcess", start)
    return started


def too_many() -> None:
    """What fork() says on a machine that has no room for another process."""
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@contextmanager
def heard(number: signal.Signals) -> Iterator[None]:
    """As SystemExit, which a program with a client makes of SIGTERM."""
    before = signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(number, before)
