"""Snapshots and events as JSON has them.

Pure. A field keeps its name, a partition and a node become their texts, a span without end None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ottla.model import Node, TopicPartition
from ottla.trace import Moment

AS_THEY_ARE = frozenset({int, str, bool, type(None)})
"""Exact types of most facts: there are tens of thousands a second of a busy client."""


def plain(value: Any) -> Any:
    """`value` of what JSON has; what it does not have becomes its text."""
    kind = type(value)
    if kind in AS_THEY_ARE:
        return value
    way = WAYS.get(kind)
    if way is None:
        way = WAYS[kind] = way_of(kind)
    return way(value)


def way_of(kind: type[Any]) -> Callable[[Any], Any]:
    """How values of that type are made plain; found once for each."""
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
    return {str(key): plain(each) for key, each in value.items()}


def of_fields(names: tuple[str, ...], value: tuple[Any, ...]) -> dict[str, Any]:
    made = dict(zip(names, value, strict=True))
    for name, each in made.items():
        if type(each) not in AS_THEY_ARE:
            made[name] = plain(each)
    return made


def of_many(value: Any) -> list[Any]:
    return [plain(each) for each in value]


WAYS: dict[type[Any], Callable[[Any], Any]] = {TopicPartition: str, Node: str, float: of_number}
"""By exact type: there are as many as there are kinds of events and of what they tell."""


def plain_moment(moment: Moment) -> dict[str, Any]:
    """An event with its kind, its line for people, and its fields."""
    event = moment.event
    return {"at_ms": moment.at_ms, "event": type(event).__name__, "text": str(event), "facts": plain(event)}
