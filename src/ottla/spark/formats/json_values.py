"""Converts JSON nodes to values of Arrow's types, as Spark's `from_json` does.

A field that does not fit its type is null, and so is an array or map with such an element; the other fields of the row
are kept. A `ReadContext` collects the errors.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ottla.spark.formats.json_text import JsonNumber, Pairs, format_node
from ottla.spark.formats.moments import SECOND, days_of, local_micros_of, micros_of

INTEGER = re.compile(r"-?[0-9]+")
DAYS = re.compile(r"[+-]?(?:[0-9]{1,3}|[0-9]{8,9})")
DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
WORDS = {
    "NaN": float("nan"),
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), float("inf")),
    **dict.fromkeys(("-Infinity", "-INF"), float("-inf")),
}
LONG = 2**63


class Misfit(ValueError):
    """A node does not fit its column; the message has the node."""


@dataclass
class ReadContext:
    zone: str
    misfits: list[str] = field(default_factory=list)


Reader = Callable[[Any, ReadContext], Any]
"""Converts a node to a value for `pyarrow.array`; Misfit if it does not fit."""


def reader_of(kind: Any) -> Reader:
    """Return the reader of values of an Arrow type; null is null in any type."""
    read = reader_of_present(kind)

    def nullable(node: Any, reading: ReadContext) -> Any:
        return None if node is None else read(node, reading)

    return nullable


def reader_of_present(kind: Any) -> Reader:
    for test, make in MAKERS:
        if test(kind):
            return make(kind)
    raise TypeError(f"JSON cannot be read as {kind}")


def boolean(_: Any) -> Reader:
    def read(node: Any, __: ReadContext) -> bool:
        if not isinstance(node, bool):
            raise misfit(node, "a boolean")
        return node

    return read


def integer(kind: Any) -> Reader:
    bound = 1 << (kind.bit_width - 1)

    def read(node: Any, _: ReadContext) -> int:
        if not isinstance(node, JsonNumber) or not INTEGER.fullmatch(node):
            raise misfit(node, "an integer")
        value = int(node) if len(node) < 25 else bound
        if not -bound <= value < bound:
            raise Misfit(f"{node[:40]} is beyond {kind}")
        return value

    return read


def floating(_: Any) -> Reader:
    def read(node: Any, __: ReadContext) -> float:
        if isinstance(node, str) and node in WORDS:
            return WORDS[node]
        if not isinstance(node, JsonNumber):
            raise misfit(node, "a number")
        return float(node)

    return read


def decimal(kind: Any) -> Reader:
    step, most = Decimal(1).scaleb(-kind.scale), Decimal(10) ** (kind.precision - kind.scale)
    context = Context(prec=200, rounding=ROUND_HALF_UP)

    def read(node: Any, _: ReadContext) -> Decimal:
        text = node if isinstance(node, JsonNumber) else node.replace(",", "") if isinstance(node, str) else ""
        if not DECIMAL.fullmatch(text):
            raise misfit(node, "a number")
        try:
            value = Decimal(text).quantize(step, context=context)
        except InvalidOperation:
            value = most
        if abs(value) >= most:
            raise Misfit(f"{text[:40]} is beyond decimal({kind.precision},{kind.scale})")
        return value

    return read


def text(_: Any) -> Reader:
    def read(node: Any, __: ReadContext) -> str:
        return str(node) if isinstance(node, str) else format_node(node)

    return read


def binary(_: Any) -> Reader:
    def read(node: Any, __: ReadContext) -> bytes:
        try:
            return base64.b64decode(string(node, "text in base64").encode(), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise misfit(node, "text in base64") from None

    return read


def date(_: Any) -> Reader:
    def read(node: Any, __: ReadContext) -> int:
        text = string(node, "a date")
        try:
            if DAYS.fullmatch(text):  # a number in quotes, as Spark 1.5 wrote dates
                return int(text)
            return days_of(text)
        except (ValueError, OverflowError):
            raise misfit(node, "a date") from None

    return read


def timestamp(kind: Any) -> Reader:
    def local(node: Any, _: ReadContext) -> int:
        try:
            return local_micros_of(string(node, "a time without a zone"))
        except (ValueError, OverflowError):
            raise misfit(node, "a time without a zone") from None

    def moment(node: Any, reading: ReadContext) -> int:
        try:
            if isinstance(node, JsonNumber) and INTEGER.fullmatch(node):
                micros = int(node) * SECOND
            else:
                micros = micros_of(string(node, "a time"), reading.zone)
        except (ValueError, OverflowError):
            raise misfit(node, "a time") from None
        if not -LONG <= micros < LONG:
            raise misfit(node, "a time within 64 bits of microseconds")
        return micros

    return local if kind.tz is None else moment


def listed(kind: Any) -> Reader:
    read_element = reader_of(kind.value_type)

    def read(node: Any, reading: ReadContext) -> list[Any]:
        if not isinstance(node, list) or isinstance(node, Pairs):
            raise misfit(node, "an array")
        return [read_element(element, reading) for element in node]

    return read


def mapped(kind: Any) -> Reader:
    read_item = reader_of(kind.item_type)

    def read(node: Any, reading: ReadContext) -> list[tuple[str, Any]]:
        if not isinstance(node, Pairs):
            raise misfit(node, "an object")
        return [(key, read_item(item, reading)) for key, item in node]

    return read


def struct(kind: Any) -> Reader:
    fields = {one.name: reader_of(one.type) for one in (kind.field(at) for at in range(kind.num_fields))}

    def read(node: Any, reading: ReadContext) -> dict[str, Any]:
        if not isinstance(node, Pairs):
            raise misfit(node, "an object")
        row: dict[str, Any] = {}
        for key, inner in node:
            if key in fields:
                try:
                    row[key] = fields[key](inner, reading)
                except Misfit as error:
                    reading.misfits.append(f"{key}: {error}")
        return row

    return read


MAKERS: list[tuple[Callable[[Any], bool], Callable[[Any], Reader]]] = [
    (pa.types.is_boolean, boolean),
    (pa.types.is_integer, integer),
    (pa.types.is_floating, floating),
    (pa.types.is_decimal, decimal),
    (pa.types.is_string, text),
    (pa.types.is_binary, binary),
    (pa.types.is_date32, date),
    (pa.types.is_timestamp, timestamp),
    (lambda kind: pa.types.is_map(kind) and pa.types.is_string(kind.key_type), mapped),
    (pa.types.is_list, listed),
    (pa.types.is_struct, struct),
]
"""Types with the functions that make their readers."""


def string(node: Any, wanted: str) -> str:
    if not isinstance(node, str) or isinstance(node, JsonNumber):
        raise misfit(node, wanted)
    return node


def misfit(node: Any, wanted: str) -> Misfit:
    """Return the error for a node of another type."""
    value = format_node(node)
    return Misfit(f"{value if len(value) <= 40 else value[:37] + '...'} is not {wanted}")
