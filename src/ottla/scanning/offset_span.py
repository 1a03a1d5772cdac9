"""The offsets that a filter needs, computed from the filter as Polars writes it to JSON.

Pure. The form of that JSON may change with Polars' versions. So an expression that is not understood limits nothing, and
the filter is always applied to the rows that were read. Upper limits of timestamps limit nothing either: producers set
timestamps, so a later record may have an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CONSTANT = frozenset({"topic", "partition"})
"""Columns with one value in all rows of a partition."""
MIRRORED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq", "Eq": "Eq"}
"""The comparison with its sides exchanged."""
CONJUNCTIONS = frozenset({"And", "LogicalAnd"})
DISJUNCTIONS = frozenset({"Or", "LogicalOr"})


class OffsetSpan(NamedTuple):
    """The offsets from `start` to `end` (exclusive), from the first record with timestamp `since_ms` or a later one on."""

    start: int = 0
    end: int | None = None
    since_ms: int | None = None

    def intersect(self, other: OffsetSpan) -> OffsetSpan:
        """Return the offsets in both spans."""
        ends = [end for end in (self.end, other.end) if end is not None]
        times = [time for time in (self.since_ms, other.since_ms) if time is not None]
        return OffsetSpan(max(self.start, other.start), min(ends, default=None), max(times, default=None))

    def enclose(self, other: OffsetSpan) -> OffsetSpan:
        """Return the smallest span that contains both spans."""
        end = None if self.end is None or other.end is None else max(self.end, other.end)
        since = None if self.since_ms is None or other.since_ms is None else min(self.since_ms, other.since_ms)
        return OffsetSpan(min(self.start, other.start), end, since)


EVERYTHING = OffsetSpan()
Evaluate = Callable[[Any], Any]
"""Returns the value of an expression of constants, topic and partition; None if it has none."""


def find_span(node: Any, evaluate: Evaluate) -> OffsetSpan | None:
    """Return the offsets of one partition that a filter can need; None if it needs no record of the partition."""
    kind, content = next(iter(node.items())) if isinstance(node, dict) and len(node) == 1 else ("", None)
    columns = set(iter_columns(node))
    if columns <= CONSTANT:
        return EVERYTHING if evaluate(node) in (True, None) else None
    if kind == "BinaryExpr" and isinstance(content, dict):
        operator, left, right = content.get("op"), content.get("left"), content.get("right")
        if operator in CONJUNCTIONS:
            return intersect_spans(find_span(left, evaluate), find_span(right, evaluate))
        if operator in DISJUNCTIONS:
            return enclose_spans(find_span(left, evaluate), find_span(right, evaluate))
        return comparison_span(operator, left, right, evaluate)
    if kind == "Function" and isinstance(content, dict):
        return between_span(content, evaluate)
    return EVERYTHING


def intersect_spans(one: OffsetSpan | None, other: OffsetSpan | None) -> OffsetSpan | None:
    return None if one is None or other is None else one.intersect(other)


def enclose_spans(one: OffsetSpan | None, other: OffsetSpan | None) -> OffsetSpan | None:
    if one is None or other is None:
        return one or other
    return one.enclose(other)


def comparison_span(operator: Any, left: Any, right: Any, evaluate: Evaluate) -> OffsetSpan:
    """Return the span of a comparison of offset or timestamp with a constant."""
    if operator not in MIRRORED:
        return EVERYTHING
    if column_name(left) is None:
        left, right, operator = right, left, MIRRORED[operator]
    name = column_name(left)
    if name is None or set(iter_columns(right)) - CONSTANT:
        return EVERYTHING
    return limit_column(name, operator, evaluate(right))


def between_span(content: dict[str, Any], evaluate: Evaluate) -> OffsetSpan:
    """Return the span of `is_between` on offset or timestamp."""
    function, inputs = content.get("function"), content.get("input")
    boolean = function.get("Boolean") if isinstance(function, dict) else None
    between = boolean.get("IsBetween") if isinstance(boolean, dict) else None
    if not isinstance(between, dict) or not isinstance(inputs, list) or len(inputs) != 3:
        return EVERYTHING
    closed = between.get("closed")
    lower = "GtEq" if closed in ("Both", "Left") else "Gt"
    upper = "LtEq" if closed in ("Both", "Right") else "Lt"
    if closed not in ("Both", "Left", "Right", "None"):
        return EVERYTHING
    column, low, high = inputs
    return comparison_span(lower, column, low, evaluate).intersect(comparison_span(upper, column, high, evaluate))


def limit_column(name: str, operator: str, value: Any) -> OffsetSpan:
    if name == "offset" and isinstance(value, int):
        start = {"Eq": value, "GtEq": value, "Gt": value + 1}.get(operator, 0)
        end = {"Eq": value + 1, "LtEq": value + 1, "Lt": value}.get(operator)
        return OffsetSpan(max(start, 0), None if end is None else max(end, 0))
    if name == "timestamp" and isinstance(value, datetime) and value.tzinfo and operator in ("Eq", "GtEq", "Gt"):
        whole_ms, rest = divmod(value - EPOCH, timedelta(milliseconds=1))
        return OffsetSpan(since_ms=max(whole_ms + (operator == "Gt" or rest > timedelta(0)), 0))
    return EVERYTHING


def column_name(node: Any) -> str | None:
    """Return the name of a plain column; None for other expressions."""
    name = node.get("Column") if isinstance(node, dict) and len(node) == 1 else None
    return name if isinstance(name, str) else None


def iter_columns(node: Any) -> Iterable[str]:
    """Yield the names of the columns in an expression."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "Column" and isinstance(value, str):
                yield value
            else:
                yield from iter_columns(value)
    elif isinstance(node, list):
        for value in node:
            if isinstance(value, dict | list):
                yield from iter_columns(value)
