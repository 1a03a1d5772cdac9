"""Records as views of rows, in the compiled and in the plain form."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import ottla.client.consumer.record as compiled
from ottla.errors import SerializationError
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder
from tests.plain import plain
from tests.records.forms import FORMS

RECORD_FORMS = {
    "compiled": (compiled, FORMS["compiled"]),
    "plain": (plain("ottla.client.consumer.record"), FORMS["interpreted"]),
}
forms = pytest.mark.parametrize(("form", "columns"), RECORD_FORMS.values(), ids=RECORD_FORMS)


def source_of(form: ModuleType, columns: ModuleType, **deserializers: Any) -> Any:
    """Three records: a key and a value and a header, a value, nothing at all."""
    builder = BatchBuilder(max_bytes=1000)
    rows: list[Any] = [(7, b"k", b"v", [("h", b"x")]), (8, None, b"w", []), (9, None, None, [])]
    for row in rows:
        assert builder.append(*row)
    return form.RecordSource("flights", 3, columns.decode(builder.build()), **deserializers)


@forms
def test_a_record_has_its_place_and_time_and_what_was_sent(form: ModuleType, columns: ModuleType) -> None:
    source = source_of(form, columns)
    first, second, third = form.records_of(source, 0, 3)
    assert (first.topic, first.partition, first.offset, first.timestamp) == ("flights", 3, 0, 7)
    assert (first.key, first.value, first.headers) == (b"k", b"v", [("h", b"x")])
    assert (second.key, second.value, second.offset, second.headers) == (None, b"w", 1, [])
    assert (third.raw_key, third.raw_value, third.value, third.timestamp) == (None, None, None, 9)
    assert [record.serialized_key_size for record in (first, second)] == [1, -1]
    assert [record.serialized_value_size for record in (second, third)] == [1, -1]
    assert source.tp == TopicPartition("flights", 3)


@forms
def test_a_part_of_a_chunk_is_handed_out_once(form: ModuleType, columns: ModuleType) -> None:
    records = form.RecordIterator(source_of(form, columns), 1, 3)
    assert (next(records).value, records.row) == (b"w", 2)
    records.end()
    assert list(records) == []
    assert [record.offset for record in form.records_of(source_of(form, columns), 1, 3)] == [1, 2]


@forms
def test_a_deserializer_is_asked_once_for_a_record(form: ModuleType, columns: ModuleType) -> None:
    asked: list[bytes] = []

    def upper(data: bytes) -> str:
        asked.append(data)
        return data.decode().upper()

    for make in (form.records_of, form.RecordIterator):
        first, _, third = make(source_of(form, columns, value_deserializer=upper), 0, 3)
        assert (first.key, first.value, first.value, first.raw_value, third.value) == (b"k", "V", "V", b"v", None)
    assert asked == [b"v", b"v"]


@forms
def test_a_deserializer_that_fails_is_told_with_the_record(form: ModuleType, columns: ModuleType) -> None:
    record = next(iter(form.records_of(source_of(form, columns, key_deserializer=int), 0, 3)))
    with pytest.raises(SerializationError, match=r"key\.deserializer failed on flights-3 at offset 0: ValueError"):
        assert record.key
    assert record.value == b"v"
