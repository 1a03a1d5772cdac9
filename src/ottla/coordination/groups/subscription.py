"""The topics in a member's metadata, where it speaks the consumer protocol.

Only the front is read, which all versions share: an int16 version and an array of names.
"""

from __future__ import annotations

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
