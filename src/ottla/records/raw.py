"""Bytes and varints by position, for the loops that are compiled.

This is the form that runs uncompiled. The C form of the same functions is `native.pxd`: a hot module says `from
ottla.records import raw`, its `.pxd` says `cimport ottla.records.native as raw`, and the compiler prefers the latter.
Neither checks a position; the callers do, but for `read_varint`, which never reads at `end` or after it.
"""

from __future__ import annotations

from typing import Any, TypeVar

Five = TypeVar("Five", bound=tuple[Any, ...])
Six = TypeVar("Six", bound=tuple[Any, ...])
MASK = 0xFFFF_FFFF_FFFF_FFFF


def pointer(view: Any) -> Any:
    """Where the bytes of `view` begin: in C an address, here the view."""
    return view


room = pointer
"""The same, for bytes that are going to be written."""
numbers = pointer
"""The same, of at least one int32."""
moments = pointer
"""The same, of at least one int64."""
octets = pointer
"""The same, of a bytearray that must not change its size meanwhile."""


def allocate(size: int) -> bytearray:
    """`size` bytes of whatever the memory held; the caller fills or drops every one of them."""
    return bytearray(size)


def copy(target: Any, at: int, source: Any, start: int, size: int) -> None:
    """Copy `size` bytes from `source[start]` on to `target[at]` on."""
    target[at : at + size] = source[start : start + size]


def move(target: Any, source: Any, size: int) -> None:
    """Copy the first `size` bytes of `source` to where another thread will read them; the caller is done with them."""
    target[:size] = source[:size]


def put(target: Any, at: int, source: bytes, size: int) -> None:
    """Copy `size` bytes, all there are in `source`, to `target[at]` on."""
    target[at : at + size] = source


def slice_of(data: Any, start: int, stop: int) -> bytes:
    """The bytes from `start` to `stop`, copied."""
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
    """The zigzag varint at `position`, and the position after it.

    If there is none that ends before `end`, or in ten bytes, or if `position` is beyond `end` already: 0 and `end + 1`.
    So a reader may take several and look once whether all were there.
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
    """Write `value` as a zigzag varint and return the position after it."""
    rest = (value << 1) ^ (value >> 63)
    while rest >= 0x80:
        target[position] = rest & 0x7F | 0x80
        rest >>= 7
        position += 1
    target[position] = rest
    return position + 1


def varint_size(value: int) -> int:
    """Bytes that `value` takes as a zigzag varint."""
    return (((value << 1) ^ (value >> 63)).bit_length() + 6) // 7 or 1


def five(kind: type[Five], *fields: Any) -> Five:
    """As `six`, of five fields."""
    return tuple.__new__(kind, fields)


def six(kind: type[Six], *fields: Any) -> Six:
    """A named tuple of six fields, without the Python function that `kind(…)` comes to."""
    return tuple.__new__(kind, fields)


def hash_of(data: Any, start: int, size: int, first: int, second: int) -> tuple[int, int]:
    """128 bits of the `size` bytes from `start` on, keyed by two numbers of 64 bits, so that nobody can make two keys
    collide.

    The C form is SipHash-2-4. This one is what is quick here; no hash outlives its process, so they need not agree.
    """
    key = (first << 64 | second).to_bytes(16, "big")
    from hashlib import blake2b  # takes long to load, and only the uncompiled form needs it

    digest = blake2b(bytes(data[start : start + size]), digest_size=16, key=key).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
