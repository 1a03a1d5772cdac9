"""The ISR of a topic as described to a client."""

from __future__ import annotations

from ottla import Admin
from ottla.errors import UnknownTopicOrPartitionError


def in_sync(admin: Admin, topic: str) -> set[int]:
    """Return the ISR; empty while the queried node does not know a new topic yet."""
    try:
        partitions = admin.describe_topics([topic])[topic].partitions
    except UnknownTopicOrPartitionError:
        return set()
    return set.intersection(*(set(each.in_sync_replicas) for each in partitions))
