"""What is made of a flight: how punctually it left."""

from __future__ import annotations

import json

from ottla import ConsumerRecord, Outgoing

CLASSES = {"early": 0, "on time": 15, "late": 60, "very late": 24 * 60}
"""Name → the delay in minutes below which it is so."""
CANCELLED = "cancelled"


def punctuality(delay: int | None) -> str:
    """The class of a delay in minutes; without one the flight never left."""
    if delay is None:
        return CANCELLED
    return next(name for name, limit in CLASSES.items() if delay < limit)


def departure(record: ConsumerRecord) -> Outgoing:
    """What is known about a flight's departure, for whoever follows its carrier."""
    assert record.value is not None, "a flight that took place is not deleted"
    flight = json.loads(record.value)
    known = {name: flight[name] for name in ("carrier", "flight", "origin", "dest")}
    known["departed"] = punctuality(flight["dep_delay"])
    return Outgoing(json.dumps(known).encode(), key=flight["carrier"].encode(), timestamp=record.timestamp)
