"""Ids for producers, each given once in the life of a cluster.

They are drawn from the cluster's metadata a block at a time, so that most are given without touching the disk; what
is left of a block when the broker ends is lost. Where controllers keep the metadata the next block is asked for before the
present one is used up.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.machines.runtime import Runtime
from ottla.coordination.cluster.events import ProducerIdsRequested
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode, KafkaError

BLOCK = 1000
LOW = 100
"""What is left when the next block is asked for."""


class ProducerIds:
    """The rest of the present block, and the next one where it is there already."""

    def __init__(self, cluster: Runtime[ClusterMetadata], node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id
        self._next = 0
        self._end = 0
        self._following = range(0)
        self._asked = False
        self.fetch: Callable[[], None] | None = None
        """Asks the controllers for a block, which `give` brings; None where they are not others."""

    def next(self) -> int:
        """An id that nobody had; KafkaError where none can be had, or none yet."""
        if self.fetch is not None:
            self._look_ahead(self.fetch)
        elif self._next == self._end:
            first, count = self._cluster.ask(lambda ticket: ProducerIdsRequested(ticket, BLOCK, self._node_id))
            self._next, self._end = first, first + count
        drawn = self._next
        self._next += 1
        return drawn

    def give(self, first: int, count: int) -> None:
        """A block that was asked for; an empty one where it was refused."""
        self._asked = False
        self._following = range(first, first + count)

    def _look_ahead(self, fetch: Callable[[], None]) -> None:
        if self._next == self._end:
            self._next, self._end, self._following = self._following.start, self._following.stop, range(0)
        if self._end - self._next < LOW and not self._following and not self._asked:
            self._asked = True
            fetch()
        if self._next == self._end:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the controllers have been asked for producer ids")
