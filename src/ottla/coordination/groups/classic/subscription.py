"""What a member says of topics and partitions, where it speaks the consumer protocol.

Of topics only the front is read, which all versions share: an int16 version and an array of names.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model import TopicPartition
from ottla.protocol import errors
from ottla.protocol.messages import consumer_protocol as wire

VERSION_BYTES = 2


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The names; None where they cannot be read, as nothing hinders a client from sending anything."""
    if len(metadata) < VERSION_BYTES + 4:
        return None
    count = int.from_bytes(metadata[2:6], "big", signed=True)
    position = 6
    topics = []
    for _ in range(count):
        start = position + 2
        size = int.from_bytes(metadata[position:start], "big", signed=True)
        position = start + size
        if size < 0 or position > len(metadata):
            return None
        topics.append(metadata[start:position])
    try:
        return frozenset(topic.decode() for topic in topics)
    except UnicodeDecodeError:
        return None


def owned_partitions(metadata: bytes) -> frozenset[TopicPartition]:
    """What a member had when it joined; nothing where that cannot be read."""
    try:
        return partitions_in(wire.decode(wire.ConsumerProtocolSubscription, metadata).owned_partitions)
    except errors.MalformedError:
        return frozenset()


def assigned_partitions(assignment: bytes) -> frozenset[TopicPartition]:
    """What a member was given; nothing where that cannot be read."""
    try:
        return partitions_in(wire.decode(wire.ConsumerProtocolAssignment, assignment).assigned_partitions)
    except errors.MalformedError:
        return frozenset()


def partitions_in(topics: Iterable[wire.TopicPartition]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(each.topic, partition) for each in topics for partition in each.partitions)
