"""The embedded protocol of consumer groups: subscriptions and assignments (Kafka's `ConsumerProtocol`).

These are opaque bytes in JoinGroup and SyncGroup. Each starts with an int16, its version. A new version only adds
fields at the end, so a later one is decoded as the latest known version, and the rest is ignored.
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
"""The `protocol_type` of groups with this embedded protocol."""
NO_API = -1
M = TypeVar("M", bound=Message)


@struct
class TopicPartition:
    topic: String = ""
    partitions: Sequence[Int32] = ()


@message(key=NO_API, versions="0-3")
class ConsumerProtocolSubscription(Message):
    """The subscribed topics and the owned partitions of a member."""

    topics: Sequence[String] = ()
    user_data: Bytes | None = None
    """Data of the assignor."""
    owned_partitions: Sequence[TopicPartition] = since(1, default=(), ignorable=True)
    generation_id: Int32 = since(2, default=-1, ignorable=True)
    """The generation of the owned partitions; -1 if unknown."""
    rack_id: String | None = since(3, default=None, ignorable=True)


@message(key=NO_API, versions="0-3")
class ConsumerProtocolAssignment(Message):
    """The assignment of a member by the leader."""

    assigned_partitions: Sequence[TopicPartition] = ()
    user_data: Bytes | None = None


def encode(part: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int | None = None) -> bytes:
    """Encode a version number (by default the newest) and the message; fields that it lacks are omitted."""
    version = part.VERSIONS.last if version is None else version
    parts = Writer(version.to_bytes(2, "big")).write(plan_of(type(part), version), part)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def decode(cls: type[M], data: Buffer) -> M:
    """Decode a message with a preceding version number; raise MalformedError if it is invalid."""
    try:
        version = int.from_bytes(data[:2], "big", signed=True)
        if len(data) < 2 or version < 0:
            raise MalformedError(f"it begins with {bytes(data[:2])!r}, which is no version")
        found: M = Reader(data, 2).read(plan_of(cls, min(version, cls.VERSIONS.last)))
    except MalformedError as error:
        raise MalformedError(f"{cls.__name__} cannot be read: {error}") from None
    return found
