"""Records that every client can express, with a selection of unusual values."""

from __future__ import annotations

import time
from typing import NamedTuple

START = time.time_ns() // 3_600_000_000_000 * 3_600_000
"""The full hour, in milliseconds. Older timestamps would be deleted by retention."""
BIG = bytes(range(256)) * 400


class Row(NamedTuple):
    """The fields of a record, which have to be the same after writing and reading it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = START


ROWS = (
    Row(b"plain", b"value"),
    Row(None, b"no key"),
    Row(b"", b""),
    Row(b"no value", None),
    Row(b"headers", b"x", (("kind", b"test"), ("kind", b"again"), ("empty", b""), ("größe", "ü".encode()))),
    Row(b"\x00\xff", BIG, timestamp=START + 1),
    *(Row(f"key-{i % 7}".encode(), f"value {i}".encode() * (i % 5), timestamp=START + i) for i in range(500)),
)
