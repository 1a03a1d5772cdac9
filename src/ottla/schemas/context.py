"""The record that a value belongs to, as serializers and deserializers receive it."""

from __future__ import annotations

from typing import Any


class MessageField:
    """The parts of a record that have a schema."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"


class SerializationContext:
    """The topic of a record, the part of it (a `MessageField`), and its headers.

    `headers` is a list of pairs or a dict. A serializer that writes schema ids to headers adds them to it.
    """

    __slots__ = ("field", "headers", "topic")

    def __init__(self, topic: str | None, field: str, headers: Any = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers

    def __repr__(self) -> str:
        return f"SerializationContext({self.topic!r}, {self.field!r}, {self.headers!r})"
