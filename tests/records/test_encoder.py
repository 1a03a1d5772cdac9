from __future__ import annotations

from array import array
from types import ModuleType
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

import ottla.records.encoder as compiled
from ottla.errors import KafkaError
from ottla.records.batch import parse_header, stamp_all, verify_all
from ottla.records.binary_column import BinaryColumn
from ottla.records.builder import BatchBuilder
from ottla.records.columns import Columns, Rows, decode
from ottla.records.compression import Codec
from tests.plain import plain
from tests.records.forms import rows_of
from tests.records.test_builder import read

FORMS = [compiled, plain("ottla.records.encoder")]
forms = pytest.mark.parametrize("form", FORMS, ids=["compiled", "plain"])
octets = st.none() | st.binary(max_size=150)
header_lists = st.lists(st.tuples(st.text(max_size=5), octets), max_size=3)
row_lists = st.lists(st.tuples(st.integers(-1, 2**62), octets, octets, header_lists), min_size=1, max_size=30)


def columns_of(rows: list[Any], **options: Any) -> Columns:
    builder = BatchBuilder(max_bytes=1 << 20)
    for row in rows:
        assert builder.append(*row)
    return decode(builder.build(), **options)


def small(count: int) -> Columns:
    return columns_of([(100 + i, None, b"%d" % i) for i in range(count)])


@forms
@given(rows=row_lists, max_bytes=st.integers(0, 2000), codec=st.sampled_from(list(Codec)))
def test_columns_are_encoded_in_batches_of_the_requested_size(
    form: ModuleType, rows: list[Any], max_bytes: int, codec: Codec
) -> None:
    batches = list(form.encode_rows(columns_of(rows), max_bytes=max_bytes, codec=codec))
    following = 0
    for data, first, last in batches:
        assert first == following
        following = last + 1
        assert parse_header(data).count == following - first
        assert codec or len(data) <= max_bytes or first == last
    assert following == len(rows)
    log = bytearray(b"".join(batch.data for batch in batches))
    stamp_all(log, verify_all(log), 0, 0)
    assert rows_of(decode(log)) == [(i, *row) for i, row in enumerate(rows)]


@given(rows=row_lists)
def test_a_batch_of_columns_is_what_the_builder_makes_of_the_same_rows(rows: list[Any]) -> None:
    builder = BatchBuilder(max_bytes=1 << 20)
    for row in rows:
        assert builder.append(*row)
    for form in FORMS:
        assert [b.data for b in form.encode_rows(columns_of(rows), max_bytes=1 << 20)] == [builder.build()]


@forms
@given(rows=row_lists, size=st.sampled_from([1, 500, 3000]), max_bytes=st.integers(0, 300_000), sealed=st.booleans())
def test_batches_moved_out_of_the_scratch_buffer_are_the_same(
    form: ModuleType, rows: list[Any], size: int, max_bytes: int, sealed: bool
) -> None:
    columns = columns_of([*rows, *((5, b"key", bytes([n % 251]) * size, ()) for n in range(100))])
    taken: list[bytearray] = []

    def room(wanted: int) -> bytearray:
        taken.append(bytearray(b"?" * wanted))
        return taken[-1]

    plainly = form.encode_rows(columns, max_bytes=max_bytes, sealed=sealed)
    moved = list(form.encode_rows(columns, max_bytes=max_bytes, sealed=sealed, desk=bytearray(1000), room=room))
    larger = list(form.encode_rows(columns, max_bytes=max_bytes, sealed=sealed, desk=bytearray(300_000), room=room))
    expected = [(bytes(batch.data), batch.first_row, batch.last_row) for batch in plainly]
    assert [(bytes(data), first, last) for data, first, last in moved] == expected
    assert [(bytes(data), first, last) for data, first, last in larger] == expected
    assert [batch.data.obj for batch in (*moved, *larger)] == taken


@given(rows=row_lists)
def test_other_clients_read_what_is_encoded(rows: list[Any]) -> None:
    (batch,) = compiled.encode_rows(columns_of(rows), max_bytes=1 << 20)
    expected = [(i, *row) for i, row in enumerate(rows)]
    assert read(KafkaPythonRecords(bytes(batch.data))) == read(AiokafkaRecords(bytes(batch.data))) == expected


@forms
def test_only_the_requested_rows_are_encoded(form: ModuleType) -> None:
    (batch,) = form.encode_rows(small(10), 3, 7)
    assert (batch.first_row, batch.last_row) == (3, 6)
    decoded = decode(batch.data)
    assert [decoded.value(i) for i in range(4)] == [b"3", b"4", b"5", b"6"]
    assert decoded.timestamps.tolist() == [103, 104, 105, 106]
    assert list(form.encode_rows(small(10), 4, 4)) == []


@forms
def test_sequences_continue_across_batches_and_wrap_after_the_last(form: ModuleType) -> None:
    batches = form.encode_rows(small(9), max_bytes=61 + 3 * 8, producer_id=5, producer_epoch=1, base_sequence=2**31 - 4)
    headers = [parse_header(batch.data) for batch in batches]
    assert [h.base_sequence for h in headers] == [2**31 - 4, 2**31 - 1, 2]
    assert {(h.producer_id, h.producer_epoch, h.is_transactional) for h in headers} == {(5, 1, False)}
    assert parse_header(next(form.encode_rows(small(1), transactional=True)).data).is_transactional


@forms
def test_the_largest_timestamp_is_in_the_header(form: ModuleType) -> None:
    rows = columns_of([(50, None, None), (90, None, None), (10, None, None)])
    header = parse_header(next(form.encode_rows(rows)).data)
    assert (header.base_timestamp, header.max_timestamp) == (50, 90)


@forms
def test_a_row_larger_than_a_batch_gets_its_own_batch(form: ModuleType) -> None:
    rows = columns_of([(1, None, b"a"), (1, b"k" * 999, b"v" * 999), (1, None, b"b")])
    batches = list(form.encode_rows(rows, max_bytes=200))
    assert [(b.first_row, b.last_row) for b in batches] == [(0, 0), (1, 1), (2, 2)]
    assert decode(batches[1].data).value(0) == b"v" * 999


@forms
def test_headers_that_were_not_decoded_are_not_encoded(form: ModuleType) -> None:
    rows = columns_of([(1, None, b"v", [("h", b"x")])], with_headers=False)
    assert decode(next(form.encode_rows(rows)).data).headers(0) == []


@forms
def test_a_timestamp_before_1970_is_refused(form: ModuleType) -> None:
    nothing = BinaryColumn.of_nulls(2)
    with pytest.raises(ValueError, match="row 1 has timestamp -2 ms"):
        list(form.encode_rows(Rows(memoryview(array("q", [5, -2])), nothing, nothing)))


@forms
@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 1), (0, 4), (4, None)])
def test_rows_that_are_not_there_are_an_error(form: ModuleType, start: int, stop: int | None) -> None:
    with pytest.raises(IndexError, match="of columns of 3"):
        list(form.encode_rows(small(3), start, stop))


@forms
def test_columns_must_be_of_one_length(form: ModuleType) -> None:
    rows = Rows(memoryview(array("q", [5, 5])), BinaryColumn.of_nulls(1), BinaryColumn.of_nulls(2))
    with pytest.raises(IndexError, match="of columns of 2, 1, 2 rows"):
        list(form.encode_rows(rows))


@forms
def test_a_record_beyond_2_gib_is_refused(form: ModuleType) -> None:
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        form.RecordWriter(small(1)).grow(2**31)
