"""The acquired records of a response: rows of acquired ranges, their delivery counts, gaps, and records that cannot be read."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from ottla.client.consumer.records import ConsumerRecords
from ottla.client.share.state.acknowledgements import GAP, AcknowledgeType
from ottla.client.share.state.acquired_records import DeliveredPortion
from ottla.errors import CorruptRecordError, RecordDeserializationError
from tests.client.share.records import batch, completed

RELEASE, REJECT = int(AcknowledgeType.RELEASE), int(AcknowledgeType.REJECT)


def rows(portion: DeliveredPortion) -> list[tuple[int, int]]:
    """Return offset and delivery count of each record."""
    return [(record.offset, record.delivery_count) for part in portion.slices for record in part]


def test_only_acquired_rows_are_returned_with_their_delivery_counts() -> None:
    fetch = completed(batch(0), batch(3), acquired=[(1, 2, 1), (4, 4, 3)])

    portion = fetch.fetch_records(500)

    assert rows(portion) == [(1, 1), (2, 1), (4, 3)]
    assert portion.automatic == {}
    assert fetch.is_exhausted


def test_adjacent_ranges_with_other_counts_are_one_slice() -> None:
    portion = completed(batch(0), acquired=[(0, 0, 2), (1, 2, 1)]).fetch_records(500)

    assert rows(portion) == [(0, 2), (1, 1), (2, 1)]
    assert len(portion.slices) == 1


def test_acquired_offsets_without_a_record_are_gaps() -> None:
    portion = completed(batch(0), batch(5), acquired=[(2, 6, 1)]).fetch_records(500)

    assert rows(portion) == [(2, 1), (5, 1), (6, 1)]
    assert portion.automatic == {3: GAP, 4: GAP}


def test_a_range_without_any_record_is_only_gaps() -> None:
    fetch = completed(b"", acquired=[(7, 8, 1)])

    portion = fetch.fetch_records(500)

    assert (portion.slices, portion.automatic) == ([], {7: GAP, 8: GAP})
    assert fetch.is_exhausted


def test_the_limit_leaves_the_rest_for_the_next_call() -> None:
    fetch = completed(batch(0, 5), acquired=[(0, 1, 1), (3, 4, 1)])

    assert rows(fetch.fetch_records(3)) == [(0, 1), (1, 1), (3, 1)]
    assert not fetch.is_exhausted
    assert rows(fetch.fetch_records(3)) == [(4, 1)]
    assert fetch.is_exhausted


def failing(offset: int) -> Any:
    def deserialize(value: bytes) -> int:
        if int(value) == offset:
            raise ValueError("not good")
        return int(value)

    return deserialize


def test_a_record_that_cannot_be_deserialized_follows_those_before_it_and_is_released() -> None:
    fetch = completed(batch(0), acquired=[(0, 2, 1)], deserializers=(None, failing(1)))

    first, second, third = (fetch.fetch_records(500) for _ in range(3))

    assert (rows(first), first.error) == ([(0, 1)], None)
    assert isinstance(second.error, RecordDeserializationError)
    assert (second.error.offset, second.error.origin) == (1, "value")
    assert "acknowledge('t', 0, 1, AcknowledgeType.REJECT)" in str(second.error)
    assert (second.slices, second.automatic, second.failed) == ([], {1: RELEASE}, (1,))
    assert rows(third) == [(2, 1)]
    assert fetch.is_exhausted


def test_a_damaged_batch_is_rejected_and_what_follows_it_is_released() -> None:
    damaged = bytearray(batch(3))
    damaged[-1] ^= 1
    fetch = completed(batch(0), bytes(damaged), batch(6), acquired=[(0, 8, 1)])

    first, second = fetch.fetch_records(500), fetch.fetch_records(500)

    assert rows(first) == [(0, 1), (1, 1), (2, 1)]
    assert first.error is None
    assert isinstance(second.error, CorruptRecordError)
    assert "t-0, offsets 3 to 5" in str(second.error)
    assert second.failed == (3, 4, 5)
    decided = first.automatic | second.automatic
    assert decided == {3: REJECT, 4: REJECT, 5: REJECT, 6: RELEASE, 7: RELEASE, 8: RELEASE}
    assert fetch.is_exhausted


def test_damage_outside_of_the_acquired_ranges_is_no_error() -> None:
    damaged = bytearray(batch(3))
    damaged[-1] ^= 1
    fetch = completed(batch(0), bytes(damaged), acquired=[(0, 2, 1)])

    portion = fetch.fetch_records(500)

    assert rows(portion) == [(0, 1), (1, 1), (2, 1)]
    assert fetch.is_exhausted


@pytest.mark.parametrize("deserializers", [(None, None), (None, int)])
def test_records_keep_their_delivery_count_in_a_pickle(deserializers: Any) -> None:
    portion = completed(batch(0), acquired=[(0, 2, 4)], deserializers=deserializers).fetch_records(2)
    records: ConsumerRecords[Any, Any] = ConsumerRecords(portion.slices)

    read = pickle.loads(pickle.dumps(records))
    one = pickle.loads(pickle.dumps(next(iter(records))))

    assert [(record.value, record.delivery_count) for record in read] == [(record.value, 4) for record in records]
    assert (one.offset, one.delivery_count) == (0, 4)
