"""Schema references of records, and the waits for a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.schema_validation.references import HEADERS, Reference, read_batch
from ottla.broker.schema_validation.validation import Refusals, SchemaValidation
from ottla.errors import ErrorCode, RecordsRefusedError
from ottla.model import TopicPartition
from ottla.records.compression import Codec
from tests.broker.wire import batch

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
T = TopicPartition("t", 0)


class Registry:
    """Answers when the test says so."""

    def __init__(self, known: Mapping[Reference, Set[str]] | None = None, *, has_registry: bool = True) -> None:
        self.known = dict(known or {})
        self.asked: list[tuple[Reference, Callable[[Set[str] | Exception], None]]] = []
        self.has_registry = has_registry

    def find(self, reference: Reference) -> Set[str] | None:
        return self.known.get(reference)

    def look_up(self, reference: Reference, on_found: Callable[[Set[str] | Exception], None]) -> None:
        self.asked.append((reference, on_found))

    def answer(self, result: Set[str] | Exception) -> Reference:
        reference, on_found = self.asked.pop(0)
        on_found(result)
        return reference


class Topics:
    def find_configs(self, name: str) -> Mapping[str, str]:
        return {"value.schema.validation": "true"}


def with_id(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + b"data"


def validate(registry: Registry, *values: bytes) -> tuple[Refusals | None, list[Refusals]]:
    """Return the result for one batch, and the list that receives a later result."""
    later: list[Refusals] = []
    return SchemaValidation(Topics(), registry).validate([(T, batch(values))], later.append), later


def test_known_schemas_of_the_subject_are_accepted_at_once() -> None:
    assert validate(Registry({7: {"t-value"}}), with_id(7), with_id(7)) == ({}, [])


def test_an_unknown_schema_is_looked_up_once_per_request() -> None:
    registry = Registry({7: {"t-value"}})
    now, later = validate(registry, with_id(7), with_id(8), with_id(8))
    assert (now, later) == (None, [])
    assert registry.answer({"t-value"}) == 8
    assert later == [{}]


def test_a_schema_of_another_subject_is_looked_up_again_because_the_cache_may_be_outdated() -> None:
    registry = Registry({7: {"other-value"}})
    _, later = validate(registry, with_id(7))
    registry.answer({"other-value", "t-value"})
    assert later == [{}]


def test_each_rejected_record_is_named_with_its_reason() -> None:
    registry = Registry({7: {"t-value"}})
    _, later = validate(registry, b"plain", with_id(7), with_id(9), b"\0\0\0")
    registry.answer(set())
    error = later[0][T]
    assert isinstance(error, RecordsRefusedError)
    assert error.code == ErrorCode.INVALID_RECORD
    assert error.faults == [
        (0, "its value does not begin with the id of a schema"),
        (2, "the schema of its value, id 9, is not registered under t-value"),
        (3, "its value does not begin with the id of a schema"),
    ]


def test_a_registry_that_does_not_answer_is_an_error_that_producers_retry() -> None:
    registry = Registry()
    _, later = validate(registry, with_id(7), with_id(8))
    registry.answer({"t-value"})
    registry.answer(OSError("connection refused"))
    assert later[0][T].code == ErrorCode.REQUEST_TIMED_OUT
    assert "connection refused" in str(later[0][T])


def test_without_a_registry_the_topic_accepts_nothing() -> None:
    now, _ = validate(Registry(has_registry=False), with_id(7))
    assert now is not None
    assert now[T].code == ErrorCode.INVALID_CONFIG
    assert "schema.registry.url" in str(now[T])


@pytest.mark.parametrize(
    ("guid", "found"),
    [
        (b"\1" + GUID.bytes, GUID),
        (b"\0" + GUID.bytes, "its header __value_schema_id has no GUID of a schema"),
        (b"\1short", "its header __value_schema_id has no GUID of a schema"),
    ],
)
def test_a_header_refers_to_a_schema_by_its_guid(guid: bytes, found: object) -> None:
    data = batch([b"data"], headers=[(HEADERS["value"], guid)])
    assert read_batch(data, "t", ["value"])[0].references == [(0, found)]


def test_nulls_need_no_schema() -> None:
    keys = read_batch(batch([b"value"]), "t", ["key"])
    assert keys[0].references == []


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=20), st.sampled_from(list(Codec)))
def test_every_value_has_an_id_or_a_reason(values: list[bytes], codec: Codec) -> None:
    (found,) = read_batch(batch(values, codec), "t", ["value"])
    expected = [int.from_bytes(value[1:5], "big") if len(value) > 4 and value[0] == 0 else "reason" for value in values]
    assert [each if isinstance(each, int) else "reason" for _, each in found.references] == expected


@given(st.data())
def test_a_damaged_batch_is_left_to_the_append(data: st.DataObject) -> None:
    damaged = bytearray(batch([with_id(7)]))
    at = data.draw(st.integers(21, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    assert read_batch(damaged, "t", ["value"]) == []
