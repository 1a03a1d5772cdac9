"""JSON nodes as values of Arrow's types, as Spark's `from_json` has them.

A field that cannot be what it should be is null, and so are an array and a map with such an element; the other fields of
the row are kept. A `Reading` collects what was wrong.
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

from ottla.spark.formats.json_text import Number, Pairs, written
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
    """A node that is not what its column holds; the message says what it is."""


@dataclass
class Reading:
    zone: str
    misfits: list[str] = field(default_factory=list)


Reader = Callable[[Any, Reading], Any]
"""A node to a value for `pyarrow.array`; Misfit if it does not fit."""


def reader_of(kind: Any) -> Reader:
    """How values of an Arrow type are read; null is null whatever the type."""
    read = reader_of_present(kind)

    def nullable(node: Any, reading: Reading) -> Any:
        return None if node is None else read(node, reading)

    return nullable


def reader_of_present(kind: Any) -> Reader:
    for test, make in MAKERS:
        if test(kind):
            return make(kind)
    raise TypeError(f"JSON cannot be read as {kind}")


def boolean(_: Any) -> Reader:
    def read(node: Any, __: Reading) -> bool:
        if not isinstance(node, bool):
            raise misfit(node, "boolean")
        return node

    return read


def integer(kind: Any) -> Reader:
    bound = 1 << (kind.bit_width - 1)

    def read(node: Any, _: Reading) -> int:
        if not isinstance(node, Number) or not INTEGER.fullmatch(node):
            raise misfit(node, "whole number")
        value = int(node) if len(node) < 25 else bound
        if not -bound <= value < bound:
            raise Misfit(f"{node[:40]} is beyond {kind}")
        return value

    return read


def floating(_: Any) -> Reader:
    def read(node: Any, __: Reading) -> float:
        if isinstance(node, str) and node in WORDS:
            return WORDS[node]
        if not isinstance(node, Number):
            raise misfit(node, "number")
        return float(node)

    return read


def decimal(kind: Any) -> Reader:
    step, most = Decimal(1).scaleb(-kind.scale), Decimal(10) ** (kind.precision - kind.scale)
    context = Context(prec=200, rounding=ROUND_HALF_UP)

    def read(node: Any, _: Reading) -> Decimal:
        text = node if isinstance(node, Number) else node.replace(",", "") if isinstance(node, str) else ""
        if not DECIMAL.fullmatch(text):
            raise misfit(node, "number")
        try:
            value = Decimal(text).quantize(step, context=context)
        except InvalidOperation:
            value = most
        if abs(value) >= most:
            raise Misfit(f"{text[:40]} is beyond decimal({kind.precision},{kind.scale})")
        return value

    return read


def text(_: Any) -> Reader:
    def read(node: Any, __: Reading) -> str:
        return str(node) if isinstance(node, str) else written(node)

    return read


def binary(_: Any) -> Reader:
    def read(node: Any, __: Reading) -> bytes:
        try:
            return base64.b64decode(string(node, "text in base64").encode(), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            raise misfit(node, "text in base64") from None

    return read


def date(_: Any) -> Reader:
    def read(node: Any, __: Reading) -> int:
        text = string(node, "date")
        try:
            if DAYS.fullmatch(text):  # a number in quotes, as Spark 1.5 wrote dates
                return int(text)
            return days_of(text)
        except (ValueError, OverflowError):
            raise misfit(node, "date") from None

    return read


def timestamp(kind: Any) -> Reader:
    def local(node: Any, _: Reading) -> int:
        try:
            return local_micros_of(string(node, "time without a zone"))
        except (ValueError, OverflowError):
            raise misfit(node, "time without a zone") from None

    def moment(node: Any, reading: Reading) -> int:
        try:
            if isinstance(node, Number) and INTEGER.fullmatch(node):
                micros = int(node) * SECOND
            else:
                micros = micros_of(string(node, "time"), reading.zone)
        except (ValueError, OverflowError):
            raise misfit(node, "time") from None
        if not -LONG <= micros < LONG:
            raise misfit(node, "time of the years that 64 bits of microseconds have")
        return micros

    return local if kind.tz is None else moment


def listed(kind: Any) -> Reader:
    read_element = reader_of(kind.value_type)

    def read(node: Any, reading: Reading) -> list[Any]:
        if not isinstance(node, list) or isinstance(node, Pairs):
            raise misfit(node, "array")
        return [read_element(element, reading) for element in node]

    return read


def mapped(kind: Any) -> Reader:
    read_item = reader_of(kind.item_type)

    def read(node: Any, reading: Reading) -> list[tuple[str, Any]]:
        if not isinstance(node, Pairs):
            raise misfit(node, "object")
        return [(key, read_item(item, reading)) for key, item in node]

    return read


def struct(kind: Any) -> Reader:
    fields = {one.name: reader_of(one.type) for one in (kind.field(at) for at in range(kind.num_fields))}

    def read(node: Any, reading: Reading) -> dict[str, Any]:
        if not isinstance(node, Pairs):
            raise misfit(node, "object")
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
"""Types and how their readers are made."""


def string(node: Any, wanted: str) -> str:
    if not isinstance(node, str) or isinstance(node, Number):
        raise misfit(node, wanted)
    return node


def misfit(node: Any, wanted: str) -> Misfit:
    """The sentence about a node that is something else."""
    shown = written(node)
    return Misfit(f"{shown if len(shown) <= 40 else shown[:37] + '...'} is no {wanted}")
