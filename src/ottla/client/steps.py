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


def hastened(steps: Steps[None], hurry: Callable[[], None]) -> Steps[None]:
    """The same steps; `hurry` is called when whoever waits is interrupted, before the steps hear of it."""
    try:
        span = next(steps)
        while True:
            try:
                yield span
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                if not isinstance(error, Exception):
                    hurry()
                span = steps.throw(error)
            else:
                span = next(steps)
    except StopIteration:
        return
