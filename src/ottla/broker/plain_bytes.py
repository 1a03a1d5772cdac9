"""What the short ways of requests ask of bytes, and write into them, by position.

This is the form that runs uncompiled; the C form is `plain_native.pxd`, as `records/raw.py` and its own are. No position is checked.
"""

from __future__ import annotations

from typing import Any


def begin_of(frame: memoryview) -> Any:
    """Where its bytes begin: in C an address, here the view. For whoever reads a few of them; who reads all asks `raw.pointer`."""
    return frame


def copy_of(octets: Any, start: int, stop: int) -> bytes:
    """The bytes from `start` to `stop`."""
    return bytes(octets[start:stop])


def is_same(octets: Any, start: int, stop: int, name: bytes) -> bool:
    """Whether the bytes from `start` to `stop` are those."""
    return bytes(octets[start:stop]) == name


def is_ascii(octets: Any, start: int, stop: int) -> bool:
    """Whether bytes are text without any doubt."""
    return bytes(octets[start:stop]).isascii()


def put_uvarint(out: Any, at: int, value: int) -> int:
    """Write a number at a position; the position behind it."""
    while value >= 0x80:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1
