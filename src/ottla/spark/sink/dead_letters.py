"""Rows that could not be written, as records that say why in Kafka Connect's words (KIP-298).

Pure. Key, value and headers are those of the row; what is too large even here is cut, and the message says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.client.producer.producer_batch import upper_bound_bytes
from ottla.spark.sink.refusals import RowError

PREFIX = "__connect.errors."
STAGE = "TASK_PUT"
ROOM = 100
"""Bytes kept free, for the words that say what was cut."""


class DeadLetter(NamedTuple):
    """A record of the dead-letter topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def dead_letter(
    row: dict[str, Any], *, topic: str | None, reason: str, task: int, number: int, query: str, limit: int
) -> DeadLetter:
    """The record of a row, the `number`th of a task; of `limit` bytes at most."""
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
    return DeadLetter(key, value, [*own, *errors_of(errors)])


def errors_of(errors: Mapping[str, str]) -> list[tuple[str, bytes | None]]:
    """What is told, as headers."""
    return [(PREFIX + name, text.encode()) for name, text in errors.items()]


def size_of(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """The most bytes that it takes."""
    return upper_bound_bytes(key, value, tuple(headers))


def as_bytes(data: str | bytes | None) -> bytes | None:
    """Keys and values are text or bytes."""
    return data.encode() if isinstance(data, str) else data
