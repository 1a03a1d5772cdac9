"""Access to bytes and varints by position, for compiled loops.

 This is the uncompiled form; `native.pxd` has the C form of the same functions. A hot module has `from ottla.records
import raw`, its `.pxd` has `cimport ottla.records.native as raw`, and the compiler prefers the latter. Neither checks
positions, which is the caller's task, except `read_varint`, which never reads at `end` or after it.
"""

from __future__ import annotations

from typing import Any, TypeVar

Five = TypeVar("Five", bound=tuple[Any, ...])
Six = TypeVar("Six", bound=tuple[Any, ...])
MASK = 0xFFFF_FFFF_FFFF_FFFF


def pointer(view: Any) -> Any:
    """Return the start of `view`: in C an address, here the view."""
    return view


room = pointer
"""Return the start of writable bytes."""
numbers = pointer
"""Return the start of at least one int32."""
moments = pointer
"""Return the start of at least one int64."""
octets = pointer
"""Return the start of a bytearray that must not be resized meanwhile."""


def allocate(size: int) -> bytearray:
    """Return `size` bytes of uninitialized memory; the caller overwrites or drops all of them."""
    return bytearray(size)


def copy(target: Any, at: int, source: Any, start: int, size: int) -> None:
    """Copy `size` bytes from `source[start]` on to `target[at]` on."""
    target[at : at + size] = source[start : start + size]


def move(target: Any, source: Any, size: int) -> None:
    """Copy the first `size` bytes of `source` for another thread; the caller does not use `source` afterwards."""
    target[:size] = source[:size]


def put(target: Any, at: int, source: bytes, size: int) -> None:
    """Copy `size` bytes, all of `source`, to `target[at]` on."""
    target[at : at + size] = source


def slice_of(data: Any, start: int, stop: int) -> bytes:
    """Return a copy of the bytes from `start` to `stop`."""
    return bytes(data[start:stop])


def int16(data: Any, position: int) -> int:
    return int.from_bytes(data[position : position + 2], "big", signed=True)


def int32(data: Any, position: int) -> int:
    return int.from_bytes(data[position : position + 4], "big", signed=True)


def int64(data: Any, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "big", signed=True)


def uint64(data: Any, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "big")


def put_int32(target: Any, position: int, value: int) -> None:
    target[position : position + 4] = value.to_bytes(4, "big", signed=True)


def put_int64(target: Any, position: int, value: int) -> None:
    target[position : position + 8] = value.to_bytes(8, "big", signed=True)


def read_varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """Return the zigzag varint at `position`, and the position after it.

     If none ends before `end` or within ten bytes, or `position` is beyond `end`: 0 and `end + 1`. A caller may
    therefore read several and check the position once.
    """
    if position < end and (octet := data[position]) < 0x80:
        return (octet >> 1) ^ -(octet & 1), position + 1
    value = shift = 0
    while position < end and shift < 70:
        octet = data[position]
        value |= (octet & 0x7F) << shift
        position += 1
        shift += 7
        if octet < 0x80:
            value &= MASK
            return (value >> 1) ^ -(value & 1), position
    return 0, end + 1


def write_varint(target: Any, position: int, value: int) -> int:
    """Write `value` as a zigzag varint; return the position after it."""
    rest = (value << 1) ^ (value >> 63)
    while rest >= 0x80:
        target[position] = rest & 0x7F | 0x80
        rest >>= 7
        position += 1
    target[position] = rest
    return position + 1


def varint_size(value: int) -> int:
    """Return the size of `value` as a zigzag varint."""
    return (((value << 1) ^ (value >> 63)).bit_length() + 6) // 7 or 1


def five(kind: type[Five], *fields: Any) -> Five:
    """Return a named tuple of five fields, as `six`."""
    return tuple.__new__(kind, fields)


def six(kind: type[Six], *fields: Any) -> Six:
    """Return a named tuple of six fields, without a call of the Python function `kind(…)`."""
    return tuple.__new__(kind, fields)


def hash_of(data: Any, start: int, size: int, first: int, second: int) -> tuple[int, int]:
    """Return a 128-bit hash of `size` bytes from `start` on, keyed by two 64-bit numbers to prevent deliberate collisions.

    The C form is SipHash-2-4. This form is fast in the interpreter; a hash is not used outside its process, so they may
    differ.
    """
    key = (first << 64 | second).to_bytes(16, "big")
    from hashlib import blake2b  # takes long to load, and only the uncompiled form needs it

    digest = blake2b(bytes(data[start : start + size]), digest_size=16, key=key).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
