"""Runs `Steps` in a task: what a caller that blocks waits out, the task is suspended for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client.runtime.steps import Steps

T = TypeVar("T")


async def drive(steps: Steps[T], wait: Callable[[float], Awaitable[None]]) -> T:
    """Do what waits by `wait`; what happens to the task happens where the steps wait."""
    try:
        span = next(steps)
        while True:
            try:
                await wait(span)
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                span = steps.throw(error)
            else:
                span = next(steps)
    except StopIteration as done:
        outcome: T = done.value
        return outcome
