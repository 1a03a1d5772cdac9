"""Schemas with very many references, references in a circle, and recursive schemas: bounded time and memory."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.registry import records
from ottla.registry.decisions import Comparable, Draft, examine, resolve_references
from ottla.registry.errors import RegistryError, SchemaLimitError
from ottla.registry.parsed_schemas import ParsedSchemas
from ottla.registry.records import Content, Reference
from ottla.registry.state import RegistryState

MOST = 1_000
SECONDS = 20
MEGABYTES = 400


@contextmanager
def bounded() -> Iterator[None]:
    """Check the processor time and the memory of a block."""
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - began < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024


def part(form: str, number: int, following: int | None = None) -> str:
    """Return a referenced schema, which refers to another one."""
    if form == "AVRO":
        kind: Any = "int" if following is None else f"R{following}"
        return json.dumps({"type": "record", "name": f"R{number}", "fields": [{"name": "x", "type": kind}]})
    if form == "JSON":
        return json.dumps({"type": "integer"} if following is None else {"$ref": f"r{following}.json"})
    imports = "" if following is None else f'import "r{following}.proto";'
    inner = "int32" if following is None else f"R{following}"
    return f'syntax = "proto3"; {imports} message R{number} {{ {inner} x = 1; }}'


def whole(form: str, count: int) -> str:
    """Return a schema that uses all referenced schemas."""
    if form == "AVRO":
        fields = [{"name": f"f{n}", "type": f"R{n}"} for n in range(count)]
        return json.dumps({"type": "record", "name": "All", "fields": fields})
    if form == "JSON":
        return json.dumps({"type": "object", "properties": {f"f{n}": {"$ref": f"r{n}.json"} for n in range(count)}})
    imports = "".join(f'import "r{n}.proto";' for n in range(count))
    lines = "".join(f"R{n} f{n} = {n + 1};" for n in range(count))
    return f'syntax = "proto3"; {imports} message All {{ {lines} }}'


def name_of(form: str, number: int) -> str:
    return {"AVRO": f"R{number}", "JSON": f"r{number}.json", "PROTOBUF": f"r{number}.proto"}[form]


def state_with(form: str, texts: list[str], references: dict[int, int]) -> RegistryState:
    """Return the state of a registry with a subject for each text; `references` has the text that a text refers to."""
    state = RegistryState()
    for number, text in enumerate(texts):
        used = references.get(number)
        refers = () if used is None else (Reference(name_of(form, used), f"r{used}", 1),)
        record = records.schema_record(f"r{number}", 1, number + 1, Content(form, text, refers))
        assert state.replay(record.key, record.value) is None
    return state


def examine_again(state: RegistryState, form: str, text: str, count: int) -> tuple[str, ...]:
    """Examine a schema with references against itself as its earlier version; return the differences."""
    refers = tuple(Reference(name_of(form, number), f"r{number}", 1) for number in range(count))
    content = Content(form, text, refers)
    found = resolve_references(state, "all", content)
    draft = Draft("all", content, found, False, "FULL", (Comparable(1, content, found),))
    return examine(draft, ParsedSchemas()).messages


def error_of(state: RegistryState, form: str) -> str | None:
    """Return the error for a schema with one reference, None for success."""
    try:
        assert examine_again(state, form, whole(form, 1), 1) == ()
    except RegistryError as error:
        return f"{error.status} {error.message}"
    return None


@pytest.mark.parametrize("form", ["AVRO", "JSON", "PROTOBUF"])
def test_a_thousand_references_are_parsed_and_compared_and_one_more_is_an_error(form: str) -> None:
    state = state_with(form, [part(form, number) for number in range(MOST + 1)], {})
    with bounded():
        assert examine_again(state, form, whole(form, MOST), MOST) == ()
        with pytest.raises(SchemaLimitError, match="more than 1000 schemas"):
            examine_again(state, form, whole(form, MOST + 1), MOST + 1)


@pytest.mark.parametrize("form", ["AVRO", "JSON", "PROTOBUF"])
def test_references_of_references_are_compared_or_a_clear_error(form: str) -> None:
    texts = [part(form, number, number + 1 if number + 1 < MOST else None) for number in range(MOST)]
    state = state_with(form, texts, {number: number + 1 for number in range(MOST - 1)})
    with bounded():
        error = error_of(state, form)
    assert error is None or error.startswith("422 the ")


@pytest.mark.parametrize("form", ["AVRO", "JSON", "PROTOBUF"])
def test_references_in_a_circle_are_compared_or_a_clear_error(form: str) -> None:
    """No server accepts them, and a topic that another program wrote may have them."""
    texts = [part(form, number, (number + 1) % 3) for number in range(3)]
    state = state_with(form, texts, {number: (number + 1) % 3 for number in range(3)})
    with bounded():
        error = error_of(state, form)
    assert error is None or error.startswith(("422 invalid ", "422 the schema cannot be compared"))


RECURSIVE = {
    "AVRO": json.dumps(
        {
            "type": "record",
            "name": "Tree",
            "fields": [{"name": name, "type": {"type": "array", "items": "Tree"}} for name in "abcdefgh"],
        }
    ),
    "JSON": json.dumps({"type": "object", "properties": {name: {"$ref": "#"} for name in "abcdefgh"}}),
    "PROTOBUF": 'syntax = "proto3"; message Tree { '
    + " ".join(f"repeated Tree {name} = {number};" for number, name in enumerate("abcdefgh", 1))
    + " }",
}


@pytest.mark.parametrize("form", RECURSIVE)
def test_a_recursive_schema_is_compared_in_bounded_time(form: str) -> None:
    with bounded():
        assert examine_again(RegistryState(), form, RECURSIVE[form], 0) == ()
