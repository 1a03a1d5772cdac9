"""`--where`: filter records by an expression such as `partition == 0 and value.amount > 10`.

 The grammar is a part of Python's: fields of a record, fields of JSON in a value or key, comparisons, `and`, `or`,
`not`, `in`. A missing field is None; a comparison of incompatible types is false.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Clause(NamedTuple):
    """One of the expressions that `and` connects."""

    text: str
    part: Part
    fields: Mapping[str, Part]
    """The fields of JSON in it, which records may lack."""


class Condition:
    """The predicate of an expression. Until a record matches, it counts what each clause matches, for `explain`."""

    def __init__(self, text: str, part: Part, clauses: Sequence[Clause]) -> None:
        self._text = text
        self._part = part
        self._clauses = clauses
        self._matched = [0] * len(clauses)
        self._present: set[str] = set()
        self._read = 0
        self._has_matched = False

    def __call__(self, record: ConsumerRecord) -> bool:
        if self._has_matched:
            return bool(self._part(record))
        self._read += 1
        for number, clause in enumerate(self._clauses):
            self._matched[number] += bool(clause.part(record))
            self._present.update(
                name for name, find in clause.fields.items() if name not in self._present and find(record) is not None
            )
        self._has_matched = bool(self._part(record))
        return self._has_matched

    def explain(self) -> str | None:
        """Return why no record has matched; None if one has, or if there was none."""
        if self._has_matched or not self._read:
            return None
        parts = []
        for clause, count in zip(self._clauses, self._matched, strict=True):
            absent = [name for name in clause.fields if name not in self._present]
            hint = f" (no record has {absent[0]})" if absent else ""
            parts.append(f"{count} match {clause.text}{hint}")
        return f"no record matches --where {self._text!r}: of {self._read} records, {', '.join(parts)}"


def parse_condition(text: str) -> Condition:
    """Return the predicate of an expression; raise a usage error if it is invalid."""
    try:
        whole = ast.parse(text.strip(), mode="eval").body
        part = part_of(whole)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise usage_error(f"invalid value {text!r} for --where: expected an expression, {HINT}") from None
    nodes = whole.values if isinstance(whole, ast.BoolOp) and isinstance(whole.op, ast.And) else [whole]
    return Condition(text, part, [Clause(ast.unparse(node), part_of(node), json_fields(node)) for node in nodes])


def json_fields(node: ast.expr) -> dict[str, Part]:
    """Return the longest paths of fields in an expression, such as `value.amount`."""
    if isinstance(node, ast.Attribute | ast.Subscript):
        return {ast.unparse(node): part_of(node)}
    found: dict[str, Part] = {}
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            found |= json_fields(child)
    return found


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
