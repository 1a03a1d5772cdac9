"""What members tell by the user data of their subscriptions where the sticky assignors are used.

It bears no version: the first had no generation (before Kafka 2.3), and so is shorter.
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
    """Of `sticky`."""

    previous_assignment: Sequence[TopicPartition] = ()
    generation: Int32 = since(1, default=-1, ignorable=True)


def encode(part: StickyUserData) -> bytes:
    return b"".join(bytes(piece) for piece in Writer().write(plan_of(StickyUserData, 1), part))  # type: ignore[arg-type]


def decode(data: Buffer) -> tuple[StickyUserData, int]:
    """What is told, and in which version; MalformedError where it is neither."""
    try:
        return Reader(data).read(plan_of(StickyUserData, 1)), 1
    except MalformedError:
        return Reader(data).read(plan_of(StickyUserData, 0)), 0
