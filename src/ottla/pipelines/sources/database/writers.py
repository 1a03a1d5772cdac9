"""Which numbers of a sequence are settled, though transactions commit in another order than they took them. Pure.

A transaction locks the table before it takes a number. So when all that held a lock as the highest number was looked up have ended,
each number up to it is either there or was given up.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any


class Writers:
    """What was seen of those who write."""

    def __init__(self) -> None:
        self.settled: Any = None
        self._seen: list[tuple[Any, frozenset[str]]] = []

    @property
    def waits(self) -> bool:
        """Whether a number was seen that is not settled."""
        return bool(self._seen)

    def look(self, highest: Any, writing: Set[str]) -> None:
        """Take what is there now: the highest number, looked up first, and the transactions that may write."""
        if highest is not None and highest != self.settled:
            self._seen.append((highest, frozenset(writing)))
        seen = [(number, before & writing) for number, before in self._seen]
        done = [number for number, before in seen if not before]
        if done:
            self.settled = max(done)
        self._seen = [(number, before) for number, before in seen if before]
