"""Which copies of a topic are complete, as a client is told."""

from __future__ import annotations

from ottla import Admin
from ottla.errors import UnknownTopicOrPartitionError


def in_sync(admin: Admin, topic: str) -> set[int]:
    """Who has all of it; nobody where the node that is asked has not heard of the topic yet, as just after another one has made it."""
    try:
        partitions = admin.describe_topics([topic])[topic].partitions
    except UnknownTopicOrPartitionError:
        return set()
    return set.intersection(*(set(each.in_sync_replicas) for each in partitions))
