from __future__ import annotations

from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.spare_buffers import KEPT_BYTES, SpareBuffers
from ottla.model import TopicPartition
from ottla.records.batch import parse_header, verify
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec

SIZE = 1 << 20


def batch_in(buffer: bytearray) -> ProducerBatch:
    """A closed batch of one record that was written into `buffer`."""
    batch = ProducerBatch(
        TopicPartition("flights", 0), 0.0, SIZE, (1, 0), builder=BatchBuilder(Codec.NONE, None, SIZE, buffer)
    )
    assert batch.try_append(1, None, b"x" * 100, ()) is not None
    batch.close()
    return batch


def test_memory_is_used_again() -> None:
    spare = SpareBuffers({SIZE})
    buffer = spare.take_buffer(SIZE)
    spare.return_buffer(buffer)
    assert spare.take_buffer(SIZE) is buffer
    assert spare.take_buffer(SIZE) is not buffer


def test_buffers_of_other_sizes_or_above_the_limit_are_not_kept() -> None:
    spare = SpareBuffers({SIZE})
    spare.return_buffer(bytearray(SIZE - 1))
    assert len(spare.take_buffer(SIZE)) == SIZE
    given = [bytearray(SIZE) for _ in range(10)]
    for buffer in given:
        spare.return_buffer(buffer)
    taken = [spare.take_buffer(SIZE) for _ in range(10)]
    assert sum(any(buffer is one for one in given) for buffer in taken) == KEPT_BYTES // SIZE


def test_a_batch_is_written_where_it_is_sent_from_and_leaves_its_memory_when_it_has_arrived() -> None:
    buffer = bytearray(b"\xff" * SIZE)
    batch = batch_in(buffer)
    verify(batch.payload, 0, parse_header(batch.payload))
    assert isinstance(batch.payload, memoryview)
    assert batch.payload.obj is buffer
    batch.result.complete(base_offset=7)
    assert batch.release() is buffer


def test_cve_2026_35554_memory_that_a_socket_may_still_have_is_left_alone() -> None:
    failed, unanswered, sent_twice = (batch_in(bytearray(SIZE)) for _ in range(3))
    failed.result.complete(error=ValueError("no"))
    unanswered.result.complete()  # acks=0: the broker does not respond
    sent_twice.attempts = 1
    sent_twice.result.complete(base_offset=7)
    assert [batch.release() for batch in (failed, unanswered, sent_twice)] == [None, None, None]


def test_a_batch_that_is_sent_again_under_other_numbers_gets_memory_of_its_own() -> None:
    buffer = bytearray(SIZE)
    batch = batch_in(buffer)
    before = bytes(batch.payload)
    batch.attempts = 1
    batch.assign_sequence(batch.producer, 5, False)
    batch.close()
    assert bytes(buffer[: len(before)]) == before
    assert parse_header(batch.payload).base_sequence == 5
