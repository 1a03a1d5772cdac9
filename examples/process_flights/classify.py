"""Classify a flight by the delay of its departure."""

from __future__ import annotations

import json

from ottla import ConsumerRecord, Outgoing

CLASSES = {"early": 0, "on time": 15, "late": 60, "very late": 24 * 60}
"""The class names, each with the delay in minutes below which it applies."""
CANCELLED = "cancelled"


def punctuality(delay: int | None) -> str:
    """Return the class of a delay in minutes. None means that the flight was cancelled."""
    if delay is None:
        return CANCELLED
    return next(name for name, limit in CLASSES.items() if delay < limit)


def departure(record: ConsumerRecord) -> Outgoing:
    """Return a record about the flight's departure, for consumers that follow its carrier."""
    assert record.value is not None, "a flight that took place is not deleted"
    flight = json.loads(record.value)
    known = {name: flight[name] for name in ("carrier", "flight", "origin", "dest")}
    known["departed"] = punctuality(flight["dep_delay"])
    return Outgoing(json.dumps(known).encode(), key=flight["carrier"].encode(), timestamp=record.timestamp)
