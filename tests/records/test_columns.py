from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from ottla.errors import CorruptRecordError
from ottla.model import Header, TimestampType
from ottla.records.batch import parse_header, seal, stamp, stamp_append_time
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.records.compression import Codec
from tests.records.forms import FORMS, Row, rows_of

forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
codecs = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
octets = st.none() | st.binary(max_size=150)
header_lists = st.lists(st.tuples(st.text(max_size=5), octets), max_size=3)
row_lists = st.lists(st.tuples(st.integers(0, 2**62), octets, octets, header_lists), min_size=1, max_size=20)


def batch_of(rows: list[tuple[int, bytes | None, bytes | None, list[Header]]], codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(codec, max_bytes=1 << 20)
    for row in rows:
        assert builder.append(*row)
    return builder.build()


def numbered(base_offset: int, count: int, **fields: int) -> bytes:
    """A batch of `count` records with values b"<offset>", and other header fields if they are given."""
    rows: list[Any] = [(1000 + base_offset + i, None, b"%d" % (base_offset + i), []) for i in range(count)]
    return resealed(batch_of(rows), **{"base_offset": base_offset, "leader_epoch": 3, **fields})


def resealed(batch: bytes, **fields: int) -> bytes:
    return seal(parse_header(batch)._replace(**fields), batch[61:])


def values(columns: Any) -> list[int]:
    return [int(columns.value(i)) for i in range(columns.count)]


@forms
@given(batches=st.lists(st.tuples(row_lists, st.sampled_from(list(Codec))), max_size=4))
def test_built_batches_are_decoded(form: ModuleType, batches: list[Any]) -> None:
    data = bytearray()
    expected: list[Row] = []
    for rows, codec in batches:
        start, offset = len(data), len(expected)
        data += batch_of(rows, codec)
        stamp(data, start, offset, 0)
        expected += [(offset + i, *row) for i, row in enumerate(rows)]
    columns = form.decode(data)
    assert rows_of(columns) == expected
    assert columns.next_offset == columns.count == len(columns) == len(expected)


@pytest.mark.behaviour("P9")
@forms
@codecs
def test_batches_of_aiokafka_are_decoded(form: ModuleType, codec: Codec) -> None:
    builder = AiokafkaBuilder(2, int(codec), 0, -1, -1, -1, 1 << 20)
    expected: list[Row] = []
    for i in range(200):
        row: Row = (
            i,
            5000 - i,
            None if i % 3 else b"key %d" % i,
            b"v" * (i % 7) if i % 5 else None,
            [("h", b"%d" % i)],
        )
        builder.append(row[0], timestamp=row[1], key=row[2], value=row[3], headers=row[4])
        expected.append(row)
    assert rows_of(form.decode(bytes(builder.build()))) == expected


@forms
@given(rows=row_lists)
def test_batches_of_kafka_python_are_decoded(form: ModuleType, rows: list[Any]) -> None:
    builder = KafkaPythonBuilder(2, 1, 0, -1, -1, -1, 1 << 20)
    for i, (timestamp, key, value, headers) in enumerate(rows):
        builder.append(i, timestamp, key, value, headers)
    assert rows_of(form.decode(bytes(builder.build()))) == [(i, *row) for i, row in enumerate(rows)]


@forms
def test_empty_and_none_are_not_the_same(form: ModuleType) -> None:
    columns = form.decode(batch_of([(1, None, b"", []), (2, b"", None, [("h", None), ("h", b"")])]))
    assert [columns.key(0), columns.key(1)] == [None, b""]
    assert [columns.value(0), columns.value(1)] == [b"", None]
    assert columns.headers(1) == [("h", None), ("h", b"")]
    assert [columns.keys.size(0), columns.keys.size(1)] == [-1, 0]


@forms
def test_nothing_is_decoded_to_nothing(form: ModuleType) -> None:
    columns = form.decode(b"", from_offset=17)
    assert (columns.count, columns.next_offset, rows_of(columns)) == (0, 17, [])


@forms
def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch(form: ModuleType) -> None:
    one, two = numbered(0, 3), numbered(3, 3)
    for cut in (1, 11, 12, 40, 61, len(two) - 1):
        columns = form.decode(memoryview(one + two[:cut]))
        assert (values(columns), columns.next_offset) == ([0, 1, 2], 3)


@forms
def test_only_rows_in_the_requested_offset_range_are_returned(form: ModuleType) -> None:
    data = numbered(0, 4) + numbered(4, 4) + numbered(8, 4)
    for start in range(13):
        for stop in range(start, 14):
            columns = form.decode(data, from_offset=start, up_to=stop)
            assert values(columns) == list(range(start, min(stop, 12)))
            assert columns.next_offset == (start if start > 12 else min(stop, 12))


@forms
def test_offsets_lost_to_compaction_stay_lost_and_are_read_past(form: ModuleType) -> None:
    data = numbered(0, 2, last_offset_delta=9) + resealed(numbered(10, 1)[:61], count=0, last_offset_delta=4)
    columns = form.decode(data)
    assert (values(columns), columns.next_offset) == ([0, 1], 15)
    assert form.decode(data, from_offset=12).next_offset == 15
    assert form.decode(data, from_offset=3, up_to=7).next_offset == 7


@forms
def test_control_batches_are_left_out_and_read_past(form: ModuleType) -> None:
    columns = form.decode(numbered(0, 2) + numbered(2, 1, attributes=0x30) + numbered(3, 1))
    assert values(columns) == [0, 1, 3]
    only = form.decode(numbered(2, 1, attributes=0x30))
    assert (only.count, only.next_offset) == (0, 3)


@forms
def test_append_time_is_the_time_of_every_record_of_its_batch(form: ModuleType) -> None:
    stamped = bytearray(numbered(2, 2))
    stamp_append_time(stamped, 0, parse_header(stamped), 77)
    columns = form.decode(numbered(0, 2) + bytes(stamped) + numbered(4, 1))
    assert columns.timestamps.tolist() == [1000, 1001, 77, 77, 1004]
    kinds = [columns.timestamp_type(row) for row in range(5)]
    assert kinds == [TimestampType.CREATE_TIME] * 2 + [TimestampType.LOG_APPEND_TIME] * 2 + [TimestampType.CREATE_TIME]


@forms
def test_deltas_count_from_the_delete_horizon_where_there_is_one(form: ModuleType) -> None:
    columns = form.decode(numbered(0, 2, attributes=0x40, base_timestamp=500_000))
    assert columns.timestamps.tolist() == [500_000, 500_001]


@forms
def test_timestamps_wrap_around_as_in_java(form: ModuleType) -> None:
    columns = form.decode(numbered(0, 2, base_timestamp=2**63 - 1))
    assert columns.timestamps.tolist() == [2**63 - 1, -(2**63)]
    assert form.decode(numbered(0, 1, base_timestamp=-5)).timestamps.tolist() == [-5]


@forms
def test_each_row_knows_its_leader_epoch(form: ModuleType) -> None:
    columns = form.decode(numbered(0, 2) + resealed(numbered(2, 2), leader_epoch=4) + numbered(4, 1, leader_epoch=-1))
    assert [columns.leader_epoch(row) for row in range(5)] == [3, 3, 4, 4, -1]


@forms
def test_columns_may_be_left_out(form: ModuleType) -> None:
    data = numbered(0, 3) + numbered(3, 2)
    columns = form.decode(data, with_headers=False, only=("value",))
    assert (values(columns), columns.count, columns.next_offset) == ([0, 1, 2, 3, 4], 5, 5)
    columns = form.decode(data, with_headers=False, only=("offset", "key"), from_offset=1)
    assert (columns.offsets.tolist(), columns.key(0), columns.count) == ([1, 2, 3, 4], None, 4)
    assert form.decode(data, only=()).count == 5


def test_columns_that_are_left_out_are_not_made() -> None:
    columns = FORMS["plain"].decode(numbered(0, 3), with_headers=False, only=("value",))
    assert (len(columns.offsets), len(columns.timestamps), columns.keys.count) == (0, 0, 0)


@forms
def test_headers_may_be_left_out(form: ModuleType) -> None:
    data = batch_of([(1, None, b"v", [("h", b"x")])])
    columns = form.decode(data, with_headers=False)
    assert columns.raw_headers is None
    assert columns.headers(0) == []
    assert form.decode(data).headers(0) == [("h", b"x")]


@forms
def test_a_header_key_that_is_not_utf8_gets_replacement_characters(form: ModuleType) -> None:
    batch = batch_of([(1, None, None, [("hh", b"")])]).replace(b"hh", b"h\xff")
    assert form.decode(resealed(batch)).headers(0) == [("h\ufffd", b"")]


@forms
def test_rows_that_are_not_there_are_an_error(form: ModuleType) -> None:
    columns = form.decode(numbered(0, 2))
    for row in (-1, 2, 1 << 40):
        for get in (columns.key, columns.value, columns.headers, columns.leader_epoch, columns.keys.size):
            with pytest.raises(IndexError):
                get(row)


@forms
def test_a_wrong_crc_is_detected_unless_the_check_is_disabled(form: ModuleType) -> None:
    data = bytearray(numbered(0, 2))
    data[-2] ^= 1
    with pytest.raises(CorruptRecordError, match="CRC"):
        form.decode(data)
    assert form.decode(data, check_crcs=False).count == 2


@forms
def test_damage_is_found_in_skipped_batches_too(form: ModuleType) -> None:
    bad = bytearray(numbered(0, 5))
    bad[26] = 1  # the last offset delta, with which the batch would end before offset 2
    with pytest.raises(CorruptRecordError):
        form.decode(bytes(bad), from_offset=2)
    with pytest.raises(CorruptRecordError):
        form.decode(resealed(numbered(0, 1), last_offset_delta=-5, count=-4), from_offset=2, check_crcs=False)


@forms
@codecs
def test_a_batch_that_becomes_too_large_is_refused(form: ModuleType, codec: Codec) -> None:
    data = batch_of([(1, None, bytes(100_000), [])], codec)
    if codec is Codec.NONE:
        assert form.decode(data, limit_bytes=1000).count == 1
    else:
        with pytest.raises(CorruptRecordError, match="more than the 1000 bytes"):
            form.decode(data, limit_bytes=1000)


@forms
def test_more_than_columns_can_hold_is_left_for_the_next_call(form: ModuleType, monkeypatch: Any) -> None:
    data = numbered(0, 10) + numbered(10, 10) + numbered(20, 10)
    monkeypatch.setattr(sys.modules[form.survey.__module__], "MAX_BYTES", 250)
    first = form.decode(data)
    assert (values(first), first.next_offset) == (list(range(20)), 20)
    assert values(form.decode(data, from_offset=20)) == list(range(20, 30))


@forms
def test_the_memory_of_columns_is_what_they_hold(form: ModuleType) -> None:
    columns = form.decode(batch_of([(1, b"k" * 5000, b"v", []), (2, None, b"w" * 9, [])]))
    assert (len(columns.keys.data), len(columns.values.data)) == (5000, 10)
    assert bytes(columns.keys.data[:3]) == b"kkk"
    assert columns.keys.offsets.tolist() == [0, 5000, 5000]
    assert (columns.keys.null_count, bytes(columns.keys.validity)) == (1, b"\x01")
    assert (columns.values.null_count, columns.values.validity) == (0, None)


def test_a_read_only_view_of_a_frame_is_decoded_in_place() -> None:
    frame = b"header" + numbered(0, 3) + b"tail"
    assert values(decode(memoryview(frame)[6:-4])) == [0, 1, 2]
