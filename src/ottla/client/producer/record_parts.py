"""Check the parts of a record and convert them to what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.interface.arguments import LAST_OFFSET, checked_offsets, checked_text, checked_whole
from ottla.client.producer.config import Serializer
from ottla.errors import SerializationError
from ottla.model import Header, OffsetAndMetadata, TopicPartition

ERRORS = frozenset({"err", "error", "exc", "exception"})
"""Parameter names that indicate callbacks with the order (error, message) of another client."""


def serialized(what: str, data: Any, serializer: Serializer | None) -> bytes | None:
    """Return a key or value as bytes. Raises SerializationError if it is not bytes after serialization."""
    if serializer is not None:
        try:
            data = serializer(data)
        except Exception as error:
            raise SerializationError(f"{what}.serializer failed: {type(error).__name__}: {error}") from error
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, bytearray | memoryview | bytes):
        return bytes(data)
    raise SerializationError(
        f"the {what} is {type(data).__name__}, not bytes; encode it, or set {what}.serializer (such as str.encode)"
    )


class ContextSerializers:
    """Serializers that receive the topic and the headers of a record too, as those of `ottla.schemas`."""

    def __init__(self, key: Any, value: Any) -> None:
        self._key = key
        self._value = value

    def serialize(self, topic: str, key: Any, value: Any, headers: Any) -> tuple[Any, Any, list[Header]]:
        """Return key, value and headers; what has no such serializer is unchanged."""
        pairs = [] if headers is None else list(checked_headers(headers))
        if self._key is not None:
            key = serialized("key", key, bind_topic(self._key, topic, "key", pairs))
        if self._value is not None:
            value = serialized("value", value, bind_topic(self._value, topic, "value", pairs))
        return key, value, pairs


def bind_topic(serializer: Any, topic: str, field: str, headers: list[Header] | None) -> Serializer | None:
    """Return a function of the data for a serializer that receives topic and headers too; others are returned unchanged."""
    serialize = getattr(serializer, "serialize_record", None)
    return serializer if serialize is None else lambda data: serialize(data, topic, field, headers)


def with_context(serializer: Any) -> Any:
    """Return the serializer if it receives topic and headers too, else None."""
    return serializer if hasattr(serializer, "serialize_record") else None


def checked_timestamp(timestamp: Any) -> int:
    """Return the timestamp, checked, in milliseconds since 1970."""
    if type(timestamp) is int and 0 <= timestamp <= LAST_OFFSET:
        return timestamp
    return checked_whole("timestamp", timestamp, "milliseconds since 1970")


def checked_headers(headers: Iterable[Header] | Mapping[str, bytes | None]) -> tuple[Header, ...]:
    """Return headers as pairs of text and bytes."""
    given: Any = headers
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise TypeError(f"headers = {headers!r}: must be a list of pairs, such as [('kind', b'test')], or a dict")
    pairs = tuple(headers.items() if isinstance(headers, Mapping) else headers)
    for pair in pairs:
        match pair:
            case (str() as name, None | bytes()):
                if not name.isascii():
                    checked_text("the name of a header", name, "kind")
                continue
        raise SerializationError(f"header {pair!r}: must be a pair of text and bytes, such as ('kind', b'test')")
    return pairs


def checked_callback(callback: Any) -> None:
    """Check that the callback can be called and that its parameters are not in the order (err, msg) of another client."""
    code = getattr(callback, "__code__", None)
    if code is None:
        if not callable(callback):
            raise TypeError(f"on_delivery = {callback!r}: must be a function of (metadata, error)")
        code = getattr(type(callback).__call__, "__code__", None)
    names: tuple[str, ...] = () if code is None else code.co_varnames[: code.co_argcount]
    own = names[1:] if names[:1] == ("self",) else names
    if len(own) > 1 and own[0] in ERRORS:
        raise TypeError(
            f"on_delivery = {callback!r}: it is called with (metadata, error), and its parameters are "
            f"({', '.join(own)}); swap them"
        )


def offsets_to_send(offsets: Any, group: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to send with a transaction, checked, and check the group metadata."""
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata  # which most producers never need

    if not isinstance(group, ConsumerGroupMetadata):
        raise TypeError(f"group_metadata = {group!r}: pass consumer.group_metadata()")
    return checked_offsets(offsets)
