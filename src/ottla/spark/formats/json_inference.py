"""The columns that JSON objects have, found by looking at some of them; the rules are those of Spark's JSON reader.

Whole numbers are long, other numbers double, what is sometimes this and sometimes that is text; fields come in the
order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ottla.spark.formats.json_text import NotJson, Number, Pairs, parse_json
from ottla.spark.formats.json_values import INTEGER

NOTHING = pa.null()


def inferred(rows: Iterable[bytes | None]) -> Any:
    """The struct that holds all the objects; None if no row is an object with a field."""
    found = NOTHING
    for data in rows:
        try:
            node = parse_json((data or b"").decode("utf-8", "replace"))
        except NotJson:
            continue
        if isinstance(node, Pairs):
            found = merged(found, type_of(node))
    kind = without_nothing(found)
    return kind if pa.types.is_struct(kind) else None


def type_of(node: Any) -> Any:
    """The narrowest type of a node; null where any would do."""
    match node:
        case None:
            return NOTHING
        case bool():
            return pa.bool_()
        case Number():
            whole = INTEGER.fullmatch(node) and len(node) < 25 and -(2**63) <= int(node) < 2**63
            return pa.int64() if whole else pa.float64()
        case str():
            return pa.string()
        case Pairs():
            return pa.struct([pa.field(key, type_of(dict(node)[key])) for key in sorted(dict(node))])
    element = NOTHING
    for one in node:
        element = merged(element, type_of(one))
    return pa.list_(element)


def merged(one: Any, other: Any) -> Any:
    """The type that holds both."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        kinds = {field.name: field.type for field in one.fields}
        for field in other.fields:
            kinds[field.name] = merged(kinds.get(field.name, NOTHING), field.type)
        return pa.struct([pa.field(name, kinds[name]) for name in sorted(kinds)])
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(merged(one.value_type, other.value_type))
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    return pa.string()


def without_nothing(kind: Any) -> Any:
    """The type with text for what was always null, and without objects that never had a field."""
    if pa.types.is_list(kind):
        return pa.list_(without_nothing(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [
            pa.field(field.name, without_nothing(field.type)) for field in kind.fields if not is_empty(field.type)
        ]
        return pa.struct(fields) if fields else NOTHING
    return pa.string() if pa.types.is_null(kind) else kind


def is_empty(kind: Any) -> bool:
    """Whether it is an object of nothing."""
    return pa.types.is_struct(kind) and all(is_empty(field.type) for field in kind.fields)
