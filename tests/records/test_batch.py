from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import TimestampType
from ottla.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    iter_headers,
    parse_header,
    seal,
    stamp,
    stamp_all,
    stamp_append_time,
    verify,
    verify_all,
)
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.records.survey import extent
from tests.plain import plain


def batch_of(count: int = 3, codec: Codec = Codec.NONE, **producer: Any) -> bytes:
    builder = BatchBuilder(codec)
    for i in range(count):
        assert builder.append(1000 + i, b"key %d" % i, b"value %d" % i)
    return builder.build(**producer)


def resealed(batch: bytes, **fields: int) -> bytes:
    """Return the batch with other header fields and a matching CRC."""
    return seal(parse_header(batch)._replace(**fields), batch[HEADER_BYTES:])


def test_a_header_describes_its_batch() -> None:
    batch = batch_of(3, Codec.ZSTD, producer_id=7, producer_epoch=2, base_sequence=40)
    header = parse_header(b"junk" + batch, 4)
    assert (header.magic, header.count, header.last_offset_delta) == (2, 3, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1002)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert header.codec is Codec.ZSTD
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert not any((header.is_transactional, header.is_control, header.has_delete_horizon))
    assert header.size_bytes == len(batch)
    assert (header.last_offset, header.next_offset) == (2, 3)


def test_attribute_bits_have_names() -> None:
    header = parse_header(batch_of())._replace(attributes=0b111_1000)
    assert header.is_transactional
    assert header.is_control
    assert header.has_delete_horizon
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME


def test_a_codec_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CorruptRecordError, match="compression codec 6"):
        parse_header(batch_of())._replace(attributes=6).codec  # noqa: B018


def test_a_batch_cut_off_at_the_end_is_left_out() -> None:
    one, two = batch_of(1), batch_of(2)
    for cut in (0, 5, 11, 12, 16, 60, len(two) - 1):
        assert [(at, header.count) for at, header in iter_headers(one + two[:cut])] == [(0, 1)]
    assert [(at, header.count) for at, header in iter_headers(one + two)] == [(0, 1), (len(one), 2)]


def test_a_length_below_the_header_is_an_error_not_an_endless_loop() -> None:
    for length in (0, -1, -12, 48):
        with pytest.raises(CorruptRecordError, match=f"length is {length}, less"):
            list(iter_headers(bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(100)))


def test_formats_before_kafka_0_11_are_refused_by_name() -> None:
    old = bytearray(batch_of())
    old[16] = 1
    with pytest.raises(CorruptRecordError, match="has format 1: only format 2 is supported"):
        list(iter_headers(old))


def test_a_short_header_is_an_error() -> None:
    with pytest.raises(CorruptRecordError, match="takes 61 bytes, 60 are left"):
        parse_header(bytes(60))


@given(at=st.integers(16, len(batch_of()) - 1), bit=st.integers(0, 7))
def test_no_flipped_bit_from_the_magic_on_passes(at: int, bit: int) -> None:
    batch = bytearray(batch_of())
    batch[at] ^= 1 << bit
    with pytest.raises(CorruptRecordError):
        verify(batch, 0, parse_header(batch))


@pytest.mark.parametrize(
    "fields",
    [{"count": 4}, {"count": -1}, {"last_offset_delta": -1}, {"last_offset_delta": 1}, {"attributes": 7}],
    ids=str,
)
def test_counts_and_codecs_that_cannot_be_are_refused_though_the_crc_is_true(fields: dict[str, int]) -> None:
    batch = resealed(batch_of(), **fields)
    with pytest.raises(CorruptRecordError):
        verify(batch, 0, parse_header(batch))


def test_a_batch_that_lost_records_to_compaction_is_good() -> None:
    for count in (0, 1):
        batch = resealed(batch_of(), last_offset_delta=9, count=count)
        verify(batch, 0, parse_header(batch))


def test_a_stamped_batch_keeps_its_crc() -> None:
    data = bytearray(b"xx" + batch_of())
    stamp(data, 2, 1 << 40, 5)
    header = parse_header(data, 2)
    verify(data, 2, header)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 5)


def test_append_time_is_the_time_of_the_whole_batch() -> None:
    data = bytearray(batch_of())
    header = stamp_append_time(data, 0, parse_header(data), 123_456)
    assert header == parse_header(data)
    verify(data, 0, header)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 123_456)


def test_batches_of_a_producer_get_their_offsets() -> None:
    data = bytearray(batch_of(3) + batch_of(2, Codec.LZ4))
    headers = stamp_all(memoryview(data), verify_all(data), 100, 7)
    assert [(h.base_offset, h.last_offset, h.leader_epoch) for h in headers] == [(100, 102, 7), (103, 104, 7)]
    assert headers == [header for _, header in iter_headers(data)]


def test_append_time_is_stamped_on_all_batches() -> None:
    data = bytearray(batch_of(3) + batch_of(2))
    headers = stamp_all(data, verify_all(data), 0, 0, append_time_ms=99)
    assert headers == [header for _, header in iter_headers(data)]
    for at, header in iter_headers(data):
        verify(data, at, header)
        assert header.max_timestamp == 99


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda batch: batch[:-1], CorruptRecordError),
        (lambda batch: batch + b"\x00", CorruptRecordError),
        (lambda batch: batch[:-1] + b"\xff", CorruptRecordError),
        (lambda batch: resealed(batch, last_offset_delta=9), KafkaError),
        (lambda batch: resealed(batch, attributes=0x20), KafkaError),
        (lambda batch: resealed(batch, producer_id=5), KafkaError),
        (lambda batch: resealed(batch, producer_id=5, base_sequence=0), KafkaError),
        (lambda batch: resealed(batch, attributes=0x10), KafkaError),
        (lambda batch: resealed(batch, base_offset=1), KafkaError),
        (lambda batch: resealed(batch, count=0, last_offset_delta=0), KafkaError),
    ],
)
def test_invalid_batches_are_rejected(spoil: Callable[[bytes], bytes], error: type[Exception]) -> None:
    data = bytearray(batch_of() + spoil(batch_of()))
    with pytest.raises(error):
        verify_all(data)


def test_a_broker_may_write_control_batches() -> None:
    data = bytearray(resealed(batch_of(1), attributes=0x30, producer_id=5))
    assert verify_all(data, from_client=False)[0].is_control


@given(data=st.binary(max_size=200))
def test_random_bytes_are_no_batch_or_an_error(data: bytes) -> None:
    try:
        for at, header in iter_headers(data):
            verify(data, at, header)
    except CorruptRecordError:
        pass


def test_other_clients_find_the_crc_true() -> None:
    batch = batch_of()
    assert KafkaPythonRecords(batch).next_batch().validate_crc()
    assert AiokafkaRecords(batch).next_batch().validate_crc()


def test_seal_fills_in_length_and_crc() -> None:
    header = BatchHeader(0, 0, -1, 2, 0, 0, 0, 1, 1, -1, -1, -1, 1)
    batch = seal(header, b"\x0c\x00\x00\x00\x01\x01\x00")
    verify(batch, 0, parse_header(batch))
    assert parse_header(batch).length == 49 + 7


def extent_by_headers(data: bytes) -> tuple[int, int, int]:
    """Compute the result of `extent` from each header."""
    headers = [header for _, header in iter_headers(data)]
    last = headers[-1].leader_epoch if headers else -1
    return max((header.next_offset for header in headers), default=-1), last, sum(header.count for header in headers)


@pytest.mark.parametrize("form", [extent, plain("ottla.records.survey").extent], ids=["compiled", "plain"])
def test_the_extent_of_batches_matches_their_headers(form: Callable[[bytes], tuple[int, int, int]]) -> None:
    one, two = batch_of(3), batch_of(2)
    data = one + seal(parse_header(two)._replace(base_offset=7, leader_epoch=5), two[HEADER_BYTES:])
    assert form(data) == (9, 5, 5)
    for cut in range(0, len(data), 7):
        assert form(data[:cut]) == extent_by_headers(data[:cut])
    for wrong in (one[:16] + b"\x01" + one[17:], bytes(8) + bytes(60)):
        with pytest.raises(CorruptRecordError):
            form(wrong)
