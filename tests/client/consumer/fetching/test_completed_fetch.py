"""A partition's share of an answer, handed out in portions."""

from __future__ import annotations

from types import SimpleNamespace

from ottla.client.consumer.fetching.completed_fetch import CompletedFetch
from ottla.model import TopicPartition
from ottla.records.batch import stamp
from ottla.records.builder import BatchBuilder

A = TopicPartition("t", 0)


def batch(base_offset: int, count: int, epoch: int) -> bytes:
    builder = BatchBuilder()
    for n in range(count):
        builder.append(1000, None, b"%d" % (base_offset + n))
    data = bytearray(builder.build())
    stamp(data, 0, base_offset, epoch)
    return bytes(data)


def fetched(*batches: bytes, offset: int = 10) -> CompletedFetch:
    answer = SimpleNamespace(records=memoryview(b"".join(batches)), high_watermark=-1, aborted_transactions=None)
    return CompletedFetch(A, offset, answer)


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
