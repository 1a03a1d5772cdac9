"""The states of a batch: open, numbered, closed, split and released."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.producer.producer_batch import ProducerBatch, upper_bound_bytes
from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.errors import KafkaTimeoutError
from ottla.model import RecordMetadata, TopicPartition
from ottla.records.batch import parse_header
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec

A = TopicPartition("t", 0)
SMALL = st.binary(max_size=300)


def builder(most: int) -> BatchBuilder:
    return BatchBuilder(Codec.NONE, None, most)


def filled(count: int = 5) -> ProducerBatch:
    """Open, with so many records."""
    batch = ProducerBatch(A, 0.0, 1000, (3, 0), builder=builder(10_000))
    for index in range(count):
        assert batch.try_append(1000 + index, None, b"v", ()) is not None
    return batch


def packed(count: int = 5) -> bytearray:
    """A whole batch that was not numbered yet."""
    one = builder(10_000)
    for index in range(count):
        one.append(index, None, b"v")
    return bytearray(one.build())


def ready_made(payload: bytes | bytearray | memoryview) -> ProducerBatch:
    """A batch of a table, encoded from the start."""
    return ProducerBatch(A, 0.0, 1000, (3, 0), payload=payload, count=5)


@pytest.mark.behaviour("P1")
def test_a_callback_appended_with_a_record_gets_its_metadata() -> None:
    batch = filled(1)
    reported: list[tuple[object, object]] = []
    batch.try_append(1001, b"key", b"value", (), lambda metadata, error: reported.append((metadata, error)))
    batch.result.complete(base_offset=70)
    assert reported == [(RecordMetadata("t", 0, 71, 1001, 3, 5), None)]


def test_bytes_already_sent_do_not_change_when_sequences_restart() -> None:
    batch = ready_made(packed())
    batch.assign_sequence(ProducerIdAndEpoch(7, 0), 40, False)
    batch.close()
    sent = batch.payload
    before = bytes(sent)
    batch.attempts = 1
    batch.assign_sequence(ProducerIdAndEpoch(7, 1), 0, False)
    batch.close()
    assert bytes(sent) == before
    assert (parse_header(batch.payload).producer_epoch, parse_header(batch.payload).base_sequence) == (1, 0)


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_an_encoded_batch_gets_its_sequences_once_and_stays_unchanged_without_any(
    kind: type[bytes | bytearray],
) -> None:
    batch = ready_made(kind(packed()))
    ready = batch.payload
    batch.close()
    assert batch.payload is ready
    batch.assign_sequence(ProducerIdAndEpoch(7, 2), 40, True)
    batch.attempts = 1
    batch.close()
    numbered = batch.payload
    batch.close()
    assert batch.payload is numbered
    header = parse_header(numbered)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (
        7,
        2,
        40,
        True,
    )


def test_a_batch_encoded_as_bytes_can_be_numbered_before_it_is_sent() -> None:
    batch = ready_made(bytes(packed()))
    batch.assign_sequence(ProducerIdAndEpoch(7, 2), 40, False)
    batch.close()
    assert parse_header(batch.payload).base_sequence == 40


def test_a_batch_without_sequences_has_no_producer_id_and_no_transaction() -> None:
    batch = filled()
    assert not batch.sequence_reset
    batch.close()
    header = parse_header(batch.payload)
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (-1, -1, False)


def test_a_batch_is_full_once_a_record_did_not_fit() -> None:
    batch = ProducerBatch(A, 0.0, 1000, (3, 0), builder=builder(200))
    assert batch.try_append(0, None, bytes(100), ()) is not None
    assert not batch.full
    assert batch.try_append(0, None, bytes(100), ()) is None
    assert (batch.full, batch.count) == (True, 1)


@pytest.mark.parametrize(
    ("attempts", "base_offset", "comes_back"), [(0, 0, True), (0, 9, True), (1, 9, False), (0, -1, False)]
)
def test_memory_is_released_only_after_a_response_proves_that_it_was_read(
    attempts: int, base_offset: int, comes_back: bool
) -> None:
    memory = packed()
    batch = ready_made(memoryview(memory))
    batch.attempts = attempts
    batch.result.complete(base_offset, error=None if base_offset >= 0 else KafkaTimeoutError("late"))
    assert batch.release() is (memory if comes_back else None)
    assert (batch.reserved_bytes, batch.payload) == (0, b"")


def test_the_parts_of_a_batch_have_their_place_in_it_and_its_numbers() -> None:
    batch = filled(5)
    batch.assign_sequence(ProducerIdAndEpoch(7, 2), 100, True)
    batch.close()
    batch.attempts = 1
    first, second = batch.split(builder)
    assert [(part.order, part.base_sequence, part.count) for part in (first, second)] == [
        ((3, 0), 100, 2),
        ((3, 2), 102, 3),
    ]
    assert (first.producer, first.transactional, first.attempts) == ((7, 2), True, 1)
    assert [parse_header(part.payload).base_sequence for part in (first, second)] == [100, 102]
    assert (first.reserved_bytes, second.reserved_bytes, batch.reserved_bytes) == (1000, 0, 0)


@given(
    key=st.none() | SMALL, value=st.none() | SMALL, headers=st.lists(st.tuples(st.text(max_size=90), st.none() | SMALL))
)
def test_no_record_exceeds_its_size_bound(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    one = builder(1_000_000)
    one.append(2**50, key, value, headers)
    assert len(one.build()) <= upper_bound_bytes(key, value, tuple(headers))
