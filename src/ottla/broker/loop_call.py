"""Work for a broker's loop, asked for by another thread that waits for what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import TypeVar

__all__ = ["NotInTime", "call_in_loop"]

T = TypeVar("T")


def call_in_loop(call_soon: Callable[[Callable[[], None]], None], work: Callable[[], T], seconds: float) -> T:
    """What `work` returns, called in the loop; NotInTime where that takes longer."""
    future: Future[T] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    call_soon(do)
    return future.result(seconds)
