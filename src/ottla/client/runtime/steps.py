"""Code that waits for the network, written once for blocking callers and for asyncio.

It is a generator that yields the maximum number of seconds to wait. Its runner lets the network work until then, or until an
event there, and resumes it. A blocking caller polls meanwhile (`ConsumerNetworkClient.run`); asyncio suspends the task
(`ottla.aio`). Code between two yields is not interrupted, so that a cancelled caller leaves a consistent state.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[float, None, T]


def stop_when(steps: Steps[T], over: Callable[[], Exception | None]) -> Steps[T]:
    """Run the steps; before each wait, if `over` returns an error, close them and raise it."""
    try:
        span = next(steps)
        while True:
            error = over()
            if error is not None:
                steps.close()
                raise error
            try:
                yield span
            except BaseException as thrown:
                span = steps.throw(thrown)
            else:
                span = next(steps)
    except StopIteration as done:
        outcome: T = done.value
        return outcome
