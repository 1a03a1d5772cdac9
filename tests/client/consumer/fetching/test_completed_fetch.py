"""The fetched data of one partition, returned in portions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.client.consumer.fetching.completed_fetch import CompletedFetch
from ottla.errors import CorruptRecordError
from ottla.model import TopicPartition
from ottla.records.batch import stamp
from ottla.records.builder import BatchBuilder
from ottla.records.columns import Columns

A = TopicPartition("t", 0)


def batch(base_offset: int, count: int, epoch: int, *, producer_id: int = -1) -> bytes:
    builder = BatchBuilder()
    for n in range(count):
        builder.append(1000, None, b"%d" % (base_offset + n))
    data = bytearray(builder.build(producer_id, transactional=producer_id >= 0))
    stamp(data, 0, base_offset, epoch)
    return bytes(data)


def fetched(*batches: bytes, offset: int = 10, high_watermark: int = -1) -> CompletedFetch:
    records = memoryview(b"".join(batches))
    answer = SimpleNamespace(records=records, high_watermark=high_watermark, aborted_transactions=None)
    return CompletedFetch(A, offset, answer, -1)


def taken(fetch: CompletedFetch, most: int) -> list[int]:
    portion = fetch.fetch_records(most, fetch.fetch_offset, None, True, (None, None))
    return [record.offset for record in portion]


def test_each_portion_has_the_next_offset_and_the_epoch_of_its_last_record() -> None:
    fetch = fetched(batch(10, 2, 3), batch(15, 2, 4), batch(20, 1, 6))
    seen = []
    while not fetch.is_exhausted():
        seen.append((taken(fetch, 1), *fetch.position_after_taken(), fetch.remaining_count()))
    assert seen == [([10], 11, 3, 4), ([11], 12, 3, 3), ([15], 16, 4, 2), ([16], 17, 4, 1), ([20], 21, 6, 0)]


def test_portions_stay_within_the_requested_size_and_the_last_one_ends_with_the_batches() -> None:
    fetch = fetched(batch(10, 2, 3), batch(15, 3, 4))
    assert taken(fetch, 3) == [10, 11, 15]
    assert fetch.position_after_taken() == (16, 4)
    assert taken(fetch, 100) == [16, 17]
    assert (fetch.position_after_taken(), fetch.is_exhausted()) == ((18, 4), True)
    assert taken(fetch, 100) == []


def test_headers_give_the_size_and_the_end_offset_before_decoding() -> None:
    fetch = fetched(batch(10, 2, 3), batch(15, 3, 4))
    assert (fetch.remaining_count(), fetch.next_offset(10), fetch.last_epoch(), fetch.is_exhausted()) == (
        5,
        18,
        4,
        False,
    )
    assert fetch.next_offset(40) == 40


def damaged(data: bytes) -> bytes:
    """Its CRC does not fit."""
    return data[:-1] + bytes([data[-1] ^ 1])


def decoded(fetch: CompletedFetch, offset: int, end: int | None = None) -> list[bytes | None]:
    pieces = fetch.decode_all(offset, end, check_crcs=True, with_headers=True)
    return [value for columns in pieces for value in values(columns)]


def values(columns: Columns) -> list[bytes | None]:
    return [columns.value(row) for row in range(columns.count)]


def test_records_before_damage_come_first_and_the_error_has_the_next_readable_offset() -> None:
    fetch = fetched(batch(10, 2, 3), damaged(batch(12, 3, 3)), batch(15, 1, 3))
    columns = fetch.decode(10, None, check_crcs=True, with_headers=True)
    assert values(columns) == [b"10", b"11"]
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 12: .*; seek to offset 15 to skip it"):
        fetch.decode(12, None, check_crcs=True, with_headers=True)
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 13: .*; seek to offset 15 to skip it"):
        fetch.decode(13, None, check_crcs=True, with_headers=True)
    assert values(fetch.decode(15, None, check_crcs=True, with_headers=True)) == [b"15"]


def test_damage_at_the_beginning_is_raised_at_once() -> None:
    fetch = fetched(damaged(batch(10, 2, 3)), batch(12, 1, 3))
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 10: .*; seek to offset 12"):
        fetch.decode(10, None, check_crcs=True, with_headers=True)


def test_a_batch_with_a_damaged_high_offset_is_skipped_after_a_seek_behind_it() -> None:
    fetch = fetched(batch(1000, 2, 3), batch(12, 1, 3), batch(13, 1, 3))
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 10: .*; seek to offset 12 to skip it"):
        fetch.decode(10, None, check_crcs=True, with_headers=True)
    assert decoded(fetch, 12) == [b"12", b"13"]


def test_records_from_offset_0_are_found_behind_a_batch_with_a_damaged_high_offset() -> None:
    assert decoded(fetched(batch(1000, 2, 3), batch(0, 1, 3), batch(1, 1, 3), offset=0), 0) == [b"0", b"1"]


def test_a_seek_behind_damage_at_the_end_reports_that_no_record_reaches_the_offset() -> None:
    with pytest.raises(
        CorruptRecordError, match="bytes fetched at offset 12 contain no complete batch with that offset"
    ):
        decoded(fetched(damaged(batch(10, 2, 3))), 12)


def test_no_batch_is_decoded_for_an_empty_range() -> None:
    assert decoded(fetched(damaged(batch(10, 2, 3))), 10, end=10) == []


def test_a_requested_range_may_end_within_a_batch() -> None:
    assert decoded(fetched(batch(10, 5, 3)), 10, end=12) == [b"10", b"11"]


def test_in_a_log_that_was_empty_a_batch_far_ahead_is_damage() -> None:
    assert decoded(fetched(batch(1000, 1, 3), offset=0), 0) == [b"1000"], "nobody says where it ends"
    with pytest.raises(CorruptRecordError, match="t-0, offset 0: "):
        decoded(fetched(batch(1000, 1, 3), offset=0, high_watermark=0), 0)


def test_aborted_records_are_left_out() -> None:
    fetch = fetched(batch(10, 1, 3, producer_id=7), batch(11, 1, 3, producer_id=8))
    fetch.response.aborted_transactions = [SimpleNamespace(producer_id=7, first_offset=10)]
    assert decoded(fetch, 10) == [b"11"]


def test_records_bear_their_headers() -> None:
    builder = BatchBuilder()
    builder.append(1000, None, b"v", [("h", b"1")])
    [record] = fetched(builder.build(), offset=0).fetch_records(1, 0, None, True, (None, None))
    assert list(record.headers) == [("h", b"1")]


def test_an_empty_answer_has_nothing_to_decode() -> None:
    assert decoded(fetched(), 10) == []


def test_a_storage_error_of_the_broker_has_the_next_readable_offset_if_the_broker_sent_it() -> None:
    fetch = fetched()
    for start, text in ((10, "see the broker's log messages for the repair"), (11, "seek to offset 11 to skip it")):
        fetch.response.log_start_offset = start
        assert text in fetch.corrupt_log_text()
