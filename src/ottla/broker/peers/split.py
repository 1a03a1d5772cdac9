"""Whom a node does not reach for now, as if the cable between them were pulled: `ottla.Cluster.partition_off`.

All that nodes of a cluster say to each other goes over connections that one of them made, so each holds back its own:

    a connection that is there    nothing is sent and nothing read; it goes on where it stood when the split is over
    one that is to be made        is not; who asks waits, and gives up as where no packet comes back

Clients reach every node all the while.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from weakref import WeakSet

Place = tuple[str, int]
"""Host and port."""


class Splittable(ABC):
    """A conversation that a split may hold up."""

    @abstractmethod
    def split_changed(self) -> None:
        """Look again whether the other side is reached."""


class Split:
    """Of one loop, to which it belongs; conversations of other threads look at it too."""

    def __init__(self) -> None:
        self._apart: frozenset[Place] = frozenset()
        self._conversations: WeakSet[Splittable] = WeakSet()

    def add(self, conversation: Splittable) -> None:
        """Have it told of each change."""
        self._conversations.add(conversation)

    def hides(self, place: Place) -> bool:
        return place in self._apart

    def keep_apart(self, places: Iterable[Place]) -> None:
        """From those, and from nobody else any more."""
        self._apart = frozenset(places)
        for each in list(self._conversations):
            each.split_changed()
