from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

import ottla.records.builder as compiled
from ottla.errors import KafkaError, SerializationError
from ottla.model import Header
from ottla.records.batch import parse_header, verify
from ottla.records.compression import Codec
from tests.plain import plain

FORMS = [compiled, plain("ottla.records.builder")]
forms = pytest.mark.parametrize("form", FORMS, ids=["compiled", "plain"])
Row = tuple[int, bytes | None, bytes | None, list[Header]]

octets = st.none() | st.binary(max_size=200)
header_lists = st.lists(st.tuples(st.text(max_size=5), octets), max_size=3)
rows = st.lists(st.tuples(st.integers(0, 2**62), octets, octets, header_lists), min_size=1, max_size=30)


def built(form: Any, rows: list[Row], codec: Codec = Codec.NONE) -> bytes:
    builder = form.BatchBuilder(codec, max_bytes=1 << 20)
    for row in rows:
        assert builder.append(*row) is True
    batch: bytes = builder.build()
    return batch


def read(records: Any) -> list[Any]:
    found = []
    while (batch := records.next_batch()) is not None:
        found += [(r.offset, r.timestamp, r.key, r.value, [tuple(header) for header in r.headers]) for r in batch]
    return found


@given(rows=rows)
def test_other_clients_read_what_is_built(rows: list[Row]) -> None:
    batch = built(compiled, rows)
    expected = [(offset, *row) for offset, row in enumerate(rows)]
    assert read(KafkaPythonRecords(batch)) == expected
    assert read(AiokafkaRecords(batch)) == expected


@pytest.mark.behaviour("P9")
@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)
def test_other_clients_read_every_codec(codec: Codec) -> None:
    rows: list[Row] = [(1000 + i, None, b"a value " * i, []) for i in range(300)]
    assert read(AiokafkaRecords(built(compiled, rows, codec))) == [(i, *row) for i, row in enumerate(rows)]


@given(rows=rows)
def test_plain_and_compiled_build_the_same(rows: list[Row]) -> None:
    assert built(FORMS[0], rows) == built(FORMS[1], rows)


@forms
def test_a_record_that_does_not_fit_is_left_for_the_next_batch(form: Any) -> None:
    builder = form.BatchBuilder(max_bytes=500)
    taken = 0
    while builder.append(1, None, b"x" * 100):
        taken += 1
        assert builder.size_bytes == len(builder.build()) <= 500
    assert taken == builder.count == 4
    assert parse_header(builder.build()).count == 4


@forms
def test_an_empty_builder_takes_a_record_of_any_size(form: Any) -> None:
    builder = form.BatchBuilder(max_bytes=100)
    assert builder.append(1, b"k" * 5000, b"v" * 5000)
    assert not builder.append(1, None, None)
    assert len(builder.build()) > 10_000


@forms
def test_the_header_knows_first_and_largest_timestamp_and_the_producer(form: Any) -> None:
    builder = form.BatchBuilder()
    for timestamp in (50, 10, 90, 70):
        builder.append(timestamp, None, None)
    batch = builder.build(9, 1, 77, True)
    header = parse_header(batch)
    verify(batch, 0, header)
    assert (header.base_timestamp, header.max_timestamp, header.count) == (50, 90, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 77)
    assert header.is_transactional


@forms
def test_a_batch_can_be_built_again_for_another_producer(form: Any) -> None:
    builder = form.BatchBuilder()
    builder.append(1, None, b"v")
    first, second = builder.build(1, 0, 0), builder.build(2, 0, 0)
    assert (parse_header(first).producer_id, parse_header(second).producer_id) == (1, 2)
    assert first[61:] == second[61:]


@forms
def test_bytearrays_and_views_are_bytes_too(form: Any) -> None:
    builder = form.BatchBuilder()
    builder.append(1, bytearray(b"key"), memoryview(b"value"), [("h", memoryview(b"x"))])
    assert read(KafkaPythonRecords(builder.build())) == [(0, 1, b"key", b"value", [("h", b"x")])]


@forms
def test_a_value_that_is_not_bytes_is_an_error_that_names_it(form: Any) -> None:
    builder = form.BatchBuilder()
    with pytest.raises(SerializationError, match="the key is str; give bytes"):
        builder.append(1, "key", None)
    with pytest.raises(SerializationError, match="the value is int"):
        builder.append(1, None, 5)
    with pytest.raises(SerializationError, match="the value of header h is str"):
        builder.append(1, None, None, [("h", "text")])
    with pytest.raises(SerializationError, match="key of a header is bytes"):
        builder.append(1, None, None, [(b"h", b"text")])
    assert builder.count == 0


@forms
def test_a_timestamp_before_1970_is_refused(form: Any) -> None:
    with pytest.raises(ValueError, match="a timestamp of -2 ms"):
        form.BatchBuilder().append(-2, None, None)
    assert form.BatchBuilder().append(-1, None, None)


@forms
def test_a_timestamp_of_more_than_64_bits_is_refused(form: Any) -> None:
    with pytest.raises(OverflowError):
        form.BatchBuilder().append(2**63, None, None)


@forms
def test_a_batch_beyond_2_gib_is_refused(form: Any) -> None:
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        form.BatchBuilder().grow(2**31)
