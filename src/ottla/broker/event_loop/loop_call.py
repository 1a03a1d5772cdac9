"""Run work in the event loop for another thread, which waits for the result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import TypeVar

__all__ = ["NotInTime", "call_in_loop"]

T = TypeVar("T")


def call_in_loop(call_soon: Callable[[Callable[[], None]], None], work: Callable[[], T], seconds: float) -> T:
    """Run `work` in the loop and return its result. Raise NotInTime if that takes longer than `seconds`."""
    future: Future[T] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    call_soon(do)
    return future.result(seconds)
