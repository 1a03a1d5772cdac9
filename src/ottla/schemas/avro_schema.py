"""Parse Avro schemas with references, and build writers for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas import avro_writer as nodes
from ottla.schemas.values import Schema

with extra("schemas"):
    import fastavro.schema
    import fastavro.write

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "bytes": (bytes,),
    "fixed": (bytes,),
    "string": (str,),
    "enum": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}
"""The Python types of each Avro type."""
LOGICAL_TYPES: Mapping[str, tuple[type, ...]] = {
    "decimal": (Decimal,),
    "uuid": (UUID,),
    "date": (date,),
    "time-millis": (time,),
    "time-micros": (time,),
    "timestamp-millis": (datetime,),
    "timestamp-micros": (datetime,),
    "local-timestamp-millis": (datetime,),
    "local-timestamp-micros": (datetime,),
}
"""The Python types of each logical type, in addition to those of its Avro type."""


class AvroSchema(NamedTuple):
    """A parsed schema."""

    root: Any
    """The schema as parsed by fastavro."""
    named: Mapping[str, Any]
    """All named types by full name."""
    text: str

    @property
    def record_name(self) -> str | None:
        """The full name of the record, or the type of another schema; None for a union."""
        if isinstance(self.root, dict):
            name = self.root.get("name", self.root.get("type"))
            return name if isinstance(name, str) else None
        return self.root if isinstance(self.root, str) else None

    @property
    def is_plain_bytes(self) -> bool:
        """True for the schema `"bytes"`, whose values Confluent's serializers write without a length."""
        root = full_type(self.root, self.named)
        return not isinstance(root, list) and root["type"] == "bytes" and "logicalType" not in root


def parse_avro(schema: Schema, references: Sequence[tuple[str, Schema]] = ()) -> AvroSchema:
    """Return the parsed schema; `references` are in the order of their definitions. Raises SerializationError."""
    named: dict[str, Any] = {}
    try:
        for _, reference in references:
            parse_definition(reference.schema_str or "", named)
        root = parse_definition(schema.schema_str or "", named)
        if references:
            root = insert_definitions(root, named, set())
        root = fastavro.schema.parse_schema(root, named_schemas={})
    except RecursionError:
        raise SerializationError("the Avro schema is nested too deeply") from None
    except Exception as error:  # fastavro raises its own errors, KeyError and TypeError for invalid schemas
        raise SerializationError(
            f"{(schema.schema_str or '')[:200]!r} is not an Avro schema: {explain(error)}"
        ) from error
    return AvroSchema(root, named, schema.schema_str or "")


def parse_definition(text: str, named: dict[str, Any]) -> Any:
    """Return a schema as parsed by fastavro, and add its named types to `named`."""
    stripped = text.strip()
    content = json.loads(stripped if stripped[:1] in ("{", "[", '"') else json.dumps(stripped))
    if isinstance(content, dict) and content.get("type") in named and len(content) == 1:
        content = content["type"]
    return fastavro.schema.parse_schema(content, named_schemas=named, _write_hint=False)


def insert_definitions(schema: Any, named: Mapping[str, Any], defined: set[str]) -> Any:
    """Return the schema with the definition of each named type where it is first used, so that it needs no others."""
    if isinstance(schema, list):
        return [insert_definitions(branch, named, defined) for branch in schema]
    if isinstance(schema, str):
        if schema in PRIMITIVES or schema in defined:
            return schema
        schema = named[schema]
    if schema.get("name") in defined:
        return schema["name"]
    if "name" in schema:
        defined.add(schema["name"])
    parts = {part: insert_definitions(schema[part], named, defined) for part in ("items", "values") if part in schema}
    if not isinstance(schema["type"], str) or schema["type"] not in PYTHON_TYPES:
        parts["type"] = insert_definitions(schema["type"], named, defined)
    if "fields" in schema:
        parts["fields"] = [
            {**field, "type": insert_definitions(field["type"], named, defined)} for field in schema["fields"]
        ]
    return {**schema, **parts}


def explain(error: Exception) -> str:
    """Return the reason of an error, with a sentence where the parser only gives a name."""
    reason = str(error)
    if isinstance(error, KeyError):
        return f"it has no {reason} where there must be one"
    if isinstance(error, fastavro.schema.UnknownType):
        return f"there is no type {reason}; define it, or add a reference to its subject"
    return reason or type(error).__name__


def full_type(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the definition of a type: without names, and without the redundant form {"type": {...}}."""
    while True:
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return {"type": schema}
            schema = named[schema]
        elif isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            schema = schema["type"]
        elif isinstance(schema, dict) and schema["type"] not in PYTHON_TYPES:
            schema = named[schema["type"]]
        else:
            return schema


SIMPLE_NODES: Mapping[str, Callable[[Any], nodes.Node]] = {
    "null": lambda _: nodes.NullNode(),
    "boolean": lambda _: nodes.BooleanNode(),
    "int": lambda _: nodes.WholeNode(32),
    "long": lambda _: nodes.WholeNode(64),
    "float": lambda _: nodes.FloatNode(False),
    "double": lambda _: nodes.FloatNode(True),
    "string": lambda _: nodes.StringNode(),
    "bytes": lambda _: nodes.BytesNode(),
    "fixed": lambda schema: nodes.FixedNode(schema["size"]),
    "enum": lambda schema: nodes.EnumNode(schema["symbols"]),
}
"""The nodes of types without parts."""


def build_writer(schema: AvroSchema) -> nodes.Writer:
    """Return the compiled writer of a schema."""
    return nodes.Writer(build_node(schema.root, schema.named, {}))


def build_node(schema: Any, named: Mapping[str, Any], made: dict[str, nodes.Node]) -> nodes.Node:
    """Return the node of a type; `made` has the records so far, which may contain themselves."""
    schema = full_type(schema, named)
    if isinstance(schema, list):
        return union_node(schema, named, made)
    kind = schema["type"]
    if kind in ("record", "error"):
        return record_node(schema, named, made)
    if kind == "array":
        node: nodes.Node = nodes.ArrayNode(build_node(schema["items"], named, made))
    elif kind == "map":
        node = nodes.MapNode(build_node(schema["values"], named, made))
    else:
        node = SIMPLE_NODES[kind](schema)
    prepare = logical_writer(schema)
    return node if prepare is None else nodes.PreparedNode(node, prepare, schema)


def logical_writer(schema: Any) -> Any:
    """Return the function with which fastavro converts values of a logical type; None if there is none."""
    logical = schema.get("logicalType")
    return None if logical is None else fastavro.write.LOGICAL_WRITERS.get(f"{schema['type']}-{logical}")


def record_node(schema: Any, named: Mapping[str, Any], made: dict[str, nodes.Node]) -> nodes.Node:
    name = schema["name"]
    if name in made:
        return made[name]
    node = nodes.RecordNode()
    made[name] = node
    fields = schema["fields"]
    node.fill(
        [field["name"] for field in fields],
        [build_node(field["type"], named, made) for field in fields],
        [field.get("default", nodes.MISSING) for field in fields],
    )
    return node if logical_writer(schema) is None else nodes.Node()


def union_node(branches: list[Any], named: Mapping[str, Any], made: dict[str, nodes.Node]) -> nodes.Node:
    """Return the node of a union, with the Python types that only one branch accepts."""
    numbers: dict[type, int] = {}
    ambiguous: set[type] = set()
    null_branch = -1
    for number, branch in enumerate(branches):
        definition = full_type(branch, named)
        kind = definition["type"]
        if kind == "null":
            null_branch = number
            continue
        accepted = PYTHON_TYPES[kind]
        if logical_writer(definition) is not None:
            accepted = (*accepted, *LOGICAL_TYPES.get(definition["logicalType"], ()))
        for python_type in accepted:
            if python_type in numbers:
                ambiguous.add(python_type)
            numbers[python_type] = number
    known = {python_type: number for python_type, number in numbers.items() if python_type not in ambiguous}
    return nodes.UnionNode([build_node(branch, named, made) for branch in branches], known, null_branch)


def has_unbounded_array(schema: Any, named: Mapping[str, Any]) -> bool:
    """Return True if an array has items that take no bytes, so that a value of some bytes can have any number of them."""
    seen: set[str] = set()

    def search(node: Any) -> bool:
        if isinstance(node, str):
            if node not in named or node in seen:
                return False
            seen.add(node)
            return search(named[node])
        if isinstance(node, list):
            return any(map(search, node))
        kind = node.get("type")
        if kind == "array":
            return takes_no_bytes(node["items"], named, frozenset()) or search(node["items"])
        if kind == "map":
            return search(node["values"])
        if kind in ("record", "error"):
            seen.add(node["name"])
            return any(search(field["type"]) for field in node["fields"])
        return isinstance(kind, dict | list) and search(kind)

    return search(schema)


def takes_no_bytes(schema: Any, named: Mapping[str, Any], above: frozenset[str]) -> bool:
    """Return True if every value of a schema is written as nothing. `above` are the records that contain it."""
    if isinstance(schema, str):
        if schema in above:
            return True
        return schema == "null" or (schema in named and takes_no_bytes(named[schema], named, above))
    if isinstance(schema, list):
        return False
    kind = schema.get("type")
    if kind in ("record", "error"):
        within = above | {schema["name"]}
        return all(takes_no_bytes(field["type"], named, within) for field in schema["fields"])
    if kind == "fixed":
        return bool(schema["size"] == 0)
    return kind == "null" or (isinstance(kind, dict) and takes_no_bytes(kind, named, above))
