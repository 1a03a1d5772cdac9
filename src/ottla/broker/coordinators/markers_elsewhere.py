"""Has the leaders at other brokers write the ends of transactions that are coordinated here (WriteTxnMarkers).

    prepared ──► who leads each partition ──► one WriteTxnMarkers for all that waits for a broker ──► a code for each partition

A partition that is not to be reached now is told as such, and the coordinator comes again: the metadata may name another leader by then.
Once they do, nobody waits for the answer of the last one, which may be cut off: readers of committed records would, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ottla.broker.coordinators.end_markers import TransactionEnd
from ottla.broker.peers.batched_questions import BatchedQuestions, Form
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
Told = Callable[[int], None]
"""Called with NONE once a marker is committed where it belongs, or with why it is not."""


class Parcel(NamedTuple):
    """One marker for one partition."""

    place: TopicPartition
    end: TransactionEnd
    told: Told


class MarkersElsewhere:
    """What waits to be written waits in the loop, to which this belongs."""

    def __init__(
        self,
        leader_of: Callable[[TopicPartition], int | None],
        address: Callable[[int], Address | None],
        connect: Callable[[int], PeerConnection],
    ) -> None:
        """`leader_of` says who leads a partition, -1 where nobody does, None where there is no such partition."""
        self._leader_of = leader_of
        self._address = address
        self._questions: BatchedQuestions[Parcel] = BatchedQuestions(address, connect, chosen, form, answered)

    def send(self, place: TopicPartition, end: TransactionEnd, told: Told) -> None:
        """Have the marker written; `told` may be called at once."""
        leader = self._leader_of(place)
        if leader is None:
            told(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif leader == -1 or self._address(leader) is None:
            told(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            self._questions.add(leader, Parcel(place, end, told))

    def look(self) -> None:
        """The metadata are others now."""
        for each in self._questions.withdraw(lambda broker, parcel: self._leader_of(parcel.place) != broker):
            each.told(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def close(self) -> None:
        self._questions.close()


def chosen(waiting: Sequence[Parcel]) -> list[Parcel]:
    """One end of each producer: answers name producers alone."""
    ends: dict[int, TransactionEnd] = {}
    return [each for each in waiting if ends.setdefault(each.end.producer_id, each.end) == each.end]


def form(parcels: list[Parcel]) -> Form:
    places: dict[TransactionEnd, list[TopicPartition]] = {}
    for each in parcels:
        places.setdefault(each.end, []).append(each.place)
    markers = [marker_of(end, found) for end, found in places.items()]
    return Form(WriteTxnMarkersRequest(markers=markers), VERSION, WriteTxnMarkersResponse)


def marker_of(end: TransactionEnd, places: Iterable[TopicPartition]) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for name, number in sorted(places):
        topics.setdefault(name, []).append(number)
    return WritableTxnMarker(
        end.producer_id,
        end.epoch,
        end.commit,
        [WritableTxnMarkerTopic(name, numbers) for name, numbers in topics.items()],
        end.coordinator_epoch,
        end.version,
    )


def answered(broker: int, asked: list[Parcel], answer: WriteTxnMarkersResponse | OttlaError) -> None:
    """Tell of each marker; one of which nothing is said is to be sent again."""
    codes: dict[tuple[int, TopicPartition], int] = {}
    if isinstance(answer, OttlaError):
        log.warning("broker %d was asked in vain to write the ends of transactions: %s", broker, answer)
    else:
        codes = codes_of(answer)
    for each in asked:
        code = codes.get((each.end.producer_id, each.place), ErrorCode.NETWORK_EXCEPTION)
        # It may be behind with the metadata: whether there is such a partition is for `leader_of` to say.
        each.told(ErrorCode.LEADER_NOT_AVAILABLE if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code)


def codes_of(answer: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], int]:
    return {
        (marker.producer_id, TopicPartition(topic.name, each.partition_index)): each.error_code
        for marker in answer.markers
        for topic in marker.topics
        for each in topic.partitions
    }
