"""A cluster whose program stops while its nodes start, or that cannot start one more: no process remains."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ottla import Cluster
from ottla.broker.embedding import local_cluster
from ottla.broker.embedding.broker_process import BrokerProcess
from ottla.broker.settings.config import BrokerConfig


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_two_starts_stops_all_started_processes(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = at_the_third_start(lambda: signal.raise_signal(number), monkeypatch)
    with raise_on_signal(number), pytest.raises(SystemExit):
        Cluster(3).open()
    assert [process.is_running for process in started] == [False] * 3


def test_started_processes_are_stopped_if_another_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
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
    """The error of fork() on a machine without memory for another process."""
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@contextmanager
def raise_on_signal(number: signal.Signals) -> Iterator[None]:
    """SystemExit, into which a program with a client turns SIGTERM."""
    before = signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(number, before)
