"""Sends the markers of transactions to the brokers that lead the partitions (WriteTxnMarkers; Kafka's TransactionMarkerChannelManager).

    prepared ──► the leader of each partition ──► one WriteTxnMarkers with all markers waiting for a broker ──► a code per partition

A marker for a partition without a reachable leader fails at once, and the coordinator retries: the metadata may name another leader by
then. When the leader of a partition changes, the pending request to the old leader is abandoned. That broker may be disconnected, and
consumers with `read_committed` would wait until the request times out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ottla.broker.coordinators.transaction_markers import MarkerCallback, TransactionEnd
from ottla.broker.peers.batched_requests import BatchedRequests, Form
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError
from ottla.model import TopicPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

log = logging.getLogger(__name__)
VERSION = 2


class PendingMarker(NamedTuple):
    """A marker for one partition that is not acknowledged yet."""

    topic_partition: TopicPartition
    end: TransactionEnd
    on_done: MarkerCallback


class RemoteMarkers:
    """The markers that other brokers are to write. Belongs to the event loop."""

    def __init__(
        self,
        leader_of: Callable[[TopicPartition], int | None],
        address: Callable[[int], Address | None],
        connect: Callable[[int], PeerConnection],
    ) -> None:
        """`leader_of` returns the leader of a partition, -1 if it has none, None if the partition does not exist."""
        self._leader_of = leader_of
        self._address = address
        self._requests: BatchedRequests[PendingMarker] = BatchedRequests(
            address, connect, choose_markers, build_request, handle_response
        )

    def send(self, topic_partition: TopicPartition, end: TransactionEnd, on_done: MarkerCallback) -> None:
        """Have the leader of the partition write the marker; `on_done` may be called within this call."""
        leader = self._leader_of(topic_partition)
        if leader is None:
            on_done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif leader == -1 or self._address(leader) is None:
            on_done(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            self._requests.add(leader, PendingMarker(topic_partition, end, on_done))

    def handle_new_metadata(self) -> None:
        """Fail the markers that were sent to a broker which no longer leads their partition."""
        for each in self._requests.withdraw(lambda broker, marker: self._leader_of(marker.topic_partition) != broker):
            each.on_done(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def close(self) -> None:
        self._requests.close()


def choose_markers(waiting: Sequence[PendingMarker]) -> list[PendingMarker]:
    """Return the markers for the next request: at most one end per producer, because a response identifies markers by producer id."""
    ends: dict[int, TransactionEnd] = {}
    return [each for each in waiting if ends.setdefault(each.end.producer_id, each.end) == each.end]


def build_request(markers: list[PendingMarker]) -> Form:
    partitions: dict[TransactionEnd, list[TopicPartition]] = {}
    for each in markers:
        partitions.setdefault(each.end, []).append(each.topic_partition)
    request = WriteTxnMarkersRequest(markers=[build_marker(end, found) for end, found in partitions.items()])
    return Form(request, VERSION, WriteTxnMarkersResponse)


def build_marker(end: TransactionEnd, partitions: Iterable[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        topics.setdefault(name, []).append(index)
    return WritableTxnMarker(
        end.producer_id,
        end.epoch,
        end.commit,
        [WritableTxnMarkerTopic(name, indexes) for name, indexes in topics.items()],
        end.coordinator_epoch,
        end.version,
    )


def handle_response(broker: int, markers: list[PendingMarker], response: WriteTxnMarkersResponse | OttlaError) -> None:
    """Report the code of each marker. A marker that the response does not mention is retried."""
    codes: dict[tuple[int, TopicPartition], int] = {}
    if isinstance(response, OttlaError):
        log.warning("WriteTxnMarkers failed broker=%d error=%s", broker, response)
    else:
        codes = codes_by_marker(response)
    for each in markers:
        code = codes.get((each.end.producer_id, each.topic_partition), ErrorCode.NETWORK_EXCEPTION)
        # The metadata of that broker may be older: only `leader_of` decides whether a partition exists.
        each.on_done(ErrorCode.LEADER_NOT_AVAILABLE if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code)


def codes_by_marker(response: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], int]:
    return {
        (marker.producer_id, TopicPartition(topic.name, each.partition_index)): each.error_code
        for marker in response.markers
        for topic in marker.topics
        for each in topic.partitions
    }
