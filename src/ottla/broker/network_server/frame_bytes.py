"""Functions of the fast paths that read and write bytes by position.

This is the uncompiled form; the C form is `frame_bytes_native.pxd`, as for `records/raw.py`. Positions are not checked.
"""

from __future__ import annotations

from typing import Any


def begin_of(frame: memoryview) -> Any:
    """Return the start of the frame's bytes: an address in C, the view itself here.

    To read many bytes use `raw.pointer`.
    """
    return frame


def copy_of(octets: Any, start: int, stop: int) -> bytes:
    """Return the bytes from `start` to `stop`."""
    return bytes(octets[start:stop])


def is_same(octets: Any, start: int, stop: int, name: bytes) -> bool:
    """Return True if the bytes from `start` to `stop` equal `name`."""
    return bytes(octets[start:stop]) == name


def is_ascii(octets: Any, start: int, stop: int) -> bool:
    """Return True if the bytes from `start` to `stop` are ASCII."""
    return bytes(octets[start:stop]).isascii()


def put_uvarint(out: Any, at: int, value: int) -> int:
    """Write a number at a position; the position behind it."""
    while value >= 0x80:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1
