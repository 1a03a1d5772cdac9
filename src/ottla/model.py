"""The nouns every part of Ottla shares.

Values only: nothing here does I/O or knows a clock.
"""

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
"""Seconds of a wait that only something else will end; a moment that does not come."""
EARLIEST = -2
"""ListOffsets timestamp that asks for the first offset."""
LATEST = -1
"""ListOffsets timestamp that asks for the end offset."""
MAX_TIMESTAMP = -3
"""ListOffsets timestamp that asks for the record with the largest timestamp (KIP-734)."""


class TimestampType(IntEnum):
    """Who set a record's timestamp."""

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
    """Who leads and who copies a partition."""

    topic: str
    partition: int
    leader: int
    """Node id of the leader, -1 when there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]


class RecordMetadata(NamedTuple):
    """Where a produced record is."""

    topic: str
    partition: int
    offset: int
    """-1 when the producer did not wait for an answer (`acks=0`)."""
    timestamp: int
    """Milliseconds since the epoch."""
    serialized_key_size: int
    """Bytes, -1 without a key."""
    serialized_value_size: int
    """Bytes, -1 without a value."""


class OffsetAndTimestamp(NamedTuple):
    """An answer to "which record is the first at or after this time"."""

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
    """Bytes that travel from a file to a socket without passing through Python.

    Holding the file object keeps its descriptor open until the last slice is sent. A small piece that was written a
    moment ago brings its bytes along, and is not read again.
    """

    file: HasFileno
    position: int
    size: int
    written: bytes = b""
    """All of its bytes, or none."""

    def __len__(self) -> int:
        return self.size


Part = Buffer | FileSlice
"""A piece of a frame on its way out."""


def size_of(parts: Sequence[Part]) -> int:
    """Bytes that `parts` will take on the wire."""
    return sum(map(len, parts))
