"""The basic types of Ottla. Values only: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from msgspec import Struct

Buffer = bytes | bytearray | memoryview
Header = tuple[str, bytes | None]
"""A record header: its key, and its value or None."""

INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
FOREVER = float("inf")
"""An infinite timeout in seconds; a time that is never reached."""
EARLIEST = -2
"""ListOffsets timestamp that requests the first offset."""
LATEST = -1
"""ListOffsets timestamp that requests the end offset."""
MAX_TIMESTAMP = -3
"""ListOffsets timestamp that requests the record with the largest timestamp (KIP-734)."""


class TimestampType(IntEnum):
    """The origin of a record's timestamp: the producer or the broker."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Node(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class PartitionInfo(NamedTuple):
    """The leader and the replicas of a partition."""

    topic: str
    partition: int
    leader: int
    """Node id of the leader, -1 without one."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]


class RecordMetadata(NamedTuple):
    """The position of a produced record."""

    topic: str
    partition: int
    offset: int
    """-1 if the producer did not wait for a response (`acks=0`)."""
    timestamp: int
    """Milliseconds since the epoch."""
    serialized_key_size: int
    """Bytes, -1 without a key."""
    serialized_value_size: int
    """Bytes, -1 without a value."""


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next one to read."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class FileSlice(Struct, frozen=True):
    """Bytes that are sent from a file to a socket without being read by Python.

    The reference to the file object keeps its descriptor open until the last slice is sent. A small slice that was just
    written contains its bytes, and is not read again.
    """

    file: HasFileno
    position: int
    size: int
    written: bytes = b""
    """All of its bytes, or none."""

    def __len__(self) -> int:
        return self.size


Part = Buffer | FileSlice
"""A part of a frame to send."""


def size_of(parts: Sequence[Part]) -> int:
    """Return the size of `parts` in bytes on the wire."""
    return sum(map(len, parts))
