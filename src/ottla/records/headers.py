"""Encode and decode the headers of one record: a varint count, then keys and values with varint lengths."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.errors import CorruptRecordError, SerializationError
from ottla.model import Buffer, Header
from ottla.records import raw


def encode_headers(headers: Iterable[Header]) -> bytes:
    """Return the headers as encoded at the end of a record."""
    pairs = list(headers)
    out = bytearray()
    append_varint(out, len(pairs))
    for key, value in pairs:
        if not isinstance(key, str):
            raise SerializationError(f"the key of a header is {type(key).__name__}; it must be str")
        append_sized(out, key.encode())
        append_sized(out, as_bytes(value, f"the value of header {key}"))
    return bytes(out)


def decode_headers(data: Buffer) -> list[Header]:
    """Return the headers of encoded bytes; empty bytes mean none.

    Invalid UTF-8 in a key becomes replacement characters.
    """
    end = len(data)
    if not end:
        return []
    count, position = raw.read_varint(data, 0, end)
    headers: list[Header] = []
    while len(headers) < count:
        key, position = read_sized(data, position, end)
        value, position = read_sized(data, position, end)
        if key is None or position > end:
            break
        headers.append((key.decode("utf-8", "replace"), value))
    if position != end or len(headers) != count:
        raise CorruptRecordError(f"the {end} bytes of a record's headers are not the {count} headers they say they are")
    return headers


def as_bytes(value: object, what: str) -> bytes | None:
    """Return `value` as bytes; raise an error that names `what` for another type."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise SerializationError(f"{what} is {type(value).__name__}; give bytes, or a serializer that makes bytes of it")


def append_varint(out: bytearray, value: int) -> None:
    start = len(out)
    out += bytes(raw.varint_size(value))
    raw.write_varint(out, start, value)


def append_sized(out: bytearray, data: bytes | None) -> None:
    append_varint(out, -1 if data is None else len(data))
    out += data or b""


def read_sized(data: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    """Return the bytes at `position` (None for length -1) and the next position; beyond `end` if they are incomplete."""
    size, position = raw.read_varint(data, position, end)
    if size == -1:
        return None, position
    if not 0 <= size <= end - position:
        return None, end + 1
    return bytes(data[position : position + size]), position + size
