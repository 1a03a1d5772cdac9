"""The user data of the sticky assignors in a member's subscription: its owned partitions and their generation.

It has no version number: the first version (before Kafka 2.3) has no generation, and is shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model import Buffer
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.consumer_protocol import NO_API, TopicPartition
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Int32, Message, message, since


@message(key=NO_API, versions="0-1")
class StickyUserData(Message):
    """The user data of `sticky`."""

    previous_assignment: Sequence[TopicPartition] = ()
    generation: Int32 = since(1, default=-1, ignorable=True)


def encode(part: StickyUserData) -> bytes:
    return b"".join(bytes(piece) for piece in Writer().write(plan_of(StickyUserData, 1), part))  # type: ignore[arg-type]


def decode(data: Buffer) -> tuple[StickyUserData, int]:
    """Return the user data and its version; raise MalformedError if it is invalid."""
    try:
        return Reader(data).read(plan_of(StickyUserData, 1)), 1
    except MalformedError:
        return Reader(data).read(plan_of(StickyUserData, 0)), 0
