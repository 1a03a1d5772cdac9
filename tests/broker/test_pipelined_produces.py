"""Batches of idempotent producers that are in flight together, the first of which is refused for a while."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from ottla.broker.metadata.topics import new_topic_id
from ottla.broker.replica_manager.partition import Partition
from ottla.errors import ErrorCode
from ottla.protocol.conversation import decode_response
from ottla.protocol.messages.produce import ProduceResponse
from tests.broker.serving import create_topic
from tests.broker.test_fast_produce import FORMS, NOW, Standing, frame_of
from tests.storage.producing import produced

PRODUCER = 77
BY_NAME, BY_ID = 12, 13
WAYS = ("handler", *FORMS)
"""The ways to append the batches after the rejected one: the handler, or either form of the fast path."""


class Story:
    """A broker that does not run, and one producer."""

    def __init__(self) -> None:
        self.ids: dict[str, uuid.UUID] = {}
        self.broker = Standing(self.ids)

    def send(self, way: str, sequence: int, count: int = 1, topic: str = "t", version: int = BY_NAME) -> int:
        """Return the error code for a batch that is sent in one of the ways."""
        records = produced(PRODUCER, sequence, count, timestamp=NOW)
        frame = frame_of(version, {topic: [(0, records)]}, self.ids)
        answer = self.broker.by_handler(frame) if way == "handler" else self.broker.shortly(way, frame)
        assert answer is not None, "it is not sent the short way"
        _, response = decode_response(ProduceResponse, version, memoryview(answer))
        code: int = response.responses[0].partition_responses[0].error_code
        return code

    def partition(self, topic: str = "t") -> Partition:
        found = self.broker.node.partitions.find(topic, 0)
        assert found is not None
        return found

    def go_on(self, way: str, topic: str = "t") -> None:
        """Send two batches after the rejected one, then all three in order, and return the log."""
        before = self.partition(topic).log.end_offset
        held_back = [self.send(way, sequence, topic=topic) for sequence in (2, 3)]
        assert held_back == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
        assert self.partition(topic).log.end_offset == before
        assert [self.send(way, *batch, topic=topic) for batch in ((0, 1), (1, 1), (2, 1), (3, 1))] == [0, 0, 0, 0]
        assert self.partition(topic).log.end_offset == before + 4


@pytest.fixture
def story() -> Iterator[Story]:
    story = Story()
    yield story
    story.broker.server.stop()
    story.broker.server.run()


@pytest.mark.parametrize("way", WAYS)
def test_batches_wait_for_one_rejected_for_too_few_replicas(story: Story, way: str) -> None:
    story.partition().min_insync_replicas = 2
    assert story.send("handler", 0, 2) == ErrorCode.NOT_ENOUGH_REPLICAS
    story.partition().min_insync_replicas = 1
    story.go_on(way)


@pytest.mark.parametrize("way", WAYS)
def test_batches_wait_for_one_rejected_before_this_broker_was_leader(story: Story, way: str) -> None:
    story.partition().leads = False
    assert story.send("handler", 0, 2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    story.partition().leads = True
    story.go_on(way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_batches_wait_for_one_rejected_before_this_broker_knew_the_topic(
    story: Story, way: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.ids["late"] = new_topic_id()
    assert story.send("handler", 0, 2, "late", version) in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
    monkeypatch.setattr(uuid, "uuid4", lambda: story.ids["late"])
    create_topic(story.broker.server, "late")
    assert story.partition("late").topic_id == story.ids["late"]
    assert story.partition("late").log.end_offset == 0
    story.go_on(way, "late")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("refused_by", WAYS)
def test_batches_wait_for_one_that_was_too_large_and_is_split(story: Story, refused_by: str, way: str) -> None:
    assert story.send(refused_by, 0, 30, "small") == ErrorCode.MESSAGE_TOO_LARGE
    story.go_on(way, "small")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("refused_by", WAYS)
def test_batches_wait_for_one_that_failed_with_a_disk_error(
    story: Story, refused_by: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = story.partition().log
    folder = log.directory
    away = folder.with_name("away")
    folder.rename(away)
    log.seen_ms = NOW - 3_600_000
    assert story.send(refused_by, 0, 2) == ErrorCode.KAFKA_STORAGE_ERROR
    away.rename(folder)
    story.go_on(way)


@pytest.mark.parametrize("way", WAYS)
def test_the_first_batch_of_a_producer_may_have_any_sequence_if_none_was_rejected(story: Story, way: str) -> None:
    """Its older batches may have been deleted."""
    assert story.send(way, 500) == 0


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_remembered_about_a_producer_whose_rejected_batch_was_appended(story: Story, way: str) -> None:
    story.partition().min_insync_replicas = 2
    assert story.send("handler", 0) == ErrorCode.NOT_ENOUGH_REPLICAS
    story.partition().min_insync_replicas = 1
    assert [story.send(way, sequence) for sequence in (0, 1)] == [0, 0]
    assert not story.broker.node.refused_sequences
