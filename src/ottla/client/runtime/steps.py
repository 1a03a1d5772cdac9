"""Work that waits for the network, written once for callers that block and for callers that await.

It is a generator. What it yields is how many seconds it has to wait at most: whoever runs it lets the network work for
so long, or until something has happened there, and goes on. A caller that blocks polls meanwhile
(`ConsumerNetworkClient.run`), one in asyncio suspends its task (`ottla.aio`). Between two yields it is alone, so that a
caller that is cancelled leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[float, None, T]


def unless(steps: Steps[T], over: Callable[[], Exception | None]) -> Steps[T]:
    """The same steps; where they would wait though `over` has an error to tell, they are ended and it is raised."""
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
