"""The sender with a broker that the test controls: the requests sent, and their order."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from ottla.client.metadata.metadata import Metadata
from ottla.client.network.network_client import NetworkClient
from ottla.client.producer.buffer_pool import BufferPool
from ottla.client.producer.config import read_producer_settings
from ottla.client.producer.events import Acknowledged, BatchDrained, BatchFailed, ProduceCompleted, ProduceSent
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.partitioner import StickyPartitioner
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.producer.sender import Sender
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.exits import EXITS
from ottla.clock import ManualClock
from ottla.errors import ErrorCode, IllegalStateError, KafkaError, KafkaTimeoutError, SslAuthenticationError
from ottla.model import Node, TopicPartition
from ottla.network.refusal import PeerRefusal
from ottla.network.selector import Selector
from ottla.protocol.apis import APIS
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.records.batch import parse_header
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.records.compression import Codec
from ottla.trace import EventStream
from tests.client.fake_selector import FakeSelector
from tests.client.producer.test_record_accumulator import NoJitter

TOPIC = uuid.UUID(int=7)
Answer = Callable[[int], PartitionProduceResponse]


def accepted(offset: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(0, base_offset=offset)


def refused(code: ErrorCode, log_start_offset: int = -1) -> PartitionProduceResponse:
    return PartitionProduceResponse(0, code, -1, log_start_offset=log_start_offset)


class Story:
    """A sender that the test drives by hand, and the broker's answers to its batches, in order."""

    def __init__(self, **settings: Any) -> None:
        self.clock = ManualClock()
        self.config = read_producer_settings({"bootstrap.servers": "h:1"}, {"linger_ms": 0, **settings})
        backoff = ExponentialBackoff(100, 1000, NoJitter())
        self.events = EventStream()
        manager = TransactionManager(name="p", backoff=backoff, transactional_id=self.config.transactional_id)
        self.manager = manager if self.config.enable_idempotence else None
        self.selector = FakeSelector(self.clock, self.serve)
        self.metadata = Metadata([Node(-1, "h", 1)], max_age_ms=300_000, backoff=backoff)
        client = NetworkClient(
            self.config,
            self.metadata,
            client_id="p",
            clock=self.clock,
            random=Random(1),
            selector=cast(Selector, self.selector),
        )
        self.accumulator = RecordAccumulator(
            batch_size=1000,
            linger_ms=0,
            delivery_timeout_ms=self.config.delivery_timeout_ms,
            retry_backoff=backoff,
            pool=BufferPool(100_000),
            make_builder=lambda most: BatchBuilder(Codec.NONE, None, most),
            make_sticky=lambda: StickyPartitioner(1000, Random(1)),
            monotonic=self.clock.monotonic,
            numbering=self.manager,
        )
        self.sender = Sender(self.config, client, self.accumulator, "p", self.manager, self.events)
        self.features: list[FinalizedFeatureKey] = []
        """The features of the cluster."""
        self.answers: list[PartitionProduceResponse] = []
        """The responses to the next batches; later ones are checked by their numbers."""
        self.expected: dict[tuple[int, int], int] = {}
        """The number that is due from each id and epoch."""
        self.endpoints: list[NodeEndpoint] = []
        self.sent: list[tuple[Any, int, int, int, int]] = []
        """Channel, producer id, epoch, base sequence and record count of each received batch."""
        self.silent = False
        self.ids = iter(range(40, 50))
        self.metadata.track_topic("t", 0.0)

    def serve(self, header: Any, request: Any) -> Any:
        match request:
            case ApiVersionsRequest():
                versions = [ApiVersion(a.key, a.versions.first, a.versions.last) for a in APIS.values()]
                return ApiVersionsResponse(api_keys=versions, finalized_features=self.features)
            case MetadataRequest():
                brokers = [MetadataResponseBroker(1, "h", 1), MetadataResponseBroker(2, "h", 2)]
                partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=3)
                topic = MetadataResponseTopic(name="t", topic_id=TOPIC, partitions=[partition])
                return MetadataResponse(brokers=brokers, topics=[topic])
            case InitProducerIdRequest():
                return InitProducerIdResponse(producer_id=next(self.ids), producer_epoch=0)
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(node_id=1, host="h", port=1)
            case AddPartitionsToTxnRequest():
                parts = [AddPartitionsToTxnPartitionResult(0)]
                return AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult("t", parts)]
                )
            case EndTxnRequest():
                return EndTxnResponse()
            case ProduceRequest():
                return self.produced(request)
        raise AssertionError(f"not expected: {request}")

    def produced(self, request: ProduceRequest) -> ProduceResponse | None:
        data = request.topic_data[0].partition_data[0].records
        assert data is not None
        batch = parse_header(data)
        decode(data)  # which checks the CRC
        channel = self.selector.requests[-1][0]
        self.sent.append((channel, batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count))
        if self.silent:
            return None
        reported = self.answers.pop(0) if self.answers else None
        producer = batch.producer_id, batch.producer_epoch
        expected = self.expected.get(producer, 0)
        fits = batch.base_sequence in (-1, expected)
        answer = reported or (
            accepted(len(self.sent) * 1000) if fits else refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        )
        if answer.error_code == ErrorCode.NONE:
            self.expected[producer] = expected + batch.count
        return ProduceResponse([TopicProduceResponse("t", TOPIC, [answer])], node_endpoints=self.endpoints)

    def send(self, *counts: int) -> list[RecordFuture]:
        """Append batches of so many records and return the future of each first record."""
        firsts = []
        for count in counts:
            builder = BatchBuilder(Codec.NONE, None, 10_000)
            for index in range(count):
                builder.append(index, None, b"v" * 50)
            data = bytearray(builder.build())
            batch = self.accumulator.append_batch(TopicPartition("t", 0), data, count)
            assert batch is not None
            firsts.append(RecordFuture(batch.result, 0, 0, -1, -1))
        return firsts

    def begin(self) -> None:
        """Begin a transaction that contains the partition."""
        assert self.manager is not None
        machine = self.manager.machine
        done = machine.init_transactions()
        while not done.done:
            self.sender.run_once()
        machine.acknowledge_call("init_transactions")
        machine.begin_transaction()
        machine.add_partition(TopicPartition("t", 0))

    def versions(self, kind: type[Any]) -> list[int]:
        """Return the versions of the received requests of a type."""
        return [header.api_version for _, header, request in self.selector.requests if isinstance(request, kind)]

    def times_asked_who_leads(self) -> int:
        return sum(isinstance(request, MetadataRequest) for _, _, request in self.selector.requests)

    def run(self, turns: int = 30) -> None:
        for _ in range(turns):
            if not self.accumulator.incomplete():
                return
            self.sender.run_once()

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """Return epoch and base sequence of each received batch."""
        return [(epoch, first) for _, _, epoch, first, _ in self.sent]


@pytest.mark.behaviour("P6")
def test_batches_are_numbered_from_0_under_an_id_that_the_broker_gave() -> None:
    story = Story()
    futures = story.send(3, 2, 5)
    story.run()
    assert [(id_, epoch, first, count) for _, id_, epoch, first, count in story.sent] == [
        (40, 0, 0, 3), (40, 0, 3, 2), (40, 0, 5, 5),
    ]  # fmt: skip
    assert all(future.result(0).offset >= 0 for future in futures)


@pytest.mark.behaviour("P6")
def test_without_idempotence_batches_have_no_numbers() -> None:
    story = Story(enable_idempotence=False)
    story.send(3)
    story.run()
    assert story.sent == [(1, -1, -1, -1, 3)]


@pytest.mark.behaviour("P6")
def test_a_retried_batch_keeps_its_sequences_and_is_sent_before_later_ones() -> None:
    story = Story()
    story.answers = [
        accepted(0),
        refused(ErrorCode.NOT_ENOUGH_REPLICAS),
    ]
    futures = story.send(1, 1, 1, 1)
    story.run()
    assert [first for _, first in story.numbers] == [0, 1, 2, 3, 1, 2, 3]
    assert {epoch for epoch, _ in story.numbers} == {0}, "only the first in flight is judged"
    assert all(future.exception(0) is None for future in futures)


@pytest.mark.behaviour("P6")
def test_a_gap_before_the_first_batch_starts_the_next_epoch_at_0() -> None:
    story = Story()
    story.answers = [accepted(0), refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)]
    futures = story.send(2, 2)
    story.run()
    assert story.numbers == [(0, 0), (0, 2), (1, 0)]
    assert all(future.exception(0) is None for future in futures)


@pytest.mark.behaviour("P6")
def test_a_batch_overtaken_by_a_later_one_is_resent_in_the_next_epoch() -> None:
    """A topic that is deleted and created again under a producer accepts any first number."""
    story = Story()
    story.answers = [
        accepted(0), refused(ErrorCode.UNKNOWN_TOPIC_ID), accepted(0), refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ]  # fmt: skip
    futures = story.send(1, 1, 1)
    story.run()
    assert story.numbers == [(0, 0), (0, 1), (0, 2), (0, 1), (1, 0)]
    assert all(future.exception(0) is None for future in futures)


@pytest.mark.behaviour("P6")
def test_a_broker_that_has_forgotten_the_producer_is_sent_the_next_epoch() -> None:
    story = Story()
    story.answers = [accepted(0), refused(ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=100)]
    story.send(2, 2)
    story.run()
    assert story.numbers == [(0, 0), (0, 2), (1, 0)]


@pytest.mark.behaviour("P6")
def test_a_duplicate_sequence_is_a_success_without_an_offset() -> None:
    story = Story()
    story.answers = [refused(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)]
    (future,) = story.send(2)
    story.run()
    assert future.result(0).offset == -1


@pytest.mark.parametrize("answer", [accepted(7), refused(ErrorCode.INVALID_TOPIC_EXCEPTION)])
def test_a_response_to_an_expired_batch_is_ignored(answer: PartitionProduceResponse) -> None:
    story = Story(delivery_timeout_ms=2000, request_timeout_ms=1500)
    trace = story.events.trace()
    [future] = story.send(1)
    story.silent = True
    story.clock.advance(1.5)
    while not story.sent:
        story.sender.run_once()
    story.clock.advance(0.6)
    story.run()
    assert isinstance(future.exception(0), KafkaTimeoutError)
    channel, header, _ = story.selector.requests[-1]
    story.selector.answer_late(channel, header, ProduceResponse([TopicProduceResponse("t", TOPIC, [answer])]))
    story.sender.run_once()
    assert [type(moment.event) for moment in trace][-2:] == [BatchFailed, ProduceCompleted]
    story.silent = False
    [after] = story.send(1)
    story.run()
    assert isinstance(future.exception(0), KafkaTimeoutError)
    assert after.exception(0) is None


@pytest.mark.behaviour("P4", "P6")
def test_a_batch_with_a_fatal_error_fails_alone_and_leaves_no_gap() -> None:
    story = Story()
    story.answers = [accepted(0), refused(ErrorCode.INVALID_RECORD)]
    first, second, third = story.send(1, 1, 1)
    story.run()
    assert str(second.exception(0)) == "INVALID_RECORD: t-0: rejected"
    assert first.exception(0) is None
    assert third.exception(0) is None
    assert story.numbers[-1] == (1, 0), "what follows begins the next epoch"


@pytest.mark.behaviour("P4")
def test_a_batch_that_cannot_be_encoded_fails_alone_and_is_not_sent() -> None:
    story = Story()
    (first,) = story.send(1)
    batch = story.accumulator.append_batch(TopicPartition("t", 0), bytearray(100), 2)
    assert batch is not None
    batch.payload = memoryview(bytes(100))  # which takes no numbers
    (third,) = story.send(3)
    story.run()
    assert {count for *_, count in story.sent} == {1, 3}
    assert RecordFuture(batch.result, 0, 0, -1, -1).exception(0) is not None
    assert (first.exception(0), third.exception(0)) == (None, None)


@pytest.mark.behaviour("P4")
def test_a_record_error_of_the_broker_is_raised_for_that_record() -> None:
    story = Story()
    story.answers = [refused(ErrorCode.INVALID_RECORD)]
    story.answers[0].record_errors = [BatchIndexAndErrorMessage(0, "it has no key")]
    (future,) = story.send(2)
    story.run()
    assert str(future.exception(0)) == "INVALID_RECORD: it has no key"


@pytest.mark.behaviour("P6")
def test_the_parts_of_a_batch_that_is_too_large_share_its_numbers() -> None:
    story = Story()
    story.answers = [refused(ErrorCode.MESSAGE_TOO_LARGE)]
    (future, *_) = story.send(8, 1)
    story.run()
    assert [(first, count) for _, _, _, first, count in story.sent] == [(0, 8), (0, 4), (4, 4), (8, 1)]
    assert future.exception(0) is None


@pytest.mark.behaviour("P6")
def test_a_producer_with_exhausted_epochs_requests_another_id() -> None:
    story = Story()
    story.answers = [accepted(0), refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)]
    story.send(1)
    story.run()
    assert story.manager is not None
    story.manager.sequences.set_producer(story.manager.sequences.producer._replace(epoch=2**15 - 2))
    story.answers = [accepted(0), refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)]
    story.send(1, 1)
    story.run()
    assert [(id_, epoch, first) for _, id_, epoch, first, _ in story.sent[1:]] == [
        (40, 2**15 - 2, 0), (40, 2**15 - 2, 1), (41, 0, 0),
    ]  # fmt: skip


@pytest.mark.behaviour("P4")
def test_retriable_errors_are_retried_and_others_are_not() -> None:
    story = Story(enable_idempotence=False)
    story.answers = [refused(ErrorCode.NOT_ENOUGH_REPLICAS), refused(ErrorCode.KAFKA_STORAGE_ERROR)]
    (passing,) = story.send(1)
    story.run()
    story.answers = [refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    (lasting,) = story.send(1)
    story.run()
    assert passing.exception(0) is None
    assert isinstance(lasting.exception(0), KafkaError)
    assert len(story.sent) == 4


@pytest.mark.behaviour("P4")
def test_a_broker_that_names_the_new_leader_saves_the_wait() -> None:
    story = Story()
    moved = refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    moved.current_leader = LeaderIdAndEpoch(2, 4)
    story.answers, story.endpoints = [moved], [NodeEndpoint(2, "h", 2)]
    started = story.clock.monotonic()
    (future,) = story.send(1)
    story.run()
    assert future.exception(0) is None
    assert [channel for channel, *_ in story.sent] == [1, 2]
    assert story.clock.monotonic() - started < 0.1, "less than the backoff"


@pytest.mark.behaviour("P4")
@pytest.mark.parametrize(
    ("code", "asks"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS, False),
        (ErrorCode.INVALID_RECORD, False),
    ],
)
def test_metadata_is_refreshed_after_not_leader_errors_and_not_after_every_error(code: ErrorCode, asks: bool) -> None:
    story = Story()
    story.send(1)
    story.run()
    before = story.times_asked_who_leads()
    story.answers = [refused(code)]
    story.send(1)
    story.run()
    assert (story.times_asked_who_leads() > before) is asks


@pytest.mark.behaviour("P4")
def test_metadata_is_not_requested_from_a_leader_that_may_be_partitioned() -> None:
    """A partitioned leader cannot commit, and reports itself as the leader until it finds out about another."""
    story = Story()
    story.send(1)
    story.run()
    for code in (ErrorCode.REQUEST_TIMED_OUT, None):  # it says so, or does not answer at all
        before = len(story.selector.requests)
        story.answers, story.silent = [refused(code)] if code else [], code is None
        story.send(1)
        story.run(6)
        story.silent = False
        story.run()
        asked = [who for who, _, request in story.selector.requests[before:] if isinstance(request, MetadataRequest)]
        assert asked, "who leads is not asked at all"
        assert 1 not in asked


@pytest.mark.behaviour("P5")
def test_no_connection_has_more_requests_unanswered_than_it_may() -> None:
    story = Story(max_in_flight_requests_per_connection=5)
    story.send(1)
    story.run()
    story.selector.handler = lambda header, request: None
    story.send(*[1] * 9)
    for _ in range(20):
        story.sender._send_producer_data(story.clock.monotonic())
        story.selector.poll(0)
    unanswered = [request for _, _, request in story.selector.requests if isinstance(request, ProduceRequest)]
    assert len(unanswered) - 1 == 5


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize(
    ("most", "order"), [(1, [1, 1, 2, 3]), (2, [1, 2, 3, 1]), (5, [1, 2, 3, 1])], ids=lambda value: str(value)
)
def test_without_numbers_only_one_request_at_a_time_keeps_the_order_of_batches_when_one_is_tried_again(
    most: int, order: list[int]
) -> None:
    story = Story(enable_idempotence=False, max_in_flight_requests_per_connection=most)
    story.answers = [refused(ErrorCode.NOT_ENOUGH_REPLICAS)]
    futures = story.send(1, 2, 3)
    story.run()
    assert [count for *_, count in story.sent] == order
    assert all(future.exception(0) is None for future in futures)


def without_an_id() -> Story:
    """A broker where the user may write to no topic and therefore gets no producer id."""
    story = Story()
    serve = story.serve
    refusal = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    story.selector.handler = lambda header, request: (
        refusal if isinstance(request, InitProducerIdRequest) else serve(header, request)
    )
    return story


def test_a_fatal_init_producer_id_error_fails_every_record() -> None:
    story = without_an_id()
    futures = story.send(1, 1)
    story.run()
    for future in futures:
        message = str(future.exception(0))
        assert "CLUSTER_AUTHORIZATION_FAILED" in message
        assert "an ACL for WRITE on the topic" in message
        assert "for the cluster" not in message


def test_a_turn_that_fails_records_before_it_waits_ends_at_once_so_that_a_flush_does() -> None:
    """A flush checks again at the end of a turn; a turn without work would wait forever."""
    story = without_an_id()
    (future,) = story.send(1)
    while not future.done():
        story.sender.run_once()
    assert story.selector.waited[-1] == 0.0
    story.sender.run_once()
    assert story.selector.waited[-1] != 0.0


def test_records_queued_for_a_broker_that_refuses_the_connection_fail_at_once() -> None:
    story = Story()
    story.send(1)
    story.run()
    begun = story.clock.monotonic()
    story.selector.end(1)
    story.selector.refuse = PeerRefusal("the broker's certificate has expired: have it renewed")
    story.sender.run_once()
    (future,) = story.send(1)
    story.run()
    with pytest.raises(SslAuthenticationError, match="has expired: have it renewed"):
        future.result(0)
    assert story.clock.monotonic() - begun < 10


def test_a_batch_that_may_have_been_written_does_not_expire_as_unwritten() -> None:
    story = Story()
    story.silent = True
    (future,) = story.send(1)
    while not story.sent:
        story.sender.run_once()
    story.selector.end(story.sent[-1][0])
    story.selector.refuse = PeerRefusal("the broker's certificate has expired: have it renewed")
    story.run()
    assert isinstance(future.exception(0), SslAuthenticationError)
    story.selector.refuse, story.silent = "", False
    story.clock.advance(10)
    (after,) = story.send(1)
    story.run()
    assert after.exception(0) is None
    assert story.numbers == [(0, 0), (1, 0)], "the number may be taken, so what follows begins the next epoch"


def test_a_batch_rejected_until_its_delivery_timeout_names_the_last_error() -> None:
    story = Story(delivery_timeout_ms=2000, request_timeout_ms=1500)
    story.answers = [refused(ErrorCode.NOT_ENOUGH_REPLICAS)] * 100
    (future,) = story.send(1)
    story.run(100)
    assert isinstance(future.exception(0), KafkaTimeoutError)
    assert "NOT_ENOUGH_REPLICAS: t-0: rejected" in str(future.exception(0))


def test_a_new_batch_wakes_only_a_sender_that_waits() -> None:
    story = Story()
    story.sender.run_once()
    poll, woken = story.selector.poll, []
    story.send(1)
    woken.append(story.selector._woken)

    def poll_meanwhile(timeout: float | None) -> None:
        story.send(1)
        woken.append(story.selector._woken)
        poll(timeout)

    story.selector.poll = poll_meanwhile  # type: ignore[method-assign]
    story.sender.run_once()
    assert woken == [False, True]


def test_the_sender_waits_until_the_expiry_of_an_in_flight_batch() -> None:
    story = Story(delivery_timeout_ms=2000, request_timeout_ms=1500)
    story.silent = True
    story.send(1)
    created = story.clock.monotonic()
    story.clock.advance(1.5)
    while not story.sent:
        story.sender.run_once()
    story.sender.run_once()
    assert story.clock.monotonic() == pytest.approx(created + 2.0, rel=1e-6)


def test_trace_events_cover_the_life_of_a_batch() -> None:
    story = Story()
    with story.events.trace() as trace:
        story.send(1)
        story.run()
    events = [moment.event for moment in trace]
    assert [type(event) for event in events] == [BatchDrained, ProduceSent, ProduceCompleted, Acknowledged]


def test_a_sender_that_is_closed_sends_what_is_queued_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    futures = story.send(1, 1)
    story.sender.initiate_close()
    assert story.selector._woken
    story.sender._run()
    assert [future.exception(0) for future in futures] == [None, None]
    assert story.clock.monotonic() < story.config.max_block_ms / 1000, "nothing was waited for"
    assert not caplog.records


def test_a_forced_close_fails_the_remaining_records(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()
    futures = story.send(1, 2)
    story.sender.initiate_close()
    story.sender._forced = True
    story.sender._run()
    for future in futures:
        with pytest.raises(IllegalStateError, match="closed before the record was delivered"):
            future.result(0)
    assert "closed with undelivered records records=3" in caplog.text
    assert story.accumulator.incomplete() == []


def test_a_hanging_sender_is_not_closed_again_at_process_exit() -> None:
    story = Story(request_timeout_ms=10)
    entered, go_on = threading.Event(), threading.Event()
    serve = story.serve

    def hang(header: Any, request: Any) -> Any:
        entered.set()
        go_on.wait(60)
        return serve(header, request)

    story.selector.handler = hang
    story.send(1)
    story.sender.start()
    try:
        assert entered.wait(60)
        story.sender.close(0)
        assert story.sender.thread.is_alive()
        assert story.sender._finish_at_exit not in EXITS._closers
    finally:
        go_on.set()
        story.sender.thread.join(60)


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize(("level", "versions"), [(1, [11]), (2, [13])])
def test_the_produce_version_depends_on_the_transaction_version(level: int, versions: list[int]) -> None:
    story = Story(transactional_id="x")
    story.features = [FinalizedFeatureKey("transaction.version", level, level)]
    story.begin()
    story.send(1)
    story.run()
    assert story.versions(ProduceRequest) == versions


@pytest.mark.behaviour("P7")
@pytest.mark.parametrize("forced", [False, True])
def test_a_transaction_open_at_close_is_aborted_if_time_remains(forced: bool) -> None:
    story = Story(transactional_id="x")
    story.begin()
    story.send(1)
    story.run()
    story.sender.initiate_close()
    story.sender._forced = forced
    story.sender._run()
    ends = [request.committed for _, _, request in story.selector.requests if isinstance(request, EndTxnRequest)]
    assert ends == ([] if forced else [False])
