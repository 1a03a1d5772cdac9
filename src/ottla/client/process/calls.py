"""Calls of clients, written once for blocking and for asyncio clients.

A task is a generator that yields the calls that may wait. The runner makes each call, awaits the result if needed
(`ottla.aio`), and sends the result into the generator or throws the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Call = Callable[[], Any]
Calls = Generator[Call, Any, T]


def perform_calls(calls: Calls[T]) -> T:
    """Make all calls one after the other in this thread."""
    try:
        call = next(calls)
        while True:
            try:
                outcome = call()
            except BaseException as error:
                call = calls.throw(error)
            else:
                call = calls.send(outcome)
    except StopIteration as done:
        result: T = done.value
        return result
