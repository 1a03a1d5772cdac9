"""Transaction markers for partitions, on this broker and on others."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from ottla.broker.coordinators.marker_deliveries import MarkerDeliveries
from ottla.broker.coordinators.remote_markers import RemoteMarkers
from ottla.broker.coordinators.transaction_markers import MarkerCallback, TransactionEnd
from ottla.broker.peers.peer_connection import Question
from ottla.coordination.quorum.observer import Address
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import Transaction
from ottla.errors import ErrorCode, OttlaError
from ottla.model import TopicPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

FIRST, SECOND, THIRD = (TopicPartition("t", number) for number in range(3))
PREPARED = Transaction(
    transactional_id="id",
    producer_id=77,
    producer_epoch=3,
    timeout_ms=1000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset((FIRST, SECOND)),
    started_ms=5,
    updated_ms=9,
    version=2,
)
END = TransactionEnd(77, 3, True, 4, 2)


class FakeWriter:
    """A substitute for partitions, with responses from the test."""

    def __init__(self) -> None:
        self.sent: dict[TopicPartition, MarkerCallback] = {}
        self.count = self.failures = 0
        self.over: list[str] = []
        self.deliveries = MarkerDeliveries(self.write, self.fail)

    def write(self, place: TopicPartition, end: TransactionEnd, reported: MarkerCallback) -> None:
        assert end == END
        self.sent[place] = reported
        self.count += 1

    def fail(self) -> None:
        self.failures += 1

    def deliver(self, transaction: Transaction = PREPARED, coordinator: str = "a") -> None:
        self.deliveries.deliver(coordinator, transaction, 4, partial(self.over.append, coordinator))


def test_a_transaction_is_complete_when_its_last_marker_is_written() -> None:
    ways = FakeWriter()
    ways.deliver()
    ways.sent[SECOND](ErrorCode.NONE)
    assert not ways.over
    ways.sent[FIRST](ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (ways.over, ways.failures) == (["a"], 0)


def test_only_failed_markers_are_repeated_also_after_the_state_was_reloaded() -> None:
    ways = FakeWriter()
    ways.deliver()
    ways.sent[FIRST](ErrorCode.NONE)
    ways.deliver()
    assert ways.count == 2
    ways.sent[SECOND](ErrorCode.KAFKA_STORAGE_ERROR)
    ways.deliver(replace(PREPARED, last_epoch=2))
    assert (ways.count, ways.failures) == (3, 1)
    ways.sent[SECOND](ErrorCode.NONE)
    assert ways.over == ["a"]


def test_a_completion_that_could_not_be_stored_is_reported_again() -> None:
    ways = FakeWriter()
    ways.deliver(replace(PREPARED, partitions=frozenset()))
    ways.deliver(replace(PREPARED, partitions=frozenset()))
    ways.deliveries.forget("a", "id")
    assert (ways.over, ways.count) == (["a", "a"], 0)


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
def test_a_partition_with_a_later_state_needs_no_marker(code: ErrorCode) -> None:
    ways = FakeWriter()
    ways.deliver()
    ways.sent[FIRST](code)
    ways.sent[SECOND](ErrorCode.NONE)
    assert ways.over == ["a"]


def test_a_response_to_a_former_coordinator_does_not_count() -> None:
    ways = FakeWriter()
    ways.deliver(replace(PREPARED, partitions=frozenset((FIRST,))))
    old = ways.sent[FIRST]
    ways.deliveries.retire("a")
    ways.deliver()
    old(ErrorCode.NONE)
    ways.sent[SECOND](ErrorCode.NONE)
    assert not ways.over
    ways.sent[FIRST](ErrorCode.NONE)
    assert ways.over == ["a"]


class FakeConnection:
    """A substitute for a connection to another broker, with responses from the test."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def send_request(self, question: Question) -> None:
        self.asked.append(question)

    def close(self) -> None:
        self.asked.clear()

    @property
    def request(self) -> WriteTxnMarkersRequest:
        request = self.asked[-1].request
        assert isinstance(request, WriteTxnMarkersRequest)
        return request

    def answer(self, code: int = 0) -> None:
        results = [
            WritableTxnMarkerResult(
                marker.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [WritableTxnMarkerPartitionResult(number, code) for number in topic.partition_indexes],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in self.request.markers
        ]
        self.asked[-1].done(WriteTxnMarkersResponse(markers=results))


class Story:
    """Two brokers, of which one leads the first partition and the other the second; the third has no leader."""

    def __init__(self) -> None:
        self.ways = {1: FakeConnection(), 2: FakeConnection()}
        self.leaders: dict[TopicPartition, int] = {FIRST: 1, SECOND: 2, THIRD: -1}
        self.reported: list[tuple[TopicPartition, int]] = []
        self.markers = RemoteMarkers(
            self.leaders.get,
            lambda broker: Address("127.0.0.1", 9092) if broker in self.ways else None,
            lambda broker: self.ways[broker],  # type: ignore[arg-type, return-value]
        )

    def send(self, place: TopicPartition, end: TransactionEnd = END) -> None:
        self.markers.send(place, end, lambda code: self.reported.append((place, code)))


def test_markers_are_sent_to_the_leader_and_batched_while_a_request_is_in_flight() -> None:
    story = Story()
    story.leaders[SECOND] = 1
    others = [END._replace(producer_id=78), END._replace(producer_id=79, commit=False), END._replace(epoch=4)]
    story.send(FIRST)
    for end in others:
        story.send(FIRST, end)
        story.send(SECOND, end)
    story.ways[1].answer()
    assert story.reported == [(FIRST, 0)]
    found = [
        (each.producer_id, each.transaction_result, each.coordinator_epoch) for each in story.ways[1].request.markers
    ]
    assert found == [(78, True, 4), (79, False, 4), (77, True, 4)]
    assert story.ways[1].request.markers[0].topics[0].partition_indexes == [0, 1]
    story.ways[1].answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert story.reported[1:] == [(place, ErrorCode.NOT_ENOUGH_REPLICAS) for _ in others for place in (FIRST, SECOND)]


def test_two_markers_of_one_producer_are_never_in_one_request() -> None:
    story = Story()
    story.send(FIRST, END._replace(producer_id=1))
    story.send(FIRST)
    story.send(FIRST, END._replace(epoch=4))
    story.ways[1].answer()
    assert [each.producer_epoch for each in story.ways[1].request.markers] == [3]
    story.ways[1].answer()
    assert [each.producer_epoch for each in story.ways[1].request.markers] == [4]


def test_a_marker_without_a_leader_or_a_response_is_to_be_retried() -> None:
    story = Story()
    story.send(THIRD)
    story.leaders[THIRD] = 9
    story.send(THIRD)
    story.send(FIRST)
    story.ways[1].asked[-1].done(OttlaError("the connection was closed"))
    story.send(SECOND)
    story.ways[2].answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    story.send(SECOND)
    story.ways[2].asked[-1].done(WriteTxnMarkersResponse())
    away, lost = ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION
    assert story.reported == [(THIRD, away), (THIRD, away), (FIRST, lost), (SECOND, away), (SECOND, lost)]


def test_an_unknown_partition_is_reported() -> None:
    story = Story()
    story.send(TopicPartition("gone", 0))
    assert story.reported == [(TopicPartition("gone", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_nothing_is_reported_after_close() -> None:
    story = Story()
    story.send(FIRST)
    question = story.ways[1].asked[-1]
    story.markers.close()
    question.done(WriteTxnMarkersResponse())
    assert not story.reported


def test_a_response_of_a_former_leader_is_not_waited_for() -> None:
    story = Story()
    story.send(FIRST)
    story.markers.handle_new_metadata()
    assert (story.reported, len(story.ways[1].asked)) == ([], 1)
    story.leaders[FIRST] = 2
    story.markers.handle_new_metadata()
    assert story.reported == [(FIRST, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert not story.ways[1].asked  # hung up on
    story.send(FIRST)
    story.ways[2].answer()
    assert story.reported[1:] == [(FIRST, 0)]


def test_a_request_behind_one_that_is_not_needed_is_sent_at_once() -> None:
    story = Story()
    story.leaders[SECOND] = 1
    story.send(FIRST)
    story.send(SECOND)
    story.leaders[FIRST] = 2
    story.markers.handle_new_metadata()
    story.ways[1].answer()
    assert story.reported == [(FIRST, ErrorCode.NOT_LEADER_OR_FOLLOWER), (SECOND, 0)]


def test_only_results_of_partitions_that_the_broker_still_leads_count() -> None:
    story = Story()
    story.leaders[SECOND] = 1
    story.send(FIRST)
    story.send(FIRST, END._replace(producer_id=78))
    story.send(SECOND, END._replace(producer_id=79))
    story.ways[1].answer()
    story.leaders[FIRST] = 2
    story.markers.handle_new_metadata()
    story.ways[1].answer()
    assert story.reported == [(FIRST, 0), (FIRST, ErrorCode.NOT_LEADER_OR_FOLLOWER), (SECOND, 0)]


def test_markers_waiting_for_a_former_leader_are_released_for_the_new_one() -> None:
    story = Story()
    story.send(FIRST)
    story.send(FIRST, END._replace(epoch=4))
    story.leaders[FIRST] = -1
    story.markers.handle_new_metadata()
    assert story.reported == [(FIRST, ErrorCode.NOT_LEADER_OR_FOLLOWER)] * 2
    story.leaders[FIRST] = 1
    story.send(FIRST)
    assert len(story.ways[1].asked) == 1
