"""Snapshots and events as JSON has them.

Pure. A field keeps its name, a partition and a node become their texts, a span without end None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    if kind is float:
        return value if math.isfinite(value) else None
    match value:
        case TopicPartition() | Node():
            return str(value)
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): plain(each) for key, each in value.items()}
        case tuple() if hasattr(value, "_fields"):
            return {
                name: each if type(each) in AS_THEY_ARE else plain(each)
                for name, each in zip(value._fields, value, strict=True)
            }
        case tuple() | list() | set() | frozenset():
            return [plain(each) for each in value]
    return str(value)


def plain_moment(moment: Moment) -> dict[str, Any]:
    """An event with its kind, its line for people, and its fields."""
    event = moment.event
    return {"at_ms": moment.at_ms, "event": type(event).__name__, "text": str(event), "facts": plain(event)}
