"""Ctrl-C while Java works."""

from __future__ import annotations

import signal
import threading

import pytest

from ottla.spark.driver.interruptible import run_interruptibly

pytestmark = [pytest.mark.behaviour("D1"), pytest.mark.usefixtures("usual_signals")]
SECONDS = 10.0


def interrupt(begun: threading.Event) -> None:
    assert begun.wait(SECONDS)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_a_waiting_caller_is_interrupted_at_once_and_the_work_finishes() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert may_end.wait(SECONDS)
        ended.set()

    threading.Thread(target=interrupt, args=[begun]).start()
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work)
    assert not ended.is_set()
    may_end.set()
    assert ended.wait(SECONDS)


def test_the_result_of_the_work_is_returned() -> None:
    assert run_interruptibly(lambda: "a session") == "a session"


def test_an_error_of_the_work_is_raised() -> None:
    def work() -> None:
        raise ValueError("no Java")

    with pytest.raises(ValueError, match="no Java"):
        run_interruptibly(work)
