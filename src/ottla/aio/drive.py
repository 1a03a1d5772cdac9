"""Run `Steps` in a task: the task is suspended where a blocking caller would wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client.runtime.steps import Steps

T = TypeVar("T")


async def run_steps(steps: Steps[T], wait: Callable[[float], Awaitable[None]]) -> T:
    """Run the steps, waiting with `wait`. Exceptions of the wait, such as a cancellation, are thrown into the steps."""
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
