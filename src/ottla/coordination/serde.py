"""How coordinators' records stand in their logs: each key and each value begins with an int16, then its message.

In a key it is the kind of record, in a value the version of the value's schema.
"""

from __future__ import annotations

from ottla.protocol.codec import Writer
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message


def encode(front: int, version: int, part: Message) -> bytes:
    """An int16, then the message in `version`."""
    parts = Writer(front.to_bytes(2, "big")).write(plan_of(type(part), version), part)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))
