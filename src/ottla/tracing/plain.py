"""Convert snapshots and events to JSON values. Pure.

A field keeps its name, a partition and a node become text, an infinite duration becomes None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ottla.model import Node, TopicPartition
from ottla.trace import Moment

JSON_TYPES = frozenset({int, str, bool, type(None)})
"""The exact types of most facts: a busy client has tens of thousands per second."""


def convert_value(value: Any) -> Any:
    """Return `value` as a JSON value; other types become text."""
    kind = type(value)
    if kind in JSON_TYPES:
        return value
    way = CONVERSIONS.get(kind)
    if way is None:
        way = CONVERSIONS[kind] = conversion_of(kind)
    return way(value)


def conversion_of(kind: type[Any]) -> Callable[[Any], Any]:
    """Return the conversion of a type; computed once per type."""
    if issubclass(kind, TopicPartition | Node):
        return str
    if issubclass(kind, Mapping):
        return of_mapping
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return partial(of_fields, kind._fields)
    if issubclass(kind, tuple | list | set | frozenset):
        return of_many
    if issubclass(kind, float):
        return of_number
    if issubclass(kind, int):
        return int
    return str.__str__ if issubclass(kind, str) else str


def of_number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def of_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): convert_value(each) for key, each in value.items()}


def of_fields(names: tuple[str, ...], value: tuple[Any, ...]) -> dict[str, Any]:
    made = dict(zip(names, value, strict=True))
    for name, each in made.items():
        if type(each) not in JSON_TYPES:
            made[name] = convert_value(each)
    return made


def of_many(value: Any) -> list[Any]:
    return [convert_value(each) for each in value]


CONVERSIONS: dict[type[Any], Callable[[Any], Any]] = {TopicPartition: str, Node: str, float: of_number}
"""By exact type; the number of types is small, since events and facts have fixed types."""


def plain_moment(moment: Moment) -> dict[str, Any]:
    """Return an event with its kind, its text, and its fields."""
    event = moment.event
    return {"at_ms": moment.at_ms, "event": type(event).__name__, "text": str(event), "facts": convert_value(event)}
