"""Infers the columns of JSON objects from samples, by the rules of Spark's JSON reader.

Integers are long, other numbers double, and values of different types are text; fields are sorted by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from ottla.spark.formats.json_text import JsonNumber, NotJson, Pairs, parse_json
from ottla.spark.formats.json_values import INTEGER

NOTHING = pa.null()


def infer_type(rows: Iterable[bytes | None]) -> Any:
    """Return the struct with the fields of all objects; None if no row is an object with a field."""
    found = NOTHING
    for data in rows:
        try:
            node = parse_json((data or b"").decode("utf-8", "replace"))
        except NotJson:
            continue
        if isinstance(node, Pairs):
            found = merge_types(found, type_of(node))
    kind = drop_empty(found)
    return kind if pa.types.is_struct(kind) else None


def type_of(node: Any) -> Any:
    """Return the narrowest type of a node; null if any type fits."""
    match node:
        case None:
            return NOTHING
        case bool():
            return pa.bool_()
        case JsonNumber():
            whole = INTEGER.fullmatch(node) and len(node) < 25 and -(2**63) <= int(node) < 2**63
            return pa.int64() if whole else pa.float64()
        case str():
            return pa.string()
        case Pairs():
            return pa.struct([pa.field(key, type_of(dict(node)[key])) for key in sorted(dict(node))])
    element = NOTHING
    for one in node:
        element = merge_types(element, type_of(one))
    return pa.list_(element)


def merge_types(one: Any, other: Any) -> Any:
    """Return the type that includes both."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        kinds = {field.name: field.type for field in one.fields}
        for field in other.fields:
            kinds[field.name] = merge_types(kinds.get(field.name, NOTHING), field.type)
        return pa.struct([pa.field(name, kinds[name]) for name in sorted(kinds)])
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(merge_types(one.value_type, other.value_type))
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    return pa.string()


def drop_empty(kind: Any) -> Any:
    """Return the type with text in place of null, and without objects that never have a field."""
    if pa.types.is_list(kind):
        return pa.list_(drop_empty(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [pa.field(field.name, drop_empty(field.type)) for field in kind.fields if not is_empty(field.type)]
        return pa.struct(fields) if fields else NOTHING
    return pa.string() if pa.types.is_null(kind) else kind


def is_empty(kind: Any) -> bool:
    """Return True for an object without fields."""
    return pa.types.is_struct(kind) and all(is_empty(field.type) for field in kind.fields)
