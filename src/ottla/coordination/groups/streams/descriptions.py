"""Descriptions of topologies (KIP-1331): what `Topology.describe()` of Kafka Streams prints, as a member sends it to the coordinator.

A heartbeat requests the description of the group's topology epoch while none is stored. The request is repeated after 30 seconds, and after twice the
time whenever it was in vain, up to an hour. A description is kept in memory with its group: another coordinator requests it again. Apache Kafka keeps
them in a plugin, and its `InMemoryTopologyDescriptionPlugin` is what this module replaces.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ottla.errors import ErrorCode
from ottla.protocol.messages.streams_group_topology_description_update import (
    TopologyDescription,
    TopologyDescriptionNode,
)

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 30.0, 3600.0
MAX_DESCRIPTION_BYTES = 512 * 1024
"""The largest description that is stored. A topology of a thousand nodes needs a fifth of it."""
MAX_TOTAL_BYTES = 8 * MAX_DESCRIPTION_BYTES
"""The most bytes of the descriptions of all groups of a partition of `__consumer_offsets`."""
SOURCE, PROCESSOR, SINK = 1, 2, 3
"""The types of nodes."""
NODE_BYTES = 64
"""The assumed size of a node besides its names."""
NO_EPOCH = -1


class StoredDescription(Struct, frozen=True):
    """A description, and the epoch of the topology that it describes."""

    epoch: int
    description: TopologyDescription
    size_bytes: int


class DescriptionState(Struct, frozen=True):
    """The description of a group and the requests for it."""

    stored: StoredDescription | None = None
    refused_epoch: int = NO_EPOCH
    """The epoch of a description that is never accepted, and not requested again."""
    requested_epoch: int = NO_EPOCH
    wait_seconds: float = 0.0
    """The time between the last request and the next one."""
    next_request: float = 0.0

    @property
    def size_bytes(self) -> int:
        return 0 if self.stored is None else self.stored.size_bytes

    def is_due(self, epoch: int, now: float) -> bool:
        """Return True if the next heartbeat requests the description of this epoch."""
        if self.refused_epoch == epoch or (self.stored is not None and self.stored.epoch == epoch):
            return False
        return self.requested_epoch != epoch or now >= self.next_request

    def request(self, epoch: int, now: float) -> DescriptionState:
        """Return the state after a request, or after a description could not be stored for the present."""
        is_same = self.requested_epoch == epoch
        wait_seconds = min(2 * self.wait_seconds, LONGEST_WAIT_SECONDS) if is_same else FIRST_WAIT_SECONDS
        return DescriptionState(self.stored, self.refused_epoch, epoch, wait_seconds, now + wait_seconds)

    def store(self, epoch: int, description: TopologyDescription, size_bytes: int) -> DescriptionState:
        return DescriptionState(StoredDescription(epoch, description, size_bytes))

    def refuse(self, epoch: int) -> DescriptionState:
        """Return the state after a description that is never accepted."""
        return DescriptionState(self.stored, epoch)


NO_DESCRIPTION = DescriptionState()


def find_description_fault(description: TopologyDescription) -> str | None:
    """Return the reason for which a description is invalid, or None."""
    for store in description.global_stores:
        if (store.source.node_type, store.processor.node_type) != (SOURCE, PROCESSOR):
            return "a global store has a source and a processor"
    for node in nodes_of(description):
        if node.node_type not in (SOURCE, PROCESSOR, SINK):
            return f"node {node.name!r} has type {node.node_type}: expected 1 (source), 2 (processor) or 3 (sink)"
    return None


def estimate_size(description: TopologyDescription) -> int:
    """Return the approximate size of a description in memory, in bytes."""
    ids = sum(NODE_BYTES + len(each.subtopology_id) for each in description.subtopologies)
    return ids + sum(map(estimate_node_size, nodes_of(description)))


def estimate_node_size(node: TopologyDescriptionNode) -> int:
    names = (node.name, node.sink_topic or "", *node.source_topics, *node.stores, *node.successors)
    return NODE_BYTES + sum(NODE_BYTES + len(name) for name in names)


def nodes_of(description: TopologyDescription) -> Iterator[TopologyDescriptionNode]:
    for subtopology in description.subtopologies:
        yield from subtopology.nodes
    for store in description.global_stores:
        yield from (store.source, store.processor)


def explain_size(size_bytes: int) -> tuple[int, str]:
    """Return the error for a description that is too large for any broker."""
    text = f"the description has about {size_bytes} bytes: at most {MAX_DESCRIPTION_BYTES} are stored"
    return ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, text
