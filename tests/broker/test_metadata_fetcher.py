"""The metadata fetcher of a broker: the choice of the controller, and the use of the responses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import pytest

from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.metadata_fetcher import AGAIN_SECONDS, MetadataFetcher
from ottla.broker.metadata.observed_metadata import Prepared
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.peer_errors import PeerLost, PeerRefused
from ottla.clock import ManualClock
from ottla.coordination.quorum.observer import RETRY_MS, Append, Observer, Outcome, ReplicaEnd, WriteChunk
from ottla.errors import ErrorCode, KafkaError, OttlaError
from ottla.protocol.messages import fetch
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from tests.broker.test_controller_channel import FakeConnection
from tests.coordination.quorum.test_observer import FIRST, LEADER, LEADS, SECOND, answer, piece

VERSIONS = ApiVersionsResponse(api_keys=[ApiVersion(FetchRequest.KEY, 0, 18)])


class Story:
    """A fetcher, turned by hand; it is its own copy of the log."""

    def __init__(self) -> None:
        self.clock, self.timers, self.connection = ManualClock(), Timers(), FakeConnection()
        self.kept: list[Prepared] = []
        self.work: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
        self.failures: list[OttlaError] = []
        self.elected = 0
        self.keeping: Exception | None = None
        observer = Observer([FIRST, SECOND], 7, "cluster", UUID(int=50))
        way, around = cast(PeerConnection, self.connection), (self.timers, self.clock, self.failures.append, self.elect)
        self.fetcher = MetadataFetcher(observer, self, way, lambda *work: self.work.append(work), *around)
        self.fetcher.start()

    def fetched_end(self) -> ReplicaEnd:
        return ReplicaEnd(sum(isinstance(each, Append) for each in self.kept), 5)

    def prepare(self, outcome: Outcome) -> Prepared:
        return outcome

    def keep(self, outcome: Prepared) -> None:
        if self.keeping is not None:
            error, self.keeping = self.keeping, None
            raise error
        self.kept.append(outcome)

    def elect(self) -> None:
        self.elected += 1

    def wait(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())

    def answer(self, said: Any) -> None:
        self.connection.questions.pop(0).done(said)
        self.wait()

    @property
    def asked(self) -> list[tuple[Any, type]]:
        return [(each.address, type(each.request)) for each in self.connection.questions]


@pytest.fixture
def story() -> Story:
    return Story()


def test_each_controller_gets_a_version_request_and_then_fetches(story: Story) -> None:
    assert story.asked == [(FIRST, ApiVersionsRequest)]
    story.answer(VERSIONS)
    story.answer(answer(high_watermark=1, current_leader=LEADS))
    assert (len(story.kept), story.elected, story.fetcher.leader) == (1, 1, LEADER)
    assert story.asked == [(LEADER, ApiVersionsRequest)]
    story.answer(VERSIONS)
    (question,) = story.connection.questions
    request = question.request
    assert isinstance(request, FetchRequest)
    assert request.topics[0].partitions[0].fetch_offset == 1


def test_without_a_response_the_next_controller_is_used_after_a_pause(story: Story) -> None:
    story.answer(PeerLost("gone"))
    assert not story.asked
    story.wait(RETRY_MS / 1000)
    assert story.asked == [(SECOND, ApiVersionsRequest)]


def test_a_broker_that_every_controller_rejects_at_first_stops(story: Story) -> None:
    for _ in range(2):
        story.answer(PeerRefused("wrong password"))
        story.wait(RETRY_MS / 1000)
    (failure,) = story.failures
    assert "the controller at b:2 does not let this broker in: wrong password" in str(failure)
    assert not story.asked


def test_a_broker_that_was_accepted_once_retries_after_rejections(story: Story) -> None:
    story.answer(VERSIONS)
    story.answer(answer(high_watermark=0))
    for _ in range(4):
        story.answer(PeerRefused("wrong password"))
        story.wait(RETRY_MS / 1000)
    assert not story.failures
    assert story.asked


def test_the_controllers_of_another_cluster_are_named_with_their_cluster(story: Story) -> None:
    for _ in range(2):
        story.answer(VERSIONS)
        story.answer(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        assert [kind for _, kind in story.asked] == [DescribeClusterRequest]
        story.answer(DescribeClusterResponse(cluster_id="theirs"))
        story.wait(RETRY_MS / 1000)
    (failure,) = story.failures
    assert "the cluster of the controller at b:2 is theirs" in str(failure)


def test_chunks_of_a_snapshot_are_written_by_a_disk_thread(story: Story) -> None:
    story.answer(VERSIONS)
    story.answer(answer(snapshot_id=fetch.SnapshotId(40, 3)))
    assert [kind for _, kind in story.asked] == [FetchSnapshotRequest]
    story.answer(piece(0, b"0123456789"))
    assert not story.asked, "the next request states where the log ends after the snapshot"
    work, done = story.work.pop()
    work()
    done(None)
    story.wait()
    assert isinstance(story.kept[0], WriteChunk)
    assert [kind for _, kind in story.asked] == [FetchRequest]


def test_a_chunk_that_cannot_be_written_stops_the_broker(story: Story) -> None:
    story.answer(VERSIONS)
    story.answer(answer(snapshot_id=fetch.SnapshotId(40, 3)))
    story.answer(piece(0, b"0123456789"))
    _, done = story.work.pop()
    done(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
    (failure,) = story.failures
    assert "the broker stops, since it cannot keep the cluster's metadata" in str(failure)


def test_metadata_that_cannot_be_applied_are_logged_and_fetching_continues(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    story.answer(VERSIONS)
    story.keeping = IndexError("nothing foresaw this")
    with caplog.at_level(logging.ERROR):
        story.answer(answer(high_watermark=1))
    assert "nothing foresaw this" in caplog.text
    assert not story.asked
    story.wait(AGAIN_SECONDS)
    assert story.asked == [(FIRST, FetchRequest)]


def test_nothing_is_fetched_after_close(story: Story) -> None:
    story.answer(VERSIONS)
    (question,) = story.connection.questions
    story.fetcher.close()
    question.done(answer(high_watermark=1))
    assert not story.kept
