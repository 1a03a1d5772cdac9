"""The fetcher with a broker that returns chosen responses."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest

from ottla.client.consumer.config import read_consumer_settings
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.events import Buffered, FetchCompleted, FetchSent, HandedOut
from ottla.client.consumer.fetching.fetcher import Fetcher
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metadata.metadata import Metadata
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import ManualClock
from ottla.errors import (
    CorruptRecordError,
    ErrorCode,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
    UnsupportedVersionError,
)
from ottla.model import EARLIEST, FOREVER, TopicPartition
from ottla.network.selector import Selector
from ottla.protocol.apis import APIS
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ottla.records.batch import stamp
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker
from ottla.trace import EventStream
from tests.client.fake_selector import FakeSelector

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
Answer = Callable[[FetchRequest], dict[int, PartitionData]]


def batch(base_offset: int, count: int = 3, size: int = 10) -> bytes:
    """Records with consecutive offsets; the value is the offset."""
    builder = BatchBuilder(max_bytes=1_000_000)
    for n in range(count):
        builder.append(1000, None, b"%d" % (base_offset + n) + bytes(size))
    data = bytearray(builder.build())
    stamp(data, 0, base_offset, 0)
    return bytes(data)


def data(*batches: bytes, error: int = 0, high_watermark: int = 100) -> PartitionData:
    return PartitionData(error_code=error, high_watermark=high_watermark, log_start_offset=0, records=b"".join(batches))


class Story:
    """A fetcher, a manual clock, and partitions with what the broker answers for them."""

    def __init__(self, *assigned: TopicPartition, reset: int | None = EARLIEST, **settings: Any) -> None:
        self.clock = ManualClock()
        self.partitions: dict[int, PartitionData] = {}
        """The response of each partition; missing ones have none."""
        self.fetches: list[dict[int, int]] = []
        """Partition and offset of each request."""
        self.sent: list[tuple[int, FetchRequest]] = []
        """Each request with the node it went to."""
        self.session_id = 0
        """The session that the broker offers."""
        self.silent = False
        self.refusal: FetchResponse | None = None
        """The error code of the whole response."""
        self.ends: dict[int, EpochEndOffset] = {}
        """The response of the broker about the end of an epoch."""
        self.asked_of_epochs: list[OffsetForLeaderEpochRequest] = []
        self.leader_epoch = 5
        self.replica = 2
        """The second broker."""
        config = read_consumer_settings({"bootstrap.servers": "k:1"}, settings)
        chance = Random(1)
        backoff = ExponentialBackoff(100, 1000, chance)
        self.metadata = Metadata(bootstrap_nodes(["k:1"]), max_age_ms=300_000, backoff=backoff)
        self.broker = FakeSelector(self.clock, self.answer)
        selector = cast(Selector, self.broker)
        network = NetworkClient(
            config, self.metadata, client_id="c", max_in_flight=100, clock=self.clock, random=chance, selector=selector
        )
        self.client = ConsumerNetworkClient(network, request_timeout_ms=30_000)
        self.subscriptions = SubscriptionState(reset)
        self.events = EventStream()
        self.fetcher = Fetcher(config, self.client, self.subscriptions, backoff, self.events)
        self.subscriptions.assign(assigned)
        self.metadata.track_topic("t", 0)
        for tp in assigned:
            self.subscriptions.seek(tp, 0)

    def answer(self, header: RequestHeader, request: Any) -> Any:
        match request:
            case ApiVersionsRequest():
                versions = [ApiVersion(a.key, a.versions.first, a.versions.last) for a in APIS.values()]
                return ApiVersionsResponse(api_keys=versions)
            case MetadataRequest():
                parts = [
                    MetadataResponsePartition(partition_index=index, leader_id=1, leader_epoch=self.leader_epoch)
                    for index in range(2)
                ]
                return MetadataResponse(
                    brokers=[
                        MetadataResponseBroker(node_id=1, host="k", port=1, rack="east"),
                        MetadataResponseBroker(node_id=self.replica, host="k", port=2, rack="west"),
                    ],
                    topics=[MetadataResponseTopic(name="t", partitions=parts)],
                )
            case FetchRequest():
                return self.fetch(request)
            case OffsetForLeaderEpochRequest():
                self.asked_of_epochs.append(request)
                (topic,) = request.topics
                ends = [self.ends[part.partition] for part in topic.partitions]
                return OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult("t", ends)])
        raise AssertionError(request)

    def fetch(self, request: FetchRequest) -> FetchResponse | None:
        asked = {part.partition: part.fetch_offset for topic in request.topics for part in topic.partitions}
        self.fetches.append(asked)
        self.sent.append((cast(int, self.broker.requests[-1][0]), request))
        if self.silent or self.refusal:
            return self.refusal
        answers = []
        for index in asked:
            part = self.partitions.get(index, data())
            part.partition_index = index
            answers.append(part)
        topics = [FetchableTopicResponse(topic="t", partitions=answers)]
        return FetchResponse(session_id=self.session_id, responses=topics)

    def poll(self, times: int = 6) -> None:
        """Fetch, as `Consumer.poll` does, until something has arrived."""
        for _ in range(times):
            self.fetcher.send_fetches()
            self.client.poll(0.05)
            if self.fetcher.completed_fetches:
                return

    def reach_a_fetch(self) -> None:
        """Poll until the broker has been asked once more."""
        before = len(self.fetches)
        while len(self.fetches) == before:
            self.fetcher.send_fetches()
            self.client.poll(0.05)

    def new_leader(self) -> None:
        """Another leader is known."""
        self.leader_epoch += 1
        self.metadata.request_update()
        self.clock.advance(1)
        for _ in range(3):
            self.client.poll(0.05)

    def values(self, most: int = 500) -> list[int]:
        return [int(record.value.rstrip(b"\0")) for part in self.fetcher.collect_fetch(most) for record in part]

    def position(self, tp: TopicPartition = A) -> int | None:
        return self.subscriptions.state(tp).position


def test_topics_without_ids_are_fetched_by_name() -> None:
    story = Story(A)
    story.partitions[0] = data(batch(0))
    story.poll()
    assert story.values() == [0, 1, 2]
    assert story.position() == 3


def test_a_batch_that_begins_before_the_offset_is_cut() -> None:
    story = Story(A)
    story.subscriptions.seek(A, 1)
    story.partitions[0] = data(batch(0))
    story.poll()
    assert story.values() == [1, 2]


@pytest.mark.behaviour("C2")
def test_a_partition_with_buffered_records_is_not_fetched() -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0)), 1: data(batch(0))}
    story.poll()
    assert story.values(most=4) == [0, 1, 2, 0]
    story.poll(1)
    story.client.poll(0)
    assert story.fetches == [{0: 0, 1: 0}, {0: 3}]


def test_a_moved_leader_is_found_and_fetched_from_after_a_backoff() -> None:
    story = Story(A)
    story.partitions[0] = data(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    story.poll()
    version = story.metadata.version
    assert story.values() == []
    assert 0 < story.subscriptions.next_retry(story.clock.monotonic()) < FOREVER
    story.partitions[0] = data(batch(0))
    story.poll(20)
    assert story.values() == [0, 1, 2]
    for _ in range(20):
        if story.metadata.version == version:  # its pause may end a little after that of the fetch
            story.client.poll(0.05)
    assert story.metadata.version > version


def test_an_offset_out_of_range_is_reset_by_the_policy() -> None:
    story = Story(A)
    story.partitions[0] = data(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    story.poll()
    assert story.values() == []
    assert story.subscriptions.find_reset_timestamps(story.clock.monotonic()) == {A: EARLIEST}


def test_an_offset_out_of_range_is_an_error_without_a_policy() -> None:
    story = Story(A, reset=None)
    story.partitions[0] = data(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    story.poll()
    with pytest.raises(OffsetOutOfRangeError, match="t-0 has no offset 0; its offsets are 0 to 100"):
        story.values()


def test_an_error_that_stays_is_raised_after_the_records_before_it() -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0)), 1: data(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
    story.poll()
    assert story.values() == [0, 1, 2]
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED: fetch of t-1 at offset 0"):
        story.values()


def test_a_damaged_batch_is_named_and_can_be_sought_past() -> None:
    story = Story(A)
    damaged = bytearray(batch(3))
    damaged[70] ^= 1
    story.partitions[0] = data(batch(0), bytes(damaged))
    story.poll()
    assert story.values() == [0, 1, 2]
    story.partitions[0] = data(bytes(damaged))
    story.poll()
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 3: .*; seek to offset 6 to skip it"):
        story.values()
    assert story.position() == 3, "nothing was skipped"
    story.subscriptions.seek(A, 6)
    story.partitions[0] = data(batch(6))
    story.poll()
    assert story.values() == [6, 7, 8]


def fetch_sound_and_damaged() -> Story:
    """A sound batch of A's and a damaged one of B's have arrived."""
    story = Story(A, B)
    damaged = bytearray(batch(0))
    damaged[70] ^= 1
    story.partitions = {0: data(batch(0)), 1: data(bytes(damaged))}
    story.poll()
    return story


def test_a_damaged_batch_leaves_the_position_of_columns_too() -> None:
    story = fetch_sound_and_damaged()
    ((tp, columns),) = story.fetcher.collect_columns(None, with_headers=False)
    assert (tp, list(columns.offsets)) == (A, [0, 1, 2])
    assert (story.position(A), story.position(B)) == (3, 0)
    with pytest.raises(CorruptRecordError, match=r"t-1, offset 0: .*; seek to offset 3"):
        story.fetcher.collect_columns(None, with_headers=False)
    assert (story.position(A), story.position(B)) == (3, 0)


def test_damage_is_raised_before_records_that_arrived_later() -> None:
    story = fetch_sound_and_damaged()
    story.fetcher.collect_columns(None, with_headers=False)
    story.partitions[0] = data(batch(3))
    story.poll()
    with pytest.raises(CorruptRecordError, match="t-1, offset 0"):
        story.fetcher.collect_columns(None, with_headers=False)
    assert [tp for tp, _ in story.fetcher.collect_columns(None, with_headers=False)] == [A]


def test_damage_is_not_raised_after_a_seek_to_another_position() -> None:
    story = fetch_sound_and_damaged()
    story.fetcher.collect_columns(None, with_headers=False)
    story.subscriptions.seek(B, 3)
    assert story.fetcher.collect_columns(None, with_headers=False) == []


def test_damage_is_not_raised_for_partitions_that_are_no_longer_assigned() -> None:
    story = fetch_sound_and_damaged()
    story.fetcher.collect_columns(None, with_headers=False)
    story.subscriptions.assign([A])
    assert story.fetcher.collect_columns(None, with_headers=False) == []


def test_damage_can_be_skipped_on_request() -> None:
    story = Story(A, check_crcs=False)
    damaged = bytearray(batch(0))
    damaged[17] ^= 1
    story.partitions[0] = data(bytes(damaged))
    story.poll()
    assert story.values() == [0, 1, 2]


def test_an_answer_without_a_whole_batch_is_an_error_rather_than_an_endless_loop() -> None:
    story = Story(A)
    story.partitions[0] = data(batch(0)[:-1])
    story.poll()
    with pytest.raises(CorruptRecordError, match="contain no complete batch"):
        story.values()


@pytest.mark.behaviour("C2")
def test_columns_skip_paused_partitions_and_keep_their_records() -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0)), 1: data(batch(0))}
    story.poll()
    story.subscriptions.state(A).is_paused = True
    assert [tp for tp, _ in story.fetcher.collect_columns(None, with_headers=False)] == [B]
    story.subscriptions.state(A).is_paused = False
    assert [tp for tp, _ in story.fetcher.collect_columns(None, with_headers=False)] == [A]


def test_a_partition_read_as_columns_moves_to_the_back_with_the_epoch_of_its_last_record() -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0))}
    story.poll()
    story.fetcher.collect_columns(None, with_headers=False)
    assert story.subscriptions.state(A).epoch == 0
    assert story.subscriptions.find_fetchable(story.clock.monotonic(), ()) == [B, A]


@pytest.mark.parametrize(("stable", "readable"), [(0, 0), (7, 7), (-1, 100)])
def test_read_committed_reads_up_to_the_last_stable_offset_if_the_broker_sends_it(stable: int, readable: int) -> None:
    story = Story(A, isolation_level="read_committed")
    story.partitions[0] = PartitionData(high_watermark=100, last_stable_offset=stable)
    story.reach_a_fetch()
    assert story.subscriptions.state(A).readable_to == readable


def test_a_log_that_its_broker_cannot_read_is_damage() -> None:
    story = Story(A)
    story.partitions[0] = data(error=ErrorCode.CORRUPT_MESSAGE)
    story.poll()
    with pytest.raises(CorruptRecordError, match="t-0, offset 0: the broker's log is damaged"):
        story.values()


def test_columns_are_returned_whole_and_the_next_fetches_are_sent_before_decoding() -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0)), 1: data(batch(0), batch(3))}
    story.poll()
    chunks = story.fetcher.collect_columns(None, with_headers=False)
    assert [(tp, columns.count) for tp, columns in chunks] == [(A, 3), (B, 6)]
    assert (story.position(A), story.position(B)) == (3, 6)
    assert story.fetcher.nodes_with_pending_fetch == {1}
    story.client.poll(0)
    assert story.fetches[-1] == {0: 3, 1: 6}


def test_an_error_waits_for_the_columns_before_it() -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0)), 1: data(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)}
    story.poll()
    assert [tp for tp, _ in story.fetcher.collect_columns(None, with_headers=False)] == [A]
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED: fetch of t-1 at offset 0"):
        story.fetcher.collect_columns(None, with_headers=False)


def test_an_error_that_may_pass_moves_no_position() -> None:
    story = Story(A)
    story.partitions[0] = data(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    story.poll()
    assert story.fetcher.collect_columns(None, with_headers=False) == []
    assert not story.fetcher.take_skipped()


@pytest.mark.parametrize(
    ("bound", "portions"),
    [(1, [[A], [B]]), (2 * len(batch(0)) - 1, [[A], [B]]), (2 * len(batch(0)), [[A, B], []])],
)
def test_columns_can_be_bounded_by_bytes(bound: int, portions: list[list[TopicPartition]]) -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0)), 1: data(batch(0))}
    story.poll()
    taken = [story.fetcher.collect_columns(bound, with_headers=False) for _ in range(2)]
    assert [[tp for tp, _ in chunks] for chunks in taken] == portions


def test_records_and_columns_can_be_polled_alternately() -> None:
    story = Story(A)
    story.partitions[0] = data(batch(0, count=5))
    story.poll()
    assert story.values(most=2) == [0, 1]
    ((_, columns),) = story.fetcher.collect_columns(None, with_headers=False)
    assert list(columns.offsets) == [2, 3, 4]
    assert story.position() == 5


def test_a_response_for_a_position_that_has_moved_is_dropped() -> None:
    story = Story(A)
    story.partitions[0] = data(batch(0))
    story.poll()
    story.subscriptions.seek(A, 50)
    assert story.values() == []
    assert story.position() == 50


def test_a_lost_connection_is_not_raised_to_the_user() -> None:
    story = Story(A)
    story.session_id = 7
    story.reach_a_fetch()
    story.silent = True
    story.reach_a_fetch()
    story.silent = False
    story.partitions[0] = data(batch(0))
    story.broker.end(1, "reset")
    story.poll(40)
    assert story.values() == [0, 1, 2]
    assert (story.sent[-1][1].session_id, story.sent[-1][1].session_epoch) == (7, 0), "nobody knows what was heard"


def test_a_broker_that_is_too_old_for_fetch_is_raised_to_the_user() -> None:
    story = Story(A)
    answer = story.broker.handler
    no_fetch = ApiVersionsResponse(api_keys=[ApiVersion(3, 0, 12), ApiVersion(18, 0, 3)])
    story.broker.handler = lambda header, request: (
        no_fetch if isinstance(request, ApiVersionsRequest) else answer(header, request)
    )
    with pytest.raises(UnsupportedVersionError, match="Fetch"):
        story.poll(40)


def test_after_an_error_of_the_whole_response_the_partitions_are_fetched_after_a_backoff() -> None:
    story = Story(A)
    story.refusal = FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    story.reach_a_fetch()
    assert 0 < story.subscriptions.next_retry(story.clock.monotonic()) < FOREVER
    story.refusal = None
    story.partitions[0] = data(batch(0))
    story.poll(20)
    assert story.values() == [0, 1, 2]


def test_a_fetch_is_prepared_for_a_broker_that_is_still_connecting() -> None:
    story = Story(A)
    while 1 not in story.metadata.cluster.nodes:
        story.client.poll(0.05)
    assert not story.client.client.ready(story.metadata.cluster.nodes[1], story.clock.monotonic())
    assert story.fetcher.send_fetches() == 1


def test_offsets_skipped_without_a_record_are_reported_once() -> None:
    story = Story(A)
    assert not story.fetcher.take_skipped()
    marker = bytearray(encode_end_marker(7, 0, EndMarker(ControlType.COMMIT, 0), 1000))
    stamp(marker, 0, 0, 0)
    story.partitions[0] = data(bytes(marker))
    story.poll()
    assert story.values() == []
    assert (story.position(), story.fetcher.take_skipped(), story.fetcher.take_skipped()) == (1, True, False)


def test_trace_events_cover_a_fetch_from_the_request_to_the_columns() -> None:
    story = Story(A)
    story.partitions[0] = data(batch(0))
    with story.events.trace() as trace:
        story.poll()
        story.fetcher.collect_columns(None, with_headers=False)
    events = [moment.event for moment in trace]
    assert [type(event) for event in events] == [FetchSent, FetchCompleted, Buffered, FetchSent, HandedOut]
    assert events[1] == FetchCompleted(1, len(batch(0)), "")
    assert events[4] == HandedOut(A, 0, 3)


def test_trace_events_cover_each_portion_of_records() -> None:
    story = Story(A)
    story.partitions[0] = data(batch(0))
    story.poll()
    with story.events.trace() as trace:
        story.values(most=2)
        story.values(most=2)
    assert [moment.event for moment in trace] == [HandedOut(A, 0, 2), HandedOut(A, 2, 1)]


def test_trace_events_cover_failed_fetches() -> None:
    story = Story(A)
    with story.events.trace() as trace:
        story.refusal = FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        story.reach_a_fetch()
        story.refusal, story.partitions[0] = None, PartitionData(high_watermark=100, records=None)
        story.reach_a_fetch()
        story.silent = True
        story.reach_a_fetch()
        story.broker.end(1, "reset")
        story.client.poll(0.05)
    events = [moment.event for moment in trace if isinstance(moment.event, FetchCompleted)]
    assert events[:2] == [FetchCompleted(1, 0, "UNKNOWN_SERVER_ERROR"), FetchCompleted(1, 0, "")]
    assert "reset" in events[2].error


def test_the_fetch_request_has_the_leader_epoch() -> None:
    story = Story(A)
    asked: list[int] = []
    fetch = story.fetch

    def note(request: FetchRequest) -> FetchResponse | None:
        asked.append(request.topics[0].partitions[0].current_leader_epoch)
        return fetch(request)

    story.fetch = note  # type: ignore[method-assign]
    story.poll()
    assert asked[0] == 5


def test_a_fetch_session_requests_only_changed_partitions() -> None:
    story = Story(A, B)
    story.session_id = 7
    story.partitions = {0: data(batch(0))}
    story.poll()
    assert story.values() == [0, 1, 2]
    story.partitions = {}
    story.fetcher.send_fetches()
    story.client.poll(0)
    story.fetcher.send_fetches()
    story.client.poll(0)
    assert story.fetches == [{0: 0, 1: 0}, {0: 3}, {}]
    assert [(request.session_id, request.session_epoch) for _, request in story.sent] == [(0, 0), (7, 1), (7, 2)]


def test_a_paused_partition_leaves_the_session() -> None:
    story = Story(A, B)
    story.session_id = 7
    story.poll()
    story.subscriptions.state(B).is_paused = True
    story.poll(1)
    request = story.sent[-1][1]
    assert [(topic.topic, topic.partitions) for topic in request.forgotten_topics_data] == [("t", [1])]


def test_a_session_unknown_to_the_broker_is_started_again_at_once() -> None:
    story = Story(A)
    story.session_id = 7
    story.reach_a_fetch()
    story.refusal = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    story.reach_a_fetch()
    story.refusal = None
    before = story.clock.monotonic()
    story.partitions[0] = data(batch(0))
    story.poll(2)
    assert story.values() == [0, 1, 2]
    assert (story.sent[-1][1].session_id, story.sent[-1][1].session_epoch) == (0, 0)
    assert story.clock.monotonic() - before < 0.2


@pytest.mark.parametrize("replica", [2, 0], ids=lambda replica: f"broker {replica}")
def test_a_replica_the_leader_names_is_read_from_until_it_fails(replica: int) -> None:
    story = Story(A, client_rack="west")
    story.replica = replica
    story.partitions[0] = PartitionData(preferred_read_replica=replica, high_watermark=100)
    while not story.sent:
        story.poll(1)
    assert story.sent[-1][1].rack_id == "west"
    story.partitions[0] = data(batch(0))
    story.poll()
    assert story.values() == [0, 1, 2]
    story.partitions[0] = data(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    story.poll()
    assert story.values() == []
    story.partitions[0] = data(batch(3))
    story.poll()
    assert story.values() == [3, 4, 5]
    assert [node for node, _ in story.sent] == [1, replica, replica, 1]


def truncated(story: Story, end: int) -> None:
    """Read three records of epoch 0; then a leader is elected with an epoch 0 that ends at `end`."""
    story.partitions[0] = data(batch(0))
    story.poll()
    assert story.values() == [0, 1, 2]
    story.partitions = {}
    story.ends[0] = EpochEndOffset(0, 0, 0, end)
    story.new_leader()


def test_a_position_is_validated_with_a_new_leader() -> None:
    story = Story(A)
    truncated(story, end=3)
    story.partitions[0] = data(batch(3))
    story.poll(10)
    assert story.values() == [3, 4, 5]
    (asked,) = story.asked_of_epochs
    assert (asked.topics[0].partitions[0].leader_epoch, asked.topics[0].partitions[0].current_leader_epoch) == (0, 6)


def test_a_truncated_log_is_read_from_the_truncation_offset() -> None:
    story = Story(A)
    truncated(story, end=2)
    story.partitions[0] = data(batch(2))
    story.poll(10)
    assert story.values() == [2, 3, 4]


def test_a_truncated_log_is_an_error_without_a_policy() -> None:
    story = Story(A, reset=None)
    truncated(story, end=2)
    with pytest.raises(
        LogTruncationError, match="t-0: the log was truncated at offset 2, after it was read up to 3"
    ) as e:
        story.poll(10)
    assert (e.value.partition, e.value.position, e.value.divergent) == (A, 3, (2, "", 0))


NOT_KNOWN = EpochEndOffset(0, 0, -1, -1)
"""The leader has no records of that epoch or of an earlier one."""


def test_a_position_of_an_epoch_unknown_to_the_leader_is_reset_by_the_policy() -> None:
    story = Story(A)
    truncated(story, end=3)
    story.ends[0] = NOT_KNOWN
    story.poll(10)
    assert story.subscriptions.find_reset_timestamps(story.clock.monotonic()) == {A: EARLIEST}
    assert story.fetches == [{0: 0}], "nothing is read before that"


def test_a_position_of_an_epoch_unknown_to_the_leader_is_an_error_without_a_policy() -> None:
    story = Story(A, reset=None)
    truncated(story, end=3)
    story.ends[0] = NOT_KNOWN
    with pytest.raises(
        LogTruncationError, match="t-0: the log was truncated at an unknown earlier offset, after it was"
    ) as e:
        story.poll(10)
    assert e.value.divergent is None


def test_validation_is_retried_before_reading_when_the_leader_cannot_answer_yet() -> None:
    story = Story(A)
    truncated(story, end=3)
    story.ends[0] = EpochEndOffset(ErrorCode.UNKNOWN_LEADER_EPOCH, 0, -1, -1)
    read_before, version = len(story.fetches), story.metadata.version
    story.poll(10)
    assert len(story.asked_of_epochs) > 1
    assert (len(story.fetches), story.position()) == (read_before, 3)
    assert story.metadata.version > version
    story.ends[0] = EpochEndOffset(0, 0, 0, 3)
    story.partitions[0] = data(batch(3))
    story.poll(20)
    assert story.values() == [3, 4, 5]


class SeeksMeanwhile(Story):
    """The user seeks while the request to the leader is in flight."""

    def answer(self, header: RequestHeader, request: Any) -> Any:
        if isinstance(request, OffsetForLeaderEpochRequest):
            self.subscriptions.seek(A, 9)
        return super().answer(header, request)


@pytest.mark.parametrize("reset", [EARLIEST, None])
def test_a_validation_result_for_a_position_that_has_moved_is_ignored(reset: int | None) -> None:
    story = SeeksMeanwhile(A, reset=reset)
    truncated(story, end=2)
    story.partitions[0] = data(batch(9))
    story.poll(10)
    assert story.values() == [9, 10, 11]


def test_truncation_is_raised_while_a_fetch_of_other_partitions_is_in_flight() -> None:
    story = Story(A, B, reset=None)
    story.replica, story.silent = 1, True
    story.subscriptions.seek(B, 3, 0)
    story.ends[1] = EpochEndOffset(0, 1, 0, 1)
    with pytest.raises(LogTruncationError, match="t-1: the log was truncated at offset 1, after it was read up to 3"):
        story.poll(10)
    assert story.fetches == [{0: 0}]


def test_a_position_with_an_epoch_is_validated_before_it_is_read_from() -> None:
    story = Story(A)
    story.subscriptions.seek(A, 3, 0)
    story.ends[0] = EpochEndOffset(0, 0, 0, 1)
    story.partitions[0] = data(batch(1))
    story.poll(10)
    assert story.values() == [1, 2, 3]
    assert story.fetches == [{0: 1}]


@pytest.mark.parametrize("limit", [200, len(batch(0, size=100))])
def test_buffered_bytes_are_bounded_for_each_broker(limit: int) -> None:
    story = Story(A, B, fetch_max_bytes=limit)
    story.partitions = {0: data(batch(0, size=100)), 1: data(high_watermark=100)}
    story.poll()
    assert story.fetcher.buffered_bytes >= story.fetcher.memory_limit_bytes == limit
    story.poll(1)
    assert story.fetches == [{0: 0, 1: 0}]
    assert len(story.values()) == 3
    story.partitions = {}
    story.poll(1)
    assert story.fetcher.buffered_bytes == 0
    assert len(story.fetches) == 2


def test_a_fetch_requests_no_more_bytes_than_the_buffer_has_room_for() -> None:
    story = Story(A, B, fetch_max_bytes=1000)
    story.partitions = {0: data(batch(0)), 1: data(high_watermark=100)}
    story.poll()
    story.poll(1)
    assert [request.max_bytes for _, request in story.sent] == [1000, 1000 - len(batch(0))]


def test_buffered_records_of_a_paused_partition_are_kept() -> None:
    story = Story(A, B)
    story.partitions = {0: data(batch(0)), 1: data(batch(10))}
    story.poll()
    story.subscriptions.state(A).is_paused = True
    assert story.values() == [10, 11, 12]
    story.subscriptions.state(A).is_paused = False
    assert story.values() == [0, 1, 2]


def test_a_paused_partition_does_not_keep_its_memory_from_the_others() -> None:
    story = Story(A, B, fetch_max_bytes=200)
    story.partitions = {0: data(batch(0, size=100)), 1: data(high_watermark=100)}
    story.poll()
    story.subscriptions.state(A).is_paused = True
    story.partitions = {1: data(batch(0))}
    for _ in range(3):
        story.fetcher.send_fetches()
        story.client.poll(0.05)
    assert story.values() == [0, 1, 2]
    story.subscriptions.state(A).is_paused = False
    assert story.position() == 0
