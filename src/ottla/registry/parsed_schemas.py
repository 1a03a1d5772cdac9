"""Parsed schemas in a bounded cache, and the table of formats. Formats load when they are first used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from importlib import import_module

from ottla.registry.kinds.kind import NamedText, ParsedSchema, SchemaKind
from ottla.registry.records import AVRO, JSON, PROTOBUF, Content

HOMES = {AVRO: ("avro", "AvroKind"), JSON: ("json_schema", "JsonSchemaKind"), PROTOBUF: ("protobuf", "ProtobufKind")}
MOST_CACHED_TEXT = 4 << 20
"""The limit on the characters of cached schemas; a parsed schema takes some 20 bytes for each."""
ENTRY_SIZE = 200


def load_kind(name: str) -> SchemaKind:
    """Return a format by its name in the interface."""
    module, kind = HOMES[name]
    loaded: SchemaKind = getattr(import_module(f"ottla.registry.kinds.{module}"), kind)()
    return loaded


class ParsedSchemas:
    """Parses schemas, and keeps those used last. Any thread may use it."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[object, ...], tuple[ParsedSchema, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def parse(self, content: Content, references: Sequence[NamedText]) -> ParsedSchema:
        """Return a parsed schema; raise InvalidSchemaError."""
        key = content.kind, content.text, tuple(references)
        with self._lock:
            found = self._cached.get(key)
            if found is not None:
                self._cached.move_to_end(key)
                return found[0]
        parsed = load_kind(content.kind).parse(content.text, references)
        size = len(content.text) + sum(len(each.text) for each in references) + ENTRY_SIZE
        with self._lock:
            if key not in self._cached:
                self._cached[key] = parsed, size
                self._size += size
                while self._size > MOST_CACHED_TEXT:
                    _, (_, freed) = self._cached.popitem(last=False)
                    self._size -= freed
        return parsed
