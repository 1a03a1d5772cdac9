"""The end offsets of partitions, from this broker or from the leaders on other brokers (KIP-1226).

The group coordinator needs them for the lag of a share group. One ListOffsets is in flight to each broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ottla.broker.metadata.topics import Topics
from ottla.broker.peers.batched_requests import BatchedRequests, Form
from ottla.broker.peers.peers import RemoteBrokers
from ottla.broker.replica_manager.partitions import Partitions
from ottla.errors import KafkaError, OttlaError
from ottla.model import TopicPartition
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

log = logging.getLogger(__name__)
VERSION = 7
LATEST = -1
CONSUMER = -1
UNKNOWN = -1
OnOffset = Callable[[int], None]
"""Called with the high watermark; UNKNOWN if it cannot be read."""


class PendingOffset(NamedTuple):
    """An end offset that another broker is to return."""

    partition: TopicPartition
    on_offset: OnOffset


class EndOffsets:
    """The requests under way. Belongs to the event loop."""

    def __init__(self, topics: Topics, partitions: Partitions, node_id: int, remote: RemoteBrokers | None) -> None:
        """`remote` is None for the only broker of a cluster."""
        self._topics = topics
        self._partitions = partitions
        self._node_id = node_id
        self._remote = remote
        self._requests: BatchedRequests[PendingOffset] | None = None
        if remote is not None:
            connect = partial(remote.connect, "offsets")
            self._requests = BatchedRequests(remote.address, connect, choose, build_request, handle_response)

    def find(self, partition: TopicPartition, on_offset: OnOffset) -> None:
        """Find the high watermark of a partition; `on_offset` may be called within this call."""
        leader = self._topics.find_leader(partition)
        if leader == self._node_id:
            on_offset(self._read(partition))
        elif leader is None or self._remote is None or self._requests is None or self._remote.address(leader) is None:
            on_offset(UNKNOWN)
        else:
            self._requests.add(leader, PendingOffset(partition, on_offset))

    def handle_new_metadata(self) -> None:
        """Give up requests to brokers that do not lead the partition any more."""
        if self._requests is not None:
            for each in self._requests.withdraw(
                lambda broker, item: self._topics.find_leader(item.partition) != broker
            ):
                each.on_offset(UNKNOWN)

    def close(self) -> None:
        if self._requests is not None:
            self._requests.close()

    def _read(self, partition: TopicPartition) -> int:
        found = self._partitions.find(*partition)
        try:
            return UNKNOWN if found is None or not found.leads else found.log.high_watermark
        except KafkaError:
            return UNKNOWN


def choose(waiting: Sequence[PendingOffset]) -> list[PendingOffset]:
    """Return all, because a response may have any number of offsets."""
    return list(waiting)


def build_request(pending: list[PendingOffset]) -> Form:
    topics: dict[str, dict[int, None]] = {}
    for each in pending:
        topics.setdefault(each.partition.topic, {})[each.partition.partition] = None
    named = [
        ListOffsetsTopic(name, [ListOffsetsPartition(index, -1, LATEST) for index in found])
        for name, found in topics.items()
    ]
    return Form(ListOffsetsRequest(CONSUMER, 0, named), VERSION, ListOffsetsResponse)


def handle_response(broker: int, pending: list[PendingOffset], response: ListOffsetsResponse | OttlaError) -> None:
    offsets: dict[TopicPartition, int] = {}
    if isinstance(response, OttlaError):
        log.warning("ListOffsets failed broker=%d error=%s", broker, response)
    else:
        offsets = {
            TopicPartition(topic.name, each.partition_index): each.offset
            for topic in response.topics
            for each in topic.partitions
            if not each.error_code
        }
    for each in pending:
        each.on_offset(offsets.get(each.partition, UNKNOWN))
