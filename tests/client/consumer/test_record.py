"""Records as views of rows, in the compiled and in the plain form."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import ottla.client.consumer.record as compiled
from ottla.errors import RecordDeserializationError
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
    """Three records: one with key, value and header, one with a value, and an empty one."""
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
def test_a_part_of_a_chunk_is_returned_once(form: ModuleType, columns: ModuleType) -> None:
    records = form.RecordIterator(source_of(form, columns), 1, 3)
    assert (next(records).value, records.row) == (b"w", 2)
    records.end()
    assert list(records) == []
    assert [record.offset for record in form.records_of(source_of(form, columns), 1, 3)] == [1, 2]


@forms
def test_a_deserializer_is_called_once_for_a_record(form: ModuleType, columns: ModuleType) -> None:
    asked: list[bytes] = []

    def upper(data: bytes) -> str:
        asked.append(data)
        return data.decode().upper()

    source = source_of(form, columns, value_deserializer=upper)
    keys, values, failure = source.deserialize(0, 3)
    assert (keys, values, failure) == (None, ["V", "W", None], None)
    assert asked == [b"v", b"w"]
    for make in (form.records_of, form.RecordIterator):
        first, _, third = make(source, 0, 3, keys, values)
        assert (first.key, first.value, first.value, first.raw_value, third.value) == (b"k", "V", "V", b"v", None)
        (second,) = make(source, 1, 2, keys, ["W"])
        assert (second.key, second.value) == (None, "W")
    assert asked == [b"v", b"w"]


@forms
@pytest.mark.parametrize("origin", ["key", "value"])
def test_objects_end_before_the_first_record_that_a_deserializer_rejects(
    form: ModuleType, columns: ModuleType, origin: str
) -> None:
    def reject_second(data: bytes | None) -> str:
        if data in (b"k2", b"w"):
            raise ValueError(f"not {data!r}")
        return str(data)

    builder = BatchBuilder(max_bytes=1000)
    for key, value in ((b"k", b"v"), (b"k2" if origin == "key" else b"k", b"w"), (b"k", b"v")):
        assert builder.append(7, key, value, [])
    source = form.RecordSource("flights", 3, columns.decode(builder.build()), reject_second, reject_second)
    keys, values, failure = source.deserialize(0, 3)
    assert (keys, values) == (["b'k'"], ["b'v'"])
    assert isinstance(failure, RecordDeserializationError)
    assert (failure.partition, failure.offset, failure.origin) == (TopicPartition("flights", 3), 1, origin)
    assert (failure.record.raw_value, failure.record.value, failure.record.offset) == (b"w", b"w", 1)
    rejected = b"k2" if origin == "key" else b"w"
    assert str(failure) == (
        f"{origin}.deserializer failed on flights-3 at offset 1: ValueError: not {rejected!r}; to skip this record call "
        f"seek(TopicPartition('flights', 3), 2)"
    )
    assert isinstance(failure.__cause__, ValueError)
