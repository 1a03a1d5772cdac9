"""Work that calls clients, written once for clients that block and for those that are awaited.

It is a generator. What it yields is a call that may wait; whoever runs it makes the call, awaits it where that is the
way (`ottla.aio`), and sends in what came of it, or throws in what was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Call = Callable[[], Any]
Calls = Generator[Call, Any, T]


def perform(calls: Calls[T]) -> T:
    """Make all calls, one after the other, in this thread."""
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
