"""Refused batches of producers that a log does not know: those after them wait until they were appended."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from ottla.broker.replica_manager import refused_sequences
from ottla.broker.replica_manager.refused_sequences import CAPACITY, KEPT_SECONDS, RejectedSequences
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.records.batch import parse_header
from ottla.storage.producers.producer_entry import MAX_SEQUENCE, ProducerEntry
from tests.storage.producing import produced

PLACE = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=7)
PRODUCER = 77


class Story:
    """The rejected sequences, and a manual clock."""

    def __init__(self) -> None:
        self.refused = RejectedSequences()
        self.entries: dict[int, ProducerEntry] = {}
        self.now = 0.0

    def refuse(
        self, sequence: int, code: int = ErrorCode.NOT_ENOUGH_REPLICAS, *, epoch: int = 0, count: int = 1
    ) -> None:
        batch = produced(PRODUCER, sequence, count, epoch=epoch)
        self.refused.record_refusal(PLACE.topic, PLACE.partition, batch, code, self.now)

    def code(self, sequence: int, *, epoch: int = 0, place: TopicPartition = PLACE, producer: int = PRODUCER) -> int:
        """Return the error code for a batch, 0 if it may be appended."""
        batch = produced(producer, sequence, epoch=epoch)
        try:
            self.refused.ensure_lowest(place, TOPIC_ID, batch, self.entries, self.now)
        except KafkaError as error:
            return error.code
        return 0


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ],
)
def test_a_batch_waits_for_a_rejected_one_before_it(code: ErrorCode) -> None:
    story = Story()
    story.refuse(0, code)
    assert story.code(78) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert story.code(0) == 0


def test_the_lowest_of_several_rejected_sequences_applies() -> None:
    story = Story()
    story.refuse(78)
    story.refuse(0)
    story.refuse(156)
    assert [story.code(each) for each in (156, 78, 0)] == [45, 45, 0]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_RECORD])
def test_a_batch_that_clients_do_not_retry_does_not_block_the_next(code: ErrorCode) -> None:
    story = Story()
    story.refuse(0, code)
    assert story.code(1) == 0
    assert not story.refused


@pytest.mark.parametrize(("count", "held_back"), [(1, False), (2, True)])
def test_a_rejected_large_batch_is_awaited_only_if_it_can_be_split(count: int, held_back: bool) -> None:
    story = Story()
    story.refuse(0, ErrorCode.MESSAGE_TOO_LARGE, count=count)
    assert (story.code(2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER) == held_back


def test_a_log_that_knows_the_producer_decides() -> None:
    story = Story()
    story.refuse(0)
    story.entries[PRODUCER] = ProducerEntry(PRODUCER, 0)
    assert story.code(78) == 0
    assert not story.refused, "nothing is remembered of it any more"


def test_other_partitions_and_producers_are_not_blocked() -> None:
    story = Story()
    story.refuse(0)
    assert story.code(78, place=TopicPartition("t", 1)) == 0
    assert story.code(78, place=TopicPartition("u", 0)) == 0
    assert story.code(78, producer=PRODUCER + 1) == 0


def test_a_batch_rejected_by_topic_id_is_remembered_when_the_name_is_known() -> None:
    story = Story()
    story.refused.record_refusal(TOPIC_ID, 0, produced(PRODUCER, 0), ErrorCode.UNKNOWN_TOPIC_ID, 0.0)
    assert story.code(78) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_newer_producer_epoch_resets_the_sequences() -> None:
    story = Story()
    story.refuse(0, epoch=3)
    assert story.code(500, epoch=4) == 0
    story.refuse(0, epoch=3)
    story.refuse(10, epoch=4)
    story.refuse(0, epoch=3)
    assert [story.code(each, epoch=4) for each in (11, 10)] == [45, 0]


def test_sequences_wrap_around_to_zero() -> None:
    story = Story()
    story.refuse(MAX_SEQUENCE - 1)
    story.refuse(3)
    assert [story.code(each) for each in (3, 0, MAX_SEQUENCE, MAX_SEQUENCE - 1)] == [45, 45, 45, 0]


def test_a_batch_that_is_not_repeated_blocks_nothing_after_some_minutes() -> None:
    story = Story()
    story.refuse(0)
    story.now = KEPT_SECONDS - 1
    story.refuse(78)
    assert story.code(78) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    story.refuse(0)
    story.now = KEPT_SECONDS + 1
    assert story.code(78) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "it came again meanwhile"
    story.now = 2 * KEPT_SECONDS
    assert story.code(78) == 0


@pytest.mark.parametrize(
    "change", [lambda batch: batch[:60], lambda _: None, lambda _: b"", lambda _: produced(-1, -1)]
)
def test_only_batches_with_sequences_are_remembered(change: Callable[[bytes], bytes | None]) -> None:
    story = Story()
    story.refused.record_refusal("t", 0, change(produced(PRODUCER, 0)), ErrorCode.CORRUPT_MESSAGE, 0.0)
    assert not story.refused


def test_the_number_of_remembered_batches_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_sequences, "CAPACITY", 3)
    assert CAPACITY > 3
    story = Story()
    header = parse_header(produced(PRODUCER, 0))
    for producer in range(10):
        story.refused.note_header(("t", 0, producer), header, 0.0)
    assert len(story.refused) == 3
    assert story.code(5, producer=0) == 0, "the oldest is forgotten"
    assert story.code(5, producer=9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
