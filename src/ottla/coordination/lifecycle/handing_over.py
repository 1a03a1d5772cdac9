"""Whether another broker waits to hear what this one has applied.

The controllers let a broker go that hands over when all the others know who leads in its place, which they say in their heartbeats. Said
with the next one it takes up to `broker.heartbeat.interval.ms`; so it is said at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.cluster.node_records import NoOpRecord
from ottla.coordination.cluster.registration import Registration
from ottla.protocol.schema import Message


def is_awaited(registered: Iterable[Registration], applied: Iterable[Message] | None) -> bool:
    """Whether somebody is leaving and something was applied that may be about it."""
    leaving = any(each.in_controlled_shutdown and not each.fenced for each in registered)
    return leaving and is_news(applied)


def is_news(applied: Iterable[Message] | None) -> bool:
    """Whether what was applied says anything: a record that says nothing comes twice a second. None is a whole snapshot."""
    return applied is None or any(not isinstance(each, NoOpRecord) for each in applied)
