"""The headers of one record ⇄ bytes: a varint count, then keys and values with varint lengths."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.errors import CorruptRecordError, SerializationError
from ottla.model import Buffer, Header
from ottla.records import raw


def encode_headers(headers: Iterable[Header]) -> bytes:
    """As they stand at the end of a record."""
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
    """The inverse; nothing at all means no headers. A key that is not UTF-8 gets replacement characters, as in Java."""
    if not len(data):
        return []
    end = len(data)
    count, position = raw.read_varint(data, 0, end)
    headers: list[Header] = []
    for _ in range(count):
        key, position = read_sized(data, position, end)
        value, position = read_sized(data, position, end)
        if key is None or position < 0:
            raise CorruptRecordError(f"a record says it has {count} headers, but they do not fit its {end} bytes")
        headers.append((key.decode("utf-8", "replace"), value))
    return headers


def as_bytes(value: object, what: str) -> bytes | None:
    """`value` as the bytes that are written; an error that names `what` if it is not bytes."""
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
    """The bytes at `position`, None where their length is -1, and the position after them: -1 if they do not fit."""
    if position < 0:
        return None, -1
    size, position = raw.read_varint(data, position, end)
    if size == -1:
        return None, position
    if position < 0 or not 0 <= size <= end - position:
        return None, -1
    return bytes(data[position : position + size]), position + size
