"""A partition's share of an answer, handed out in portions."""

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


def test_after_each_portion_it_is_known_where_to_read_on_and_in_which_epoch_the_record_before_was_written() -> None:
    fetch = fetched(batch(10, 2, 3), batch(15, 2, 4), batch(20, 1, 6))
    seen = []
    while not fetch.exhausted():
        seen.append((taken(fetch, 1), *fetch.position_after(), fetch.left()))
    assert seen == [([10], 11, 3, 4), ([11], 12, 3, 3), ([15], 16, 4, 2), ([16], 17, 4, 1), ([20], 21, 6, 0)]


def test_portions_are_no_larger_than_asked_for_and_the_last_one_ends_where_the_batches_do() -> None:
    fetch = fetched(batch(10, 2, 3), batch(15, 3, 4))
    assert taken(fetch, 3) == [10, 11, 15]
    assert fetch.position_after() == (16, 4)
    assert taken(fetch, 100) == [16, 17]
    assert (fetch.position_after(), fetch.exhausted()) == ((18, 4), True)
    assert taken(fetch, 100) == []


def test_before_anything_is_decoded_the_headers_tell_how_much_there_is_and_where_it_ends() -> None:
    fetch = fetched(batch(10, 2, 3), batch(15, 3, 4))
    assert (fetch.left(), fetch.next_offset(10), fetch.last_epoch(), fetch.exhausted()) == (5, 18, 4, False)
    assert fetch.next_offset(40) == 40


def damaged(data: bytes) -> bytes:
    """Its CRC does not fit."""
    return data[:-1] + bytes([data[-1] ^ 1])


def decoded(fetch: CompletedFetch, offset: int, end: int | None = None) -> list[bytes | None]:
    pieces = fetch.decode_all(offset, end, check_crcs=True, with_headers=True)
    return [value for columns in pieces for value in values(columns)]


def values(columns: Columns) -> list[bytes | None]:
    return [columns.value(row) for row in range(columns.count)]


def test_what_lies_before_damage_comes_first_and_then_it_is_told_where_records_go_on() -> None:
    fetch = fetched(batch(10, 2, 3), damaged(batch(12, 3, 3)), batch(15, 1, 3))
    columns = fetch.decode(10, None, check_crcs=True, with_headers=True)
    assert values(columns) == [b"10", b"11"]
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 12: .*; seek to offset 15 to go on without it"):
        fetch.decode(12, None, check_crcs=True, with_headers=True)
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 13: .*; seek to offset 15 to go on without it"):
        fetch.decode(13, None, check_crcs=True, with_headers=True)
    assert values(fetch.decode(15, None, check_crcs=True, with_headers=True)) == [b"15"]


def test_damage_at_the_very_beginning_is_told_at_once() -> None:
    fetch = fetched(damaged(batch(10, 2, 3)), batch(12, 1, 3))
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 10: .*; seek to offset 12"):
        fetch.decode(10, None, check_crcs=True, with_headers=True)


def test_a_batch_that_leapt_ahead_is_passed_over_by_who_sought_behind_it() -> None:
    fetch = fetched(batch(1000, 2, 3), batch(12, 1, 3), batch(13, 1, 3))
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 10: .*; seek to offset 12 to go on without it"):
        fetch.decode(10, None, check_crcs=True, with_headers=True)
    assert decoded(fetch, 12) == [b"12", b"13"]


def test_records_from_offset_0_on_are_found_behind_one_that_leapt_ahead() -> None:
    assert decoded(fetched(batch(1000, 2, 3), batch(0, 1, 3), batch(1, 1, 3), offset=0), 0) == [b"0", b"1"]


def test_who_seeks_behind_damage_that_is_all_there_is_is_told_that_nothing_reaches_so_far() -> None:
    with pytest.raises(CorruptRecordError, match="bytes fetched at offset 12 hold no whole batch that reaches it"):
        decoded(fetched(damaged(batch(10, 2, 3))), 12)


def test_nothing_is_decoded_where_nothing_is_wanted() -> None:
    assert decoded(fetched(damaged(batch(10, 2, 3))), 10, end=10) == []


def test_what_is_wanted_may_end_within_a_batch() -> None:
    assert decoded(fetched(batch(10, 5, 3)), 10, end=12) == [b"10", b"11"]


def test_in_a_log_that_was_empty_a_batch_far_ahead_is_damage() -> None:
    assert decoded(fetched(batch(1000, 1, 3), offset=0), 0) == [b"1000"], "nobody says where it ends"
    with pytest.raises(CorruptRecordError, match="t-0, offset 0: "):
        decoded(fetched(batch(1000, 1, 3), offset=0, high_watermark=0), 0)


def test_what_was_aborted_is_left_out() -> None:
    fetch = fetched(batch(10, 1, 3, producer_id=7), batch(11, 1, 3, producer_id=8))
    fetch.answer.aborted_transactions = [SimpleNamespace(producer_id=7, first_offset=10)]
    assert decoded(fetch, 10) == [b"11"]


def test_records_bear_their_headers() -> None:
    builder = BatchBuilder()
    builder.append(1000, None, b"v", [("h", b"1")])
    [record] = fetched(builder.build(), offset=0).fetch_records(1, 0, None, True, (None, None))
    assert list(record.headers) == [("h", b"1")]


def test_an_empty_answer_has_nothing_to_decode() -> None:
    assert decoded(fetched(), 10) == []


def test_a_log_that_its_broker_cannot_read_is_told_with_where_records_go_on_if_the_broker_says() -> None:
    fetch = fetched()
    for start, text in ((10, "its own log says how to mend that"), (11, "seek to offset 11 to go on without it")):
        fetch.answer.log_start_offset = start
        assert text in fetch.unreadable()
