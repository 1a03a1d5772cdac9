"""Something that waits for a commit: partitions are given up only once their offsets are safe, or time is up.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ottla.client.future import Future


@dataclass(slots=True)
class Handover:
    """A commit under way, and what to do after it."""

    commit: Future[None]
    deadline: float
    then: Callable[[], None]

    def due(self, now: float) -> bool:
        """Whether to go on."""
        return self.commit.done() or now >= self.deadline
