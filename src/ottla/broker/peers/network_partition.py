"""Simulated network partitions, as if a cable were pulled: `ottla.Cluster.partition_off`.

Nodes of a cluster communicate over connections that one of them opened. Each node delays its own:

    an open connection     nothing is sent or read; it continues when the partition ends
    one to be opened       is not opened; the caller waits for its timeout, as if no packet came back

Clients reach every node all the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from weakref import WeakSet

Place = tuple[str, int]
"""Host and port."""


class Splittable(ABC):
    """A connection that a simulated partition can block."""

    @abstractmethod
    def split_changed(self) -> None:
        """Check again whether the other side is reachable."""


class NetworkPartition:
    """The partition of one node. Belongs to the loop; connections of other threads read it as well."""

    def __init__(self) -> None:
        self._apart: frozenset[Place] = frozenset()
        self._conversations: WeakSet[Splittable] = WeakSet()

    def add(self, conversation: Splittable) -> None:
        """Notify a connection of each change."""
        self._conversations.add(conversation)

    def is_hidden(self, place: Place) -> bool:
        return place in self._apart

    def isolate(self, places: Iterable[Place]) -> None:
        """Be partitioned from these addresses, and from no others."""
        self._apart = frozenset(places)
        for each in list(self._conversations):
            each.split_changed()
