"""Something that a rebalance waits for: a commit, or a coroutine of the listener; and what comes after it.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ottla.client.runtime.future import Future
from ottla.model import FOREVER


class Handover(Struct):
    """What is under way, and what to do after it: partitions are given up only once their offsets are safe."""

    waits_for: Future[None]
    then: Callable[[], None]
    deadline: float = FOREVER
    listening: bool = False
    """Whether it is the listener that is waited for: until it has ended, nothing is fetched and nothing handed out."""

    def due(self, now: float) -> bool:
        return self.waits_for.done() or now >= self.deadline
