"""Records for rows that could not be written, with Kafka Connect's headers for the cause (KIP-298).

Pure. Key, value and headers are those of the row; a row that is too large is cut, and the message says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.producer.producer_batch import upper_bound_bytes
from ottla.spark.sink.refusals import RowError

PREFIX = "__connect.errors."
STAGE = "TASK_PUT"
ROOM = 100
"""Bytes reserved for the text about the cut."""


class DeadLetterRecord(NamedTuple):
    """A record of the dead-letter topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def build_dead_letter(
    row: dict[str, Any], *, topic: str | None, reason: str, task: int, number: int, query: str, limit: int
) -> DeadLetterRecord:
    """Return the record for row `number` of a task, of at most `limit` bytes."""
    errors = {
        "topic": topic or "",
        "partition": str(task),
        "offset": str(number),
        "connector.name": query,
        "task.id": str(task),
        "stage": STAGE,
        "class.name": "ottla.spark.sink",
        "exception.class.name": f"{RowError.__module__}.{RowError.__qualname__}",
        "exception.message": reason,
        "exception.stacktrace": "",
    }
    key, value = as_bytes(row.get("key")), as_bytes(row.get("value"))
    own = [(h["key"], h["value"]) for h in row.get("headers") or () if h is not None and h["key"] is not None]
    if size_of(None, None, [*own, *errors_of(errors)]) > limit - ROOM:
        own = []
    room = max(0, limit - ROOM - size_of(None, None, [*own, *errors_of(errors)]))
    whole = len(key or b"") + len(value or b"")
    if whole > room:
        errors["exception.message"] += f" (cut here from {whole:,} bytes)"
        key = key and key[:room]
        value = value and value[: room - len(key or b"")]
    return DeadLetterRecord(key, value, [*own, *errors_of(errors)])


def errors_of(errors: Mapping[str, str]) -> list[tuple[str, bytes | None]]:
    """Return the causes as headers."""
    return [(PREFIX + name, text.encode()) for name, text in errors.items()]


def size_of(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """Return an upper bound of the record's size."""
    return upper_bound_bytes(key, value, tuple(headers))


def as_bytes(data: str | bytes | None) -> bytes | None:
    """Return a key or value as bytes."""
    return data.encode() if isinstance(data, str) else data
