"""`--where`: filter records by an expression such as `partition == 0 and value.amount > 10`.

 The grammar is a part of Python's: fields of a record, fields of JSON in a value or key, comparisons, `and`, `or`,
`not`, `in`. A missing field is None; a comparison of incompatible types is false.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.cli.options import usage_error

if TYPE_CHECKING:
    from ottla.client.consumer import ConsumerRecord

Part = Callable[["ConsumerRecord"], Any]
HINT = "as in: partition == 0 and value.amount > 10 and 'x' in key"
FIELDS: Mapping[str, Part] = {
    "key": lambda record: as_text(record.key),
    "value": lambda record: as_text(record.value),
    "headers": lambda record: {name: as_text(value) for name, value in record.headers},
    "topic": lambda record: record.topic,
    "partition": lambda record: record.partition,
    "offset": lambda record: record.offset,
    "timestamp": lambda record: record.timestamp,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}


def parse_condition(text: str) -> Callable[[ConsumerRecord], bool]:
    """Return the predicate of an expression; raise a usage error if it is invalid."""
    try:
        part = part_of(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise usage_error(f"invalid value {text!r} for --where: expected an expression, {HINT}") from None
    return lambda record: bool(part(record))


def part_of(node: ast.expr) -> Part:
    """Return a function that evaluates a part of the expression for a record."""
    match node:
        case ast.Constant(value):
            return lambda record: value
        case ast.Name(name):
            return find_field(name)
        case ast.List(items) | ast.Tuple(items):
            parts = [part_of(item) for item in items]
            return lambda record: [part(record) for part in parts]
        case ast.Attribute(whole, name):
            return find_in(part_of(whole), name)
        case ast.Subscript(whole, ast.Constant(str() | int() as name)):
            return find_in(part_of(whole), name)
    return operation_of(node)


def operation_of(node: ast.expr) -> Part:
    match node:
        case ast.UnaryOp(ast.Not(), it):
            denied = part_of(it)
            return lambda record: not denied(record)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return lambda record: -number
        case ast.BoolOp(ast.And(), items):
            parts = [part_of(item) for item in items]
            return lambda record: all(part(record) for part in parts)
        case ast.BoolOp(ast.Or(), items):
            parts = [part_of(item) for item in items]
            return lambda record: any(part(record) for part in parts)
        case ast.Compare(left, [comparison], [right]) if type(comparison) in COMPARISONS:
            return compare_parts(COMPARISONS[type(comparison)], part_of(left), part_of(right))
    raise usage_error(f"--where does not support {ast.unparse(node)!r}: expected comparisons, and, or, not, in, {HINT}")


def find_field(name: str) -> Part:
    if name not in FIELDS:
        raise usage_error(f"--where has no field {name!r}, only {', '.join(FIELDS)}")
    return FIELDS[name]


def find_in(whole: Part, name: str | int) -> Part:
    """Return a field or element of JSON, or None."""

    def found(record: ConsumerRecord) -> Any:
        there = whole(record)
        if isinstance(there, str):
            there = parse_expression(there)
        try:
            return there[name]
        except (KeyError, IndexError, TypeError):
            return None

    return found


def compare_parts(comparison: Callable[[Any, Any], Any], left: Part, right: Part) -> Part:
    def holds(record: ConsumerRecord) -> Any:
        try:
            return comparison(left(record), right(record))
        except TypeError:
            return False

    return holds


def parse_expression(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_text(data: bytes | None) -> str | None:
    """Return bytes as text; invalid UTF-8 becomes �."""
    return None if data is None else data.decode(errors="replace")
