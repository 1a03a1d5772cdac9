"""A connection that the broker made itself, as its loop knows it; the selector's name for it is the object.

Apart, so that a broker that stands alone loads no more than this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class OwnConnection(ABC):
    @abstractmethod
    def take(self, frame: memoryview) -> None:
        """Do what follows from an answer; nothing is raised for what the other side says."""

    @abstractmethod
    def part(self, reason: str) -> None:
        """The connection has ended, though it was not closed on our side."""
