"""The header that serializers of a schema registry write in front of a value: a zero byte, and the schema's id in four bytes.

It is only mentioned in errors, if a value can be read without it. It is never skipped, because a value may start with a
zero byte too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

HEAD = struct.Struct(">xI")
FIRST_MESSAGE = b"\0"
"""The bytes of Protocol Buffers after the header, if the value is the first message of its file."""


def explain_registry_head(
    data: bytes,
    read: Callable[[bytes], object],
    after: bytes = b"",
    remedy: str = "schema registries are not supported for it",
) -> str:
    """Return an addition to the error of a value that cannot be read; empty if the header is not the cause."""
    if data[:1] != b"\0" or len(data) < HEAD.size or not data.startswith(after, HEAD.size):
        return ""
    try:
        read(data[HEAD.size + len(after) :])
    except Exception:  # invalid bytes may raise anything in the reader
        return ""
    (number,) = HEAD.unpack_from(data)
    return f"; its first {HEAD.size + len(after)} bytes are the header of a schema registry's serializer (schema {number}), and {remedy}"
