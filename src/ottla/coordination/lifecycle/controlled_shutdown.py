"""The condition under which a heartbeat is sent early because another broker is shutting down.

The controllers let a broker stop after a controlled shutdown when every other broker has applied the change of its leaderships, which they report
in their heartbeats. Waiting for the next heartbeat would take up to `broker.heartbeat.interval.ms`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.cluster.node_records import NoOpRecord
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.protocol.schema import Message


def should_report_at_once(registered: Iterable[BrokerRegistration], applied: Iterable[Message] | None) -> bool:
    """Return True if a broker is shutting down, and records were applied that may concern it."""
    leaving = any(each.in_controlled_shutdown and not each.fenced for each in registered)
    return leaving and has_changes(applied)


def has_changes(applied: Iterable[Message] | None) -> bool:
    """Return True if records other than NoOpRecords were applied, which are written twice a second; None is a whole snapshot."""
    return applied is None or any(not isinstance(each, NoOpRecord) for each in applied)
