"""The numbers of one partition: which is next, and how far they were acknowledged, also where they begin again at 0."""

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
    """That has given out the numbers before this one."""
    entry = TxnPartitionEntry()
    entry.start(ProducerIdAndEpoch(7, 0))
    entry.next_sequence = next_sequence
    return entry


def numbered(entry: TxnPartitionEntry, records: int = 1) -> ProducerBatch:
    batch = ProducerBatch(TopicPartition("t", 0), 0.0, 0, (next(SERIAL), 0), payload=b"", count=records)
    entry.number(batch, False)
    return batch


def test_the_first_number_is_next_while_nothing_is_acknowledged() -> None:
    fresh = TxnPartitionEntry()
    assert fresh.is_next(0)
    assert not fresh.is_next(1)


@pytest.mark.parametrize("first", [0, HALF, MAX_SEQUENCE])
def test_what_follows_the_last_acknowledged_is_next(first: int) -> None:
    numbers = entry(first)
    numbers.acked(numbered(numbers), 10)
    assert numbers.last_acked_sequence == first
    assert numbers.is_next(numbers.next_sequence)
    assert numbers.next_sequence == (0 if first == MAX_SEQUENCE else first + 1)


def test_an_earlier_one_that_is_acknowledged_later_takes_nothing_back() -> None:
    numbers = entry()
    first, second = numbered(numbers, 3), numbered(numbers, 2)
    numbers.acked(second, 4)
    numbers.acked(first, 2)
    assert (numbers.last_acked_sequence, numbers.last_acked_offset) == (4, 4)


@pytest.mark.parametrize(("ahead", "counts"), [(HALF, True), (HALF + 1, False)])
def test_half_of_all_numbers_ahead_is_later_and_more_is_earlier(ahead: int, counts: bool) -> None:
    numbers = entry()
    numbers.acked(numbered(numbers), 0)
    numbers.next_sequence = ahead
    numbers.acked(numbered(numbers), 1)
    assert numbers.last_acked_sequence == (ahead if counts else 0)


def test_parts_of_a_batch_are_where_it_was() -> None:
    numbers = entry()
    whole, behind = numbered(numbers, 2), numbered(numbers)
    parts = [numbered(entry()), numbered(entry())]
    numbers.split(whole, parts)
    assert numbers.in_flight == [*parts, behind]
