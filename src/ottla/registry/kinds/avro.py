"""Avro: parsed by fastavro, compared by the rules for schema resolution of the Avro specification.

The canonical text has the members in the order in which Avro's Java library prints them, so that a registry of Confluent
and this one give the same schema the same id. The names of error types are those of Java's SchemaCompatibility.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.extras import extra
from ottla.registry.errors import InvalidSchemaError
from ottla.registry.kinds.kind import MOST_MESSAGES, Budget, NamedText, check_depth, difference

with extra("registry"):
    import fastavro
    from fastavro.schema import SchemaParseException

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NAMED = frozenset(("record", "error", "enum", "fixed"))
PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""The types of a writer that each type of a reader accepts besides its own."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
NO_DEFAULT = object()
OWN_MEMBERS = {
    "record": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "error": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "enum": ("type", "name", "namespace", "doc", "symbols", "default", "aliases"),
    "fixed": ("type", "name", "namespace", "doc", "size", "aliases"),
    "array": ("type", "items"),
    "map": ("type", "values"),
}
FIELD_MEMBERS = ("name", "type", "doc", "default", "order", "aliases")


class Node:
    """A type. A type that contains itself is a cycle of nodes."""

    __slots__ = ("aliases", "branches", "default", "fields", "items", "kind", "name", "props", "size", "symbols")

    def __init__(self, kind: str, name: str = "") -> None:
        self.kind = kind
        self.name = name
        """The full name; empty for a type without a name."""
        self.aliases: frozenset[str] = frozenset()
        self.fields: list[Field] = []
        self.symbols: list[str] = []
        self.branches: list[Node] = []
        self.items: Node | None = None
        self.size = 0
        self.default: Any = NO_DEFAULT
        self.props: dict[str, Any] = {}

    @property
    def inner(self) -> Node:
        """The type of the items of an array or the values of a map."""
        assert self.items is not None
        return self.items

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]


class Field:
    """A field of a record."""

    __slots__ = ("aliases", "default", "name", "node")

    def __init__(self, name: str, node: Node, default: Any, aliases: Sequence[str]) -> None:
        self.name = name
        self.node = node
        self.default = default
        self.aliases = aliases


class AvroSchema:
    """A parsed schema."""

    def __init__(self, node: Node, canonical: str, source: Any, known: Mapping[str, Node]) -> None:
        self._node = node
        self._source = source
        self._known = known
        self.canonical = canonical

    def normalized(self) -> str:
        """Return the text with further members sorted by name."""
        return print_schema(self._source, is_sorted=True)

    def differences_from(self, writer: AvroSchema) -> list[str]:
        """Return why data of `writer` cannot be read with this schema."""
        return Comparison().compare(self._node, writer._node)


class AvroKind:
    """Avro."""

    name = "AVRO"

    def parse(self, text: str, references: Sequence[NamedText]) -> AvroSchema:
        """Parse a schema. The types of referenced schemas are known by their full names."""
        known: dict[str, Node] = {}
        named: dict[str, Any] = {}
        for reference in references:
            parse_one(reference.text, known, named, f"reference {reference.name!r}: ")
        node, source = parse_one(text, known, named, "")
        return AvroSchema(node, print_schema(source), source, known)


def parse_one(text: str, known: dict[str, Node], named: dict[str, Any], prefix: str) -> tuple[Node, Any]:
    """Return the node and the JSON of a text, and add its named types to `known`, and for fastavro to `named`."""
    try:
        source = json.loads(text)
    except RecursionError:
        raise InvalidSchemaError(f"{prefix}the schema is nested too deeply: use named types") from None
    except ValueError as error:
        if NAME.match(text.strip().rpartition(".")[2] or "-"):  # Avro's own parser also accepts a bare name
            source = text.strip()
        else:
            raise InvalidSchemaError(f"{prefix}not JSON: {error}") from None
    if isinstance(source, dict | list):
        check_depth(source)
    try:
        fastavro.parse_schema(source, named_schemas=named)
        return Parser(known).parse(source, ""), source
    except RecursionError:
        raise InvalidSchemaError(f"{prefix}the schema is nested too deeply: use named types") from None
    except (
        SchemaParseException,
        fastavro.schema.UnknownType,
        InvalidSchemaError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise InvalidSchemaError(f"{prefix}{describe_error(error)}") from None


def describe_error(error: Exception) -> str:
    """Return the reason for which a schema was rejected, in words."""
    if isinstance(error, KeyError):
        return f"member {error} is missing"
    if isinstance(error, fastavro.schema.UnknownType):
        return f"unknown type {error.name!r}: expected a primitive type, or a named type that is defined before"
    return str(error) or type(error).__name__


class Parser:
    """Turns JSON into nodes, and checks what fastavro does not."""

    def __init__(self, known: dict[str, Node]) -> None:
        self._known = known

    def parse(self, source: Any, space: str) -> Node:
        """Return the node of a type within a namespace."""
        if isinstance(source, str):
            return Node(source) if source in PRIMITIVES else self._find(source, space)
        if isinstance(source, list):
            return self._parse_union(source, space)
        if not isinstance(source, dict):
            raise InvalidSchemaError(f"expected a type, got {json.dumps(source)[:60]}")
        kind = source.get("type")
        if isinstance(kind, dict | list):
            return self.parse(kind, space)
        if kind in PRIMITIVES:
            return Node(kind)
        if kind in ("array", "map"):
            node = Node(kind)
            node.items = self.parse(source["items" if kind == "array" else "values"], space)
            return node
        if kind in NAMED:
            return self._parse_named(kind, source, space)
        if not isinstance(kind, str):
            raise InvalidSchemaError("member 'type' is missing")
        return self._find(kind, space)

    def _find(self, name: str, space: str) -> Node:
        node = self._known.get(name if "." in name or not space else f"{space}.{name}")
        if node is None and "." not in name:
            node = self._known.get(name)
        if node is None:
            raise InvalidSchemaError(
                f"unknown type {name!r}: expected a primitive type, or a named type that is defined before"
            )
        return node

    def _parse_union(self, source: list[Any], space: str) -> Node:
        node = Node("union")
        node.branches = [self.parse(each, space) for each in source]
        seen = set()
        for branch in node.branches:
            if branch.kind == "union":
                raise InvalidSchemaError("a union may not contain another union directly")
            label = branch.name or branch.kind
            if label in seen:
                raise InvalidSchemaError(f"a union may contain {label!r} only once")
            seen.add(label)
        return node

    def _parse_named(self, kind: str, source: dict[str, Any], space: str) -> Node:
        full, space = full_name(source, space)
        if full in self._known:
            raise InvalidSchemaError(f"type {full!r} is defined twice")
        node = Node("record" if kind == "error" else kind, full)
        node.aliases = frozenset(
            each if "." in each or not space else f"{space}.{each}" for each in source.get("aliases") or ()
        )
        self._known[full] = node
        if kind == "fixed":
            node.size = source["size"]
            if not isinstance(node.size, int) or node.size < 0:
                raise InvalidSchemaError(f"fixed {full!r}: invalid size {node.size!r}: expected a number of bytes")
        elif kind == "enum":
            node.symbols = source["symbols"]
            for symbol in node.symbols:
                check_name(symbol, f"symbol of enum {full!r}")
            if len(set(node.symbols)) != len(node.symbols):
                raise InvalidSchemaError(f"enum {full!r} has a symbol twice")
            node.default = source.get("default", NO_DEFAULT)
            if node.default is not NO_DEFAULT and node.default not in node.symbols:
                raise InvalidSchemaError(
                    f"enum {full!r}: default {node.default!r} is not one of its symbols {node.symbols}"
                )
        else:
            self._parse_fields(node, source, space)
        return node

    def _parse_fields(self, node: Node, source: dict[str, Any], space: str) -> None:
        names = set()
        if not isinstance(source["fields"], list):
            raise InvalidSchemaError(f"record {node.name!r}: fields is not a list")
        for each in source["fields"]:
            name = each["name"]
            check_name(name, f"field of record {node.name!r}")
            if name in names:
                raise InvalidSchemaError(f"record {node.name!r} has field {name!r} twice")
            names.add(name)
            aliases = each.get("aliases") or ()
            field = Field(name, self.parse(each["type"], space), each.get("default", NO_DEFAULT), aliases)
            node.fields.append(field)
            if field.default is not NO_DEFAULT and not fits(field.default, field.node):
                raise InvalidSchemaError(
                    f"record {node.name!r}: default {json.dumps(field.default)[:60]} of field {name!r} does not fit its "
                    f"type {field.node.name or field.node.kind}"
                )


def check_name(name: object, what: str) -> None:
    """Raise InvalidSchemaError if a name breaks the rules of the specification."""
    if not isinstance(name, str) or not NAME.match(name):
        raise InvalidSchemaError(f"invalid name {name!r} for a {what}: expected letters, digits and _, no digit first")


def full_name(source: Mapping[str, Any], space: str) -> tuple[str, str]:
    """Return the full name of a named type and the namespace for the types in it."""
    name = source["name"]
    if not isinstance(name, str):
        raise InvalidSchemaError(f"invalid name {name!r}: expected a text")
    own, dot, short = name.rpartition(".")
    if not dot:
        own = source.get("namespace", space) or ""
    check_name(short, "type")
    for part in own.split(".") if own else ():
        check_name(part, "namespace")
    return (f"{own}.{short}" if own else short), own


def is_integer(value: Any, bits: int) -> bool:
    """Return True if a JSON value is an integer of so many bits and a sign."""
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits


def is_number(value: Any) -> bool:
    """Return True if a JSON value is a number, or a text for one that JSON lacks."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value)
    return value in ("NaN", "Infinity", "-Infinity")


FITS: Mapping[str, Callable[[Any, Node], bool]] = {
    "null": lambda value, node: value is None,
    "boolean": lambda value, node: isinstance(value, bool),
    "int": lambda value, node: is_integer(value, 31),
    "long": lambda value, node: is_integer(value, 63),
    "float": lambda value, node: is_number(value),
    "double": lambda value, node: is_number(value),
    "bytes": lambda value, node: isinstance(value, str),
    "string": lambda value, node: isinstance(value, str),
    "fixed": lambda value, node: isinstance(value, str) and len(value) == node.size,
    "enum": lambda value, node: value in node.symbols,
    "array": lambda value, node: isinstance(value, list) and all(fits(each, node.inner) for each in value),
    "map": lambda value, node: isinstance(value, dict) and all(fits(each, node.inner) for each in value.values()),
    "union": lambda value, node: any(fits(value, each) for each in node.branches),
    "record": lambda value, node: (
        isinstance(value, dict)
        and all(
            fits(value[each.name], each.node) if each.name in value else each.default is not NO_DEFAULT
            for each in node.fields
        )
    ),
}
"""The check of a default for each kind of type. For a union, it may be of any branch (Avro 1.12)."""


def fits(value: Any, node: Node) -> bool:
    """Return True if a JSON value is a valid default for a type."""
    return FITS[node.kind](value, node)


class Comparison:
    """The differences between a reader's and a writer's schema."""

    def __init__(self) -> None:
        self._budget = Budget()
        self._compatible: set[tuple[int, int]] = set()
        """Pairs that are compatible. A pair that is being compared counts as compatible, which ends recursion."""
        self._trail: list[tuple[int, int]] = []
        """The pairs that count as compatible, in the order in which they were found."""

    def compare(self, reader: Node, writer: Node, path: str = "") -> list[str]:
        """Return the differences of two types at a path."""
        pair = id(reader), id(writer)
        if pair in self._compatible:
            return []
        self._budget.spend()
        self._compatible.add(pair)
        self._trail.append(pair)
        found = self._compare_kinds(reader, writer, path)
        return found[:MOST_MESSAGES]

    def _compare_kinds(self, reader: Node, writer: Node, path: str) -> list[str]:
        if writer.kind == "union":
            return [each for branch in writer.branches for each in self.compare(reader, branch, path)]
        if reader.kind == "union":
            return self._find_branch(reader, writer, path)
        if reader.kind != writer.kind:
            if writer.kind in PROMOTIONS.get(reader.kind, ()):
                return []
            return [
                difference(
                    "TYPE_MISMATCH",
                    f'type {reader.kind} at path "{path or "/"}" cannot read type {writer.kind} of the writer',
                    f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
                )
            ]
        match reader.kind:
            case "array" | "map":
                inside = "items" if reader.kind == "array" else "values"
                return self.compare(reader.inner, writer.inner, f"{path}/{inside}")
            case "record":
                return self._compare_names(reader, writer, path) + self._compare_fields(reader, writer, path)
            case "enum":
                return self._compare_names(reader, writer, path) + self._compare_symbols(reader, writer, path)
            case "fixed":
                found = self._compare_names(reader, writer, path)
                if reader.size != writer.size:
                    found.append(
                        difference(
                            "FIXED_SIZE_MISMATCH",
                            f'the size of fixed {reader.name} at path "{path}/size" differs',
                            f"expected: {writer.size}, found: {reader.size}",
                        )
                    )
                return found
        return []

    def _compare_names(self, reader: Node, writer: Node, path: str) -> list[str]:
        if reader.short_name == writer.short_name or writer.name in reader.aliases:
            return []
        return [
            difference(
                "NAME_MISMATCH",
                f'the name of the type at path "{path}/name" has changed, and no alias has the old name',
                f"expected: {writer.name}, found: {reader.name}",
            )
        ]

    def _compare_fields(self, reader: Node, writer: Node, path: str) -> list[str]:
        by_name = {each.name: each for each in writer.fields}
        found: list[str] = []
        for position, field in enumerate(reader.fields):
            names = [name for name in (field.name, *field.aliases) if name in by_name]
            if names:
                found += self.compare(field.node, by_name[names[0]].node, f"{path}/fields/{position}/type")
            elif field.default is NO_DEFAULT:
                found.append(
                    difference(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        f'field "{field.name}" at path "{path}/fields/{position}" has no default, and the writer lacks it',
                        field.name,
                    )
                )
        return found

    def _compare_symbols(self, reader: Node, writer: Node, path: str) -> list[str]:
        own = set(reader.symbols)
        missing = [each for each in writer.symbols if each not in own]
        if not missing or reader.default is not NO_DEFAULT:
            return []
        return [
            difference(
                "MISSING_ENUM_SYMBOLS",
                f'enum {reader.name} at path "{path}/symbols" lacks symbols of the writer and has no default',
                f"[{', '.join(missing)}]",
            )
        ]

    def _find_branch(self, reader: Node, writer: Node, path: str) -> list[str]:
        """Compare a union of the reader with a type of the writer. A failed branch must leave no assumption."""
        for position, branch in enumerate(reader.branches):
            mark = len(self._trail)
            if not self.compare(branch, writer, f"{path}/{position}"):
                return []
            self._compatible.difference_update(self._trail[mark:])
            del self._trail[mark:]
        return [
            difference(
                "MISSING_UNION_BRANCH",
                f'the union at path "{path or "/"}" lacks a type of the writer',
                f"reader union lacking writer type: {writer.kind.upper()}",
            )
        ]


def print_schema(source: Any, *, is_sorted: bool = False) -> str:
    """Return the text of a schema in the order of members that Avro's Java library has."""
    return json.dumps(order(source, "", is_sorted), ensure_ascii=False, separators=(",", ":"))


def order(source: Any, space: str, is_sorted: bool) -> Any:
    """Return the JSON of a type with its members in order; names are relative to the namespace around them."""
    if isinstance(source, list):
        return [order(each, space, is_sorted) for each in source]
    if isinstance(source, str):
        return source if source in PRIMITIVES else relative_name(source, space)
    kind = source["type"]
    if isinstance(kind, dict | list):
        return order(kind, space, is_sorted)
    others = {name: value for name, value in source.items() if name not in OWN_MEMBERS.get(kind, ("type",))}
    if is_sorted:
        others = dict(sorted(others.items()))
    if kind in NAMED:
        return order_named(source, space, is_sorted, others)
    if kind in ("array", "map"):
        inside = "items" if kind == "array" else "values"
        return {"type": kind, inside: order(source[inside], space, is_sorted), **others}
    return {"type": kind, **others} if others and kind in PRIMITIVES else order(kind, space, is_sorted)


def order_named(source: dict[str, Any], space: str, is_sorted: bool, others: dict[str, Any]) -> dict[str, Any]:
    """Return a record, enum or fixed with its members in order."""
    full, inner = full_name(source, space)
    ordered: dict[str, Any] = {"type": source["type"], "name": full.rpartition(".")[2]}
    if inner != space:
        ordered["namespace"] = inner
    ordered.update({name: source[name] for name in ("doc", "size", "symbols") if source.get(name)})
    if source["type"] == "enum" and "default" in source:
        ordered["default"] = source["default"]
    if "fields" in source:
        ordered["fields"] = [order_field(each, inner, is_sorted) for each in source["fields"]]
    ordered.update(others)
    if source.get("aliases"):
        ordered["aliases"] = [relative_name(each, inner) for each in source["aliases"]]
    return ordered


def order_field(source: dict[str, Any], space: str, is_sorted: bool) -> dict[str, Any]:
    """Return a field with its members in order."""
    ordered: dict[str, Any] = {"name": source["name"], "type": order(source["type"], space, is_sorted)}
    if source.get("doc"):
        ordered["doc"] = source["doc"]
    if "default" in source:
        ordered["default"] = source["default"]
    if source.get("order", "ascending") != "ascending":
        ordered["order"] = source["order"]
    if source.get("aliases"):
        ordered["aliases"] = source["aliases"]
    others = {name: value for name, value in source.items() if name not in FIELD_MEMBERS}
    return ordered | (dict(sorted(others.items())) if is_sorted else others)


def relative_name(name: str, space: str) -> str:
    """Return a name without its namespace if that is the one around it."""
    own, _, short = name.rpartition(".")
    return short if own == space else name
