"""What members of a consumer group tell each other through the coordinator: subscriptions and assignments.

These travel as opaque bytes in JoinGroup and SyncGroup. Each begins with an int16, its version. A version only ever
adds fields at the end: so a newer one is read as the newest that is known here, and what follows is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ottla.model import Buffer
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Bytes, Int32, Message, String, message, since, struct

PROTOCOL_TYPE = "consumer"
"""The `protocol_type` of groups whose members speak this."""
NO_API = -1
M = TypeVar("M", bound=Message)


@struct
class TopicPartition:
    topic: String = ""
    partitions: Sequence[Int32] = ()


@message(key=NO_API, versions="0-3")
class ConsumerProtocolSubscription(Message):
    """What a member wants, and what it has."""

    topics: Sequence[String] = ()
    user_data: Bytes | None = None
    """The assignor's own."""
    owned_partitions: Sequence[TopicPartition] = since(1, default=(), ignorable=True)
    generation_id: Int32 = since(2, default=-1, ignorable=True)
    """Of when it was given them; -1 when it does not say."""
    rack_id: String | None = since(3, default=None, ignorable=True)


@message(key=NO_API, versions="0-3")
class ConsumerProtocolAssignment(Message):
    """What the leader gives a member."""

    assigned_partitions: Sequence[TopicPartition] = ()
    user_data: Bytes | None = None


def encode(part: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int | None = None) -> bytes:
    """A version, the newest unless told, and the message in it; what it has no field for is left out."""
    version = part.VERSIONS.last if version is None else version
    parts = Writer(version.to_bytes(2, "big")).write(plan_of(type(part), version), part)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def decode(cls: type[M], data: Buffer) -> M:
    """A message with its version in front; MalformedError where it cannot be read."""
    try:
        version = int.from_bytes(data[:2], "big", signed=True)
        if len(data) < 2 or version < 0:
            raise MalformedError(f"it begins with {bytes(data[:2])!r}, which is no version")
        found: M = Reader(data, 2).read(plan_of(cls, min(version, cls.VERSIONS.last)))
    except MalformedError as error:
        raise MalformedError(f"{cls.__name__} cannot be read: {error}") from None
    return found
