"""Snapshots and events as JSON has them.

Pure. A field keeps its name, a partition and a node become their texts, a span without end None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ottla.model import Node, TopicPartition
from ottla.trace import Moment


def plain(value: Any) -> Any:
    """`value` of what JSON has; what it does not have becomes its text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case TopicPartition() | Node():
            return str(value)
        case Mapping():
            return {str(key): plain(each) for key, each in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            return {name: plain(each) for name, each in value._asdict().items()}
        case tuple() | list() | set() | frozenset():
            return [plain(each) for each in value]
    return str(value)


def plain_moment(moment: Moment) -> dict[str, Any]:
    """An event with its kind, its line for people, and its fields."""
    event = moment.event
    return {"at_ms": moment.at_ms, "event": type(event).__name__, "text": str(event), "facts": plain(event)}
