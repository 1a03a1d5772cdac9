"""The head that a schema registry's serializers put before a value: a zero, and the number of its schema in four bytes.

It is told of, where a value cannot be read with it and can be without, and never passed over: a value may begin with a zero too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

HEAD = struct.Struct(">xI")
FIRST_MESSAGE = b"\0"
"""What Protocol Buffers have after the head, where the value is the first message of its file."""


def told_of_head(data: bytes, read: Callable[[bytes], object], after: bytes = b"") -> str:
    """What to add to the sentence about a value that cannot be read; nothing where this is not why. `read` raises as for any bytes."""
    if data[:1] != b"\0" or len(data) < HEAD.size or not data.startswith(after, HEAD.size):
        return ""
    try:
        read(data[HEAD.size + len(after) :])
    except Exception:  # whatever bytes that are none make of its reader
        return ""
    (number,) = HEAD.unpack_from(data)
    return (
        f"; its first {HEAD.size + len(after)} bytes are the head that a schema registry's serializers write (schema {number}), "
        "and no registry is asked here"
    )
