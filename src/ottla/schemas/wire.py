"""How a schema id accompanies a value: in front of it, or in a header. Pure.

    prefix   byte 0, id (4 bytes, big-endian), message indexes (Protobuf only), payload
    header   `__key_schema_id` or `__value_schema_id`: byte 1, guid (16 bytes), message indexes (Protobuf only)

Message indexes are a count and the path to a message in its file, as zigzag varints. The path [0] is one byte 0.
Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence
from typing import Any
from uuid import UUID

from ottla.errors import SerializationError
from ottla.schemas.context import MessageField, SerializationContext

PREFIX = struct.Struct(">bI")
PREFIX_BYTES = PREFIX.size
ID_MAGIC = 0
GUID_MAGIC = 1
GUID_BYTES = 17
HEADER_NAMES = {MessageField.KEY: "__key_schema_id", MessageField.VALUE: "__value_schema_id"}
MAX_INDEXES = 100
"""The maximum depth of a nested message, to reject other bytes early."""


class SchemaId:
    """The id or the guid of a schema, and the message within it."""

    __slots__ = ("guid", "id", "message_indexes", "schema_type")

    def __init__(
        self,
        schema_type: str,
        schema_id: int | None = None,
        guid: str | None = None,
        message_indexes: list[int] | None = None,
    ) -> None:
        self.schema_type = schema_type
        self.id = schema_id
        self.guid = None if guid is None else UUID(guid)
        self.message_indexes = message_indexes

    def from_bytes(self, payload: io.BytesIO) -> io.BytesIO:
        """Read the id from a stream, which is then at the payload."""
        data = payload.getvalue()
        start = payload.tell()
        found = read_id(data[start:], self.schema_type == "PROTOBUF")
        self.id, self.guid, self.message_indexes = found.id, found.guid, found.message_indexes
        payload.seek(start + found.size)
        return payload

    def id_to_bytes(self) -> bytes:
        """Return the prefix of a value."""
        if self.id is None:
            raise SerializationError("the schema has no id; register it first")
        return PREFIX.pack(ID_MAGIC, self.id) + encode_indexes(self.message_indexes)

    def guid_to_bytes(self) -> bytes:
        """Return the header of a record."""
        if self.guid is None:
            raise SerializationError(
                "the registry returned no guid for the schema; use prefix_schema_id_serializer, or a newer registry"
            )
        return bytes([GUID_MAGIC]) + self.guid.bytes + encode_indexes(self.message_indexes)


class FoundId:
    """A schema id as found in bytes."""

    __slots__ = ("guid", "id", "message_indexes", "size")

    def __init__(self, id: int | None, guid: UUID | None, message_indexes: list[int] | None, size: int) -> None:
        self.id = id
        self.guid = guid
        self.message_indexes = message_indexes
        self.size = size
        """The number of bytes that belong to the id."""


def read_id(data: bytes, with_indexes: bool) -> FoundId:
    """Return the id at the beginning of a value or of a header. Raises SerializationError if there is none."""
    if len(data) >= PREFIX_BYTES and data[0] == ID_MAGIC:
        found = FoundId(int.from_bytes(data[1:PREFIX_BYTES], "big"), None, None, PREFIX_BYTES)
    elif len(data) >= GUID_BYTES and data[0] == GUID_MAGIC:
        found = FoundId(None, UUID(bytes=bytes(data[1:GUID_BYTES])), None, GUID_BYTES)
    else:
        raise no_schema_id_error(data)
    if with_indexes:
        found.message_indexes, found.size = decode_indexes(data, found.size)
    return found


def has_schema_id(data: bytes) -> bool:
    """Return True if a value begins with a schema id. Registries count from 1; 0 is the start of a small binary number."""
    return len(data) >= PREFIX_BYTES and data[0] == ID_MAGIC and any(data[1:PREFIX_BYTES])


def no_schema_id_error(data: bytes) -> SerializationError:
    """Return the error for bytes that do not begin with a schema id."""
    start = f"it begins with byte 0x{data[0]:02x}" if data else "it is empty"
    return SerializationError(
        f"there is no schema id in front of the value of {len(data)} bytes: {start}, and a registered value begins with "
        "0x00 and four bytes of id; read it with the deserializer of its writer"
    )


def encode_indexes(indexes: list[int] | None) -> bytes:
    """Return the message indexes, none for None."""
    if indexes is None:
        return b""
    if indexes == [0]:
        return b"\0"
    return b"".join(encode_zigzag(number) for number in (len(indexes), *indexes))


def decode_indexes(data: bytes, position: int) -> tuple[list[int], int]:
    """Return the message indexes at a position, and the position after them."""
    count, position = decode_zigzag(data, position)
    if count == 0:
        return [0], position
    if not 0 < count <= MAX_INDEXES:
        raise SerializationError(
            f"{count} message indexes in front of the value; it is not a registered Protobuf value"
        )
    indexes = []
    for _ in range(count):
        index, position = decode_zigzag(data, position)
        indexes.append(index)
    return indexes, position


def encode_zigzag(value: int) -> bytes:
    """Return a number as a zigzag varint."""
    rest = value * 2 if value >= 0 else -value * 2 - 1
    found = bytearray()
    while rest >= 0x80:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def decode_zigzag(data: bytes, position: int) -> tuple[int, int]:
    """Return a number of at most 64 bits, and the position after it."""
    value = shift = 0
    while position < len(data) and shift < 70:
        octet = data[position]
        value |= (octet & 0x7F) << shift
        position += 1
        shift += 7
        if octet < 0x80:
            return value >> 1 ^ -(value & 1), position
    raise SerializationError(
        "the message indexes in front of the value are cut off; it is not a registered Protobuf value"
    )


def find_header(headers: Any, field: str) -> bytes | None:
    """Return the header with the schema id of a key or value; None if there is none."""
    if not headers:
        return None
    wanted = HEADER_NAMES.get(field)
    pairs: Iterable[Any] = headers.items() if isinstance(headers, Mapping) else headers
    for name, value in pairs:
        if name == wanted and value is not None:
            found: bytes = value
            return found
    return None


def prefix_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:
    """Return the value with its schema id in front."""
    return schema_id.id_to_bytes() + payload


def header_schema_id_serializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> bytes:
    """Write the guid of the schema to the headers of the context, and return the value unchanged."""
    headers = None if ctx is None else ctx.headers
    if ctx is None or headers is None:
        raise SerializationError(
            "header_schema_id_serializer needs headers to write to: pass SerializationContext(topic, field, headers=[]), "
            "or send single records with Producer.send"
        )
    name, value = HEADER_NAMES[ctx.field], schema_id.guid_to_bytes()
    if isinstance(headers, MutableMapping):
        headers[name] = value
    elif isinstance(headers, MutableSequence):
        headers.append((name, value))
    else:
        raise SerializationError(f"headers = {headers!r}: must be a list of pairs or a dict")
    return payload


def prefix_schema_id_deserializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> io.BytesIO:
    """Read the id in front of a value; return the stream behind it."""
    return schema_id.from_bytes(io.BytesIO(payload))


def dual_schema_id_deserializer(payload: bytes, ctx: SerializationContext | None, schema_id: SchemaId) -> io.BytesIO:
    """Read the id from the headers, else from the front of the value; return the stream behind it."""
    header = None if ctx is None else find_header(ctx.headers, ctx.field)
    if header is None:
        return schema_id.from_bytes(io.BytesIO(payload))
    schema_id.from_bytes(io.BytesIO(header))
    return io.BytesIO(payload)
