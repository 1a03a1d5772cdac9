"""Ids for producers, each given once in the life of a cluster.

They are drawn from the cluster's metadata a block at a time, so that most are given without touching the disk; what
is left of a block when the broker ends is lost.
"""

from __future__ import annotations

from ottla.broker.machines.runtime import Runtime
from ottla.coordination.cluster.events import ProducerIdsRequested
from ottla.coordination.cluster.metadata import ClusterMetadata

BLOCK = 1000


class ProducerIds:
    """The rest of the present block."""

    def __init__(self, cluster: Runtime[ClusterMetadata]) -> None:
        self._cluster = cluster
        self._next = 0
        self._end = 0

    def next(self) -> int:
        """An id that nobody had; KafkaError where none can be had."""
        if self._next == self._end:
            first, count = self._cluster.ask(lambda ticket: ProducerIdsRequested(ticket, BLOCK))
            self._next, self._end = first, first + count
        drawn = self._next
        self._next += 1
        return drawn
