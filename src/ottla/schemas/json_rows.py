"""Write the rows of a column as JSON of a registered schema: the reverse of `json_columns`, a Python object per row.

JSON has absent properties and null, a column only null. A null field is left out, unless the schema requires the property.
Text of a part that a column holds as JSON text is written as that JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ottla.errors import SerializationError
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.exchange import Exchange
from ottla.schemas.json_columns import FORMS, TEXT, JsonTypes, Place, map_values, parse_json
from ottla.schemas.json_schema import JSONWriting, make_encoder
from ottla.schemas.serde import Encoder, resolve_references
from ottla.schemas.values import Schema


class JsonRowEncoder:
    """Encodes rows with one schema, and validates them."""

    def __init__(self, schema: Schema, references: Sequence[tuple[str, Schema]]) -> None:
        self._encode = make_encoder(schema, references, True, msgspec.json.encode)
        root = parse_json(schema)
        documents = {name: parse_json(one) for name, one in references}
        self._shape = JsonShape(Place(root, root), JsonTypes(root, documents, FORMS))

    @classmethod
    def from_text(cls, text: str) -> JsonRowEncoder:
        """Return the encoder of a result of `to_text`."""
        content = json.loads(text)
        references = [(name, Schema.from_dict(one)) for name, one in content["references"]]
        return cls(Schema.from_dict(content["schema"]), references)

    def __call__(self, obj: Any, prefix: bytes) -> bytes:
        try:
            plain = msgspec.to_builtins(obj, str_keys=True, enc_hook=to_iso_text)
        except (TypeError, ValueError) as error:
            raise SerializationError(f"it cannot be JSON: {error}; cast the column") from error
        return self._encode(self._shape.convert(plain), prefix)


def to_text(schema: Schema, references: Sequence[tuple[str, Schema]]) -> str:
    """Return a schema with its references as text, for processes without a registry."""
    pairs = [(name, one.to_dict()) for name, one in references]
    return json.dumps({"schema": schema.to_dict(), "references": pairs})


def properties_of(schema: Schema, references: Sequence[tuple[str, Schema]]) -> tuple[list[str], list[str]]:
    """Return the properties of the schema, and those that it requires; none if it has no named properties."""
    root = parse_json(schema)
    types = JsonTypes(root, {name: parse_json(one) for name, one in references}, FORMS)
    place = types.resolve(Place(root, root))
    if types.kind_of(place) != "object":
        return [], []
    properties = types.properties_of(place)
    return list(properties), sorted(types.required_of(place) & properties.keys())


class JsonRowWriting(JSONWriting):
    """The part of a serializer that writes the rows of a column."""

    def __init__(self, schema: Schema | None) -> None:
        super().__init__(schema, {"validate": True}, None)

    def prepare(self, schema: Schema, obj: Any, calls: RegistryCalls) -> Exchange[Encoder]:
        references = yield from resolve_references(schema, calls)
        return JsonRowEncoder(schema, references)


class JsonShape:
    """Converts the values of one part of a schema. The parts within it are resolved when a value has them."""

    def __init__(self, place: Place, types: JsonTypes) -> None:
        self._types = types
        self._place = types.resolve(place)
        node, kind = self._place.node, types.kind_of(self._place)
        is_object = kind == "object"
        self._is_text = kind in ("object", "array", TEXT)
        self._properties = types.properties_of(self._place) if is_object else {}
        self._required = types.required_of(self._place) if is_object else frozenset[str]()
        self._inner: Any = map_values(node) if is_object else node.get("items") if kind == "array" else None
        """The schema of all items, or of the values of a map; None if there is none."""
        self._parts: dict[str | None, JsonShape] = {}

    def convert(self, value: Any) -> Any:
        """Return the value as it is written. Raises SerializationError."""
        if isinstance(value, str) and self._is_text:
            return parse_text(value)
        if isinstance(value, dict) and self._properties:
            return {
                name: self._part(name).convert(part) if name in self._properties else part
                for name, part in value.items()
                if part is not None or name in self._required
            }
        if self._inner is None or not isinstance(value, dict | list):
            return value
        inner = self._part(None)
        if isinstance(value, dict):
            return {name: inner.convert(part) for name, part in value.items()}
        return [inner.convert(item) for item in value]

    def _part(self, name: str | None) -> JsonShape:
        """Return the shape of a property, or of the items or values."""
        found = self._parts.get(name)
        if found is None:
            place = self._place.part(self._inner) if name is None else self._properties[name]
            found = self._parts[name] = JsonShape(place, self._types)
        return found


def to_iso_text(obj: Any) -> str:
    """Return the text of a moment of pandas, which pyarrow returns for nanoseconds. Raises TypeError for other types."""
    isoformat = getattr(obj, "isoformat", None)
    if isoformat is None:
        raise TypeError(f"there is no JSON for {type(obj).__name__}")
    return str(isoformat()).replace("+00:00", "Z")


def parse_text(text: str) -> Any:
    """Return the value of JSON text, which is in the column of a part without one type."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SerializationError(
            f"{text!r:.80} is not JSON ({error}), and the schema has no single type for it; write it as JSON text"
        ) from None
