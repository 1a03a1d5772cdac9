"""The format of coordinators' records: each key and each value starts with an int16, followed by a message.

The number is the kind of the record in a key, and the version of the schema in a value.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.errors import CorruptRecordError
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message

Pairs = Mapping[int, tuple[type[Message], type[Message]]]
"""For each kind of record: the messages of its key and its value."""


def pairs_of(*pairs: tuple[type[Message], type[Message]]) -> Pairs:
    """Return the table of these keys and values, by the kinds of the keys."""
    return {key.KEY: (key, value) for key, value in pairs}


def encode(front: int, version: int, part: Message) -> bytes:
    """Return an int16, then the message in `version`."""
    parts = Writer(front.to_bytes(2, "big")).write(plan_of(type(part), version), part)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray))


def encode_pair(key: Message, value: Message | None, version: int = 0) -> tuple[bytes, bytes | None]:
    """Return the bytes of a record's key and value; a record without a value deletes the earlier one of its key."""
    return encode(key.KEY, 0, key), None if value is None else encode(version, version, value)


def decode_pair(pairs: Pairs, key: bytes | None, value: bytes | None) -> tuple[Message, Message | None] | None:
    """Return the key and the value of a record; None if its kind is not in `pairs`.

    Raise CorruptRecordError if the record is malformed or its version is unknown.
    """
    if key is None:
        return None
    kind = int.from_bytes(key[:2], "big")
    if kind not in pairs:
        return None
    key_class, value_class = pairs[kind]
    try:
        read_key: Message = Reader(key, 2).read(plan_of(key_class, 0))
        if value is None:
            return read_key, None
        version = int.from_bytes(value[:2], "big")
        if version not in value_class.VERSIONS:
            raise CorruptRecordError(
                f"unknown version {version} of a {value_class.__name__}: expected {value_class.VERSIONS}"
            )
        return read_key, Reader(value, 2).read(plan_of(value_class, version))
    except MalformedError as error:
        raise CorruptRecordError(f"malformed record of a coordinator, kind {kind}: {error}") from None
