"""Decode registered JSON values to Arrow columns: the types of a JSON Schema.

Values are not validated: a column has a type, and other rules of the schema, such as `required` and `minimum`, do not
count. A part without one type, such as `oneOf` of an object and a string, is JSON text; so is a part that contains itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas import column_reader, json_reader
from ottla.schemas.arrow_columns import MAX_COLUMNS, Column, ColumnDecoder, Forms
from ottla.schemas.values import Schema

with extra("arrow"):
    import pyarrow as pa

FORMS = Forms(column_reader, json_reader)
MAX_DEPTH = 32
"""Deeper parts of a schema are JSON text."""
MAX_REFERENCES = 100
"""The length of a chain of `$ref`."""
TEXT = "text"
"""The type of a part that is JSON text."""
PYTHON_TYPES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
Node = Any
"""A part of a JSON Schema: a dict, True or False."""


class JsonColumns(ColumnDecoder):
    """Decodes JSON values to one column of the reader's schema."""

    def __init__(self, reader: Schema, references: Sequence[tuple[str, Schema]] = (), forms: Forms = FORMS) -> None:
        documents = {name: parse_json(schema) for name, schema in references}
        types = JsonTypes(parse_json(reader), documents, forms)
        column, action = types.make_root()
        super().__init__(column, forms.columns)
        self._action = forms.actions.DocumentAction(action)

    def add_writer(self, key: int | bytes) -> None:
        """Read values of a writer's schema, as those of all others."""
        self._add_action(key, self._action)


def parse_json(schema: Schema) -> Node:
    """Return a JSON Schema as JSON. Raises SerializationError."""
    try:
        content = json.loads(schema.schema_str or "")
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"{(schema.schema_str or '')[:200]!r} is not a JSON Schema: {error}") from None
    if not isinstance(content, dict | bool):
        raise SerializationError(f"{(schema.schema_str or '')[:200]!r} is not a JSON Schema: it must be an object")
    return content


class Place:
    """A part of a schema, with the document that its references are relative to."""

    def __init__(self, node: Node, document: Node) -> None:
        self.node = node
        self.document = document

    def part(self, node: Node) -> Place:
        return Place(node, self.document)


class JsonTypes:
    """Makes the column and the action of each part of a schema."""

    def __init__(self, root: Node, documents: Mapping[str, Node], forms: Forms) -> None:
        self._root = root
        self._documents = documents
        self._made = forms.columns
        self._actions = forms.actions
        self._count = 0
        """The number of columns so far."""

    def make_root(self) -> tuple[Column, Any]:
        """Return column and action of a whole value. Raises SerializationError for a schema that cannot be columns."""
        try:
            return self._make(Place(self._root, self._root), "", ())
        except RecursionError:
            raise SerializationError(
                "parts of the JSON Schema consist of each other (allOf, oneOf or anyOf); correct the schema"
            ) from None

    def _make(self, place: Place, path: str, within: tuple[int, ...]) -> tuple[Column, Any]:
        """Return column and action; `within` are the enclosing parts."""
        self._count += 1
        if self._count > MAX_COLUMNS:
            raise SerializationError(
                f"the JSON Schema has more than {MAX_COLUMNS} columns, because many of its parts refer to each other; "
                "read the values as bytes, or give a reader's schema with fewer references"
            )
        place = self.resolve(place)
        kind = self.kind_of(place)
        if id(place.node) in within or len(within) > MAX_DEPTH:
            kind = TEXT
        inside = (*within, id(place.node))
        if kind == "object":
            return self._make_object(place, path, inside)
        if kind == "array":
            item, read = self._make(place.part(place.node.get("items", True)), f"{path}[]", inside)
            builder = self._made.ListBuilder(item.builder)
            arrow: Any = pa.list_(item.kind)
            return Column(kind, arrow, builder, [item]), self._actions.ListAction(builder, path, read)
        return self._make_scalar(kind, path)

    def _make_scalar(self, kind: str, path: str) -> tuple[Column, Any]:
        made, actions = self._made, self._actions
        makers: Mapping[str, tuple[Any, Any, Any]] = {
            "null": (pa.null(), made.Builder, actions.ValueAction),
            "boolean": (pa.bool_(), made.BooleanBuilder, actions.BooleanAction),
            "integer": (pa.int64(), made.LongBuilder, actions.LongAction),
            "number": (pa.float64(), lambda: made.FixedBuilder(8), actions.DoubleAction),
            "string": (pa.string(), lambda: made.BytesBuilder(True), actions.StringAction),
            TEXT: (pa.string(), lambda: made.BytesBuilder(True), actions.TextAction),
        }
        arrow, make_builder, make_action = makers[kind]
        builder = make_builder()
        return Column(kind, arrow, builder), make_action(builder, path)

    def _make_object(self, place: Place, path: str, inside: tuple[int, ...]) -> tuple[Column, Any]:
        made, actions = self._made, self._actions
        properties = self.properties_of(place)
        if not properties:
            return self._make_map(place, path, inside)
        parts: list[Column] = []
        readers: list[Any] = []
        for name, part in properties.items():
            column, read = self._make(part, f"{path}.{name}".lstrip("."), inside)
            parts.append(column)
            readers.append(read)
        builders = [part.builder for part in parts]
        builder = made.StructBuilder(builders)
        arrow: Any = pa.struct([pa.field(name, part.kind) for name, part in zip(properties, parts, strict=True)])
        action = actions.ObjectAction(builder, path, [name.encode() for name in properties], readers, builders)
        return Column("object", arrow, builder, parts), action

    def _make_map(self, place: Place, path: str, inside: tuple[int, ...]) -> tuple[Column, Any]:
        """Return a map for an object whose properties have any name, if their values have one type."""
        values = map_values(place.node)
        if values is None:
            return self._make_scalar(TEXT, path)
        made = self._made
        key = Column("string", pa.string(), made.BytesBuilder(True))
        value, read = self._make(place.part(values), f"{path}{{}}", inside)
        entries = made.StructBuilder([key.builder, value.builder])
        builder = made.ListBuilder(entries)
        action = self._actions.MapAction(builder, path, entries, key.builder, read)
        return Column("map", pa.map_(pa.string(), value.kind), builder, [key, value]), action

    def properties_of(self, place: Place) -> dict[str, Place]:
        """Return the properties of an object, those of `allOf` first."""
        found: dict[str, Place] = {}
        for one in place.node.get("allOf") or ():
            part = self.resolve(place.part(one))
            if isinstance(part.node, dict) and part.node is not place.node:
                found |= self.properties_of(part)
        own = place.node.get("properties")
        if isinstance(own, dict):
            found |= {name: place.part(node) for name, node in own.items()}
        return found

    def required_of(self, place: Place) -> frozenset[str]:
        """Return the names of the properties that an object must have."""
        found = set(place.node.get("required") or ())
        for one in place.node.get("allOf") or ():
            part = self.resolve(place.part(one))
            if isinstance(part.node, dict) and part.node is not place.node:
                found |= self.required_of(part)
        return frozenset(found)

    def kind_of(self, place: Place) -> str:
        """Return the type of a part: one of JSON's types, or `TEXT`."""
        node = place.node
        if not isinstance(node, dict):
            return TEXT
        kinds = node.get("type")
        if kinds is None:
            return self._untyped_kind(place)
        return one_kind(kinds if isinstance(kinds, list) else [kinds], node)

    def _untyped_kind(self, place: Place) -> str:
        node = place.node
        if "allOf" in node:
            kinds = [self.kind_of(self.resolve(place.part(one))) for one in node["allOf"] or ()]
            return "object" if "object" in kinds or "properties" in node else one_kind(kinds, node)
        if "properties" in node:
            return "object"
        if isinstance(node.get("items"), dict):
            return "array"
        values = [node["const"]] if "const" in node else node.get("enum")
        if isinstance(values, list):
            return one_kind([PYTHON_TYPES.get(type(value), TEXT) for value in values if value is not None], node)
        return TEXT

    def resolve(self, place: Place) -> Place:
        """Return the part that a reference or a choice of null and one other part means."""
        for _ in range(MAX_REFERENCES):
            node = place.node
            if not isinstance(node, dict):
                return place
            if isinstance(node.get("$ref"), str):
                place = self._find_reference(node["$ref"], place.document)
                continue
            choices = node.get("oneOf") or node.get("anyOf")
            if not isinstance(choices, list) or "properties" in node:
                return place
            others = [one for one in choices if not (isinstance(one, dict) and one.get("type") == "null")]
            if len(others) != 1:
                parts = [self.resolve(place.part(one)) for one in others]
                scalars = {self.kind_of(part) for part in parts}
                return place.part({"type": list(scalars - {"object", "array"} if scalars <= SCALARS else {TEXT})})
            place = place.part(others[0])
        raise SerializationError(f"more than {MAX_REFERENCES} references of the JSON Schema follow one another")

    def _find_reference(self, text: str, document: Node) -> Place:
        """Return what `$ref` refers to. Raises SerializationError."""
        name, _, pointer = text.partition("#")
        found = document
        if name:
            base = found.get("$id") if isinstance(found, dict) else None
            if name != base:
                if name not in self._documents:
                    raise SerializationError(
                        f"the JSON Schema refers to {text!r}; add a reference with this name to it"
                    )
                document = found = self._documents[name]
        for part in filter(None, pointer.split("/")):
            step = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            elif isinstance(found, dict) and step in found:
                found = found[step]
            else:
                raise SerializationError(
                    f"the JSON Schema refers to {text!r}, which does not exist; correct the schema"
                )
        return Place(found, document)


SCALARS = frozenset({"boolean", "integer", "number", "string"})


def one_kind(kinds: Sequence[Any], node: Mapping[str, Any]) -> str:
    """Return the one type of several; integers are numbers. Arrays need a schema of their items to be one."""
    others = {str(kind) for kind in kinds if kind != "null"}
    if others == {"integer", "number"}:
        others = {"number"}
    if not others and kinds:
        return "null"
    if len(others) != 1:
        return TEXT
    (kind,) = others
    if kind == "array":
        return "array" if not isinstance(node.get("items", True), list) and "prefixItems" not in node else TEXT
    return kind if kind in SCALARS or kind == "object" else TEXT


def map_values(node: Mapping[str, Any]) -> Node | None:
    """Return the schema of all values of an object without named properties; None if there is not exactly one."""
    patterns = node.get("patternProperties") or {}
    more = node.get("additionalProperties")
    if patterns:
        return next(iter(patterns.values())) if len(patterns) == 1 and more in (None, False) else None
    return more if isinstance(more, dict) and more else None
