"""The sequences of one partition: the next and the last acknowledged one, also when they wrap to 0."""

from __future__ import annotations

from itertools import count

import pytest

from ottla.client.producer.producer_batch import MAX_SEQUENCE, ProducerBatch
from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.client.producer.txn_partition_entry import TxnPartitionEntry
from ottla.model import TopicPartition

HALF = MAX_SEQUENCE // 2
SERIAL = count()


def entry(next_sequence: int = 0) -> TxnPartitionEntry:
    """Return an entry that has assigned the sequences before this one."""
    entry = TxnPartitionEntry()
    entry.start_sequence(ProducerIdAndEpoch(7, 0))
    entry.next_sequence = next_sequence
    return entry


def numbered(entry: TxnPartitionEntry, records: int = 1) -> ProducerBatch:
    batch = ProducerBatch(TopicPartition("t", 0), 0.0, 0, (next(SERIAL), 0), payload=b"", count=records)
    entry.assign_sequence(batch, False)
    return batch


def test_the_first_number_is_next_while_nothing_is_acknowledged() -> None:
    fresh = TxnPartitionEntry()
    assert fresh.is_next(0)
    assert not fresh.is_next(1)


@pytest.mark.parametrize("first", [0, HALF, MAX_SEQUENCE])
def test_the_sequence_after_the_last_acknowledged_one_is_next(first: int) -> None:
    numbers = entry(first)
    numbers.record_ack(numbered(numbers), 10)
    assert numbers.last_acked_sequence == first
    assert numbers.is_next(numbers.next_sequence)
    assert numbers.next_sequence == (0 if first == MAX_SEQUENCE else first + 1)


def test_a_late_acknowledgement_of_an_earlier_batch_does_not_move_back() -> None:
    numbers = entry()
    first, second = numbered(numbers, 3), numbered(numbers, 2)
    numbers.record_ack(second, 4)
    numbers.record_ack(first, 2)
    assert (numbers.last_acked_sequence, numbers.last_acked_offset) == (4, 4)


@pytest.mark.parametrize(("ahead", "counts"), [(HALF, True), (HALF + 1, False)])
def test_half_of_all_numbers_ahead_is_later_and_more_is_earlier(ahead: int, counts: bool) -> None:
    numbers = entry()
    numbers.record_ack(numbered(numbers), 0)
    numbers.next_sequence = ahead
    numbers.record_ack(numbered(numbers), 1)
    assert numbers.last_acked_sequence == (ahead if counts else 0)


def test_the_parts_of_a_split_batch_replace_it() -> None:
    numbers = entry()
    whole, behind = numbered(numbers, 2), numbered(numbers)
    parts = [numbered(entry()), numbered(entry())]
    numbers.split(whole, parts)
    assert numbers.in_flight == [*parts, behind]
