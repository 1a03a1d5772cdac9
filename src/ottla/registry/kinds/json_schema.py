"""JSON Schema, drafts 4 to 2020-12: checked by jsonschema, with references resolved by referencing; compared here.

A reader is compatible if it accepts every value that the writer accepts. That cannot be decided for all of JSON Schema.
So the comparison is by keyword, with the names of Confluent's differences. It never calls an incompatible schema
compatible because of a keyword that it does not know: a keyword in `OPAQUE` that the reader adds or changes is a
difference. Schemas are never fetched; a reference that is not registered is an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urljoin

from ottla.extras import extra
from ottla.registry.errors import InvalidSchemaError, SchemaLimitError
from ottla.registry.kinds.kind import MOST_MESSAGES, Budget, NamedText, check_depth, difference

with extra("registry"):
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7

ALL_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))
UPPER_BOUNDS = {
    "maxLength": "MAX_LENGTH",
    "maximum": "MAXIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "maxItems": "MAX_ITEMS",
    "maxProperties": "MAX_PROPERTIES",
    "maxContains": "MAX_CONTAINS",
}
LOWER_BOUNDS = {
    "minLength": "MIN_LENGTH",
    "minimum": "MINIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
    "minItems": "MIN_ITEMS",
    "minProperties": "MIN_PROPERTIES",
}
COUNTS = frozenset(("minLength", "minItems", "minProperties"))
"""Lower bounds for which 0 is the same as none."""
OPAQUE = ("if", "then", "else", "contains", "minContains", "propertyNames", "pattern", "patternProperties")
"""Keywords that are compared as texts."""
ANNOTATIONS = frozenset(
    ("$id", "id", "$schema", "$comment", "title", "description", "default", "examples", "format", "definitions", "$defs",
     "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "deprecated", "readOnly", "writeOnly")
)  # fmt: skip
SUMS = ("anyOf", "oneOf")
GROUPS = (
    ("if", "then", "else"),
    ("items", "prefixItems", "additionalItems"),
    ("contains", "minContains", "maxContains"),
    ("maximum", "exclusiveMaximum"),
    ("minimum", "exclusiveMinimum"),
)
"""Keywords that depend on each other."""
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
MOST_HOPS = 64
"""The limit on references that lead to references."""
ABSENT = object()


class Node:
    """A schema as keywords, each with the resolver for its references. It may combine several schemas that all apply."""

    __slots__ = ("identity", "is_false", "keywords")

    def __init__(self, keywords: dict[str, tuple[Any, Any]], identity: tuple[int, ...], *, is_false: bool) -> None:
        self.keywords = keywords
        self.identity = identity
        """Equal for the same schema, so that recursion ends."""
        self.is_false = is_false
        """True for a schema that accepts nothing."""

    def get(self, keyword: str, default: Any = None) -> Any:
        """Return the value of a keyword."""
        found = self.keywords.get(keyword)
        return default if found is None else found[0]

    def child(self, keyword: str, *path: Any) -> Node:
        """Return a subschema."""
        value, resolver = self.keywords[keyword]
        for step in path:
            value = value[step]
        return make_node(value, resolver)

    def children(self, keyword: str) -> list[Node]:
        """Return the subschemas of a list."""
        found = self.keywords.get(keyword)
        return [] if found is None else [make_node(each, found[1]) for each in found[0]]

    @property
    def accepts_all(self) -> bool:
        """True if the schema has annotations alone."""
        return not self.is_false and self.keywords.keys() <= ANNOTATIONS

    def without(self, *keywords: str) -> Node:
        """Return the node without some keywords."""
        kept = {name: value for name, value in self.keywords.items() if name not in keywords}
        return Node(kept, (*self.identity, *map(hash, keywords)), is_false=self.is_false)


ANYTHING = Node({}, (0,), is_false=False)


def make_node(schema: Any, resolver: Any, hops: int = 0) -> Node:
    """Return the node of a schema, with its references followed."""
    if isinstance(schema, bool):
        return Node({}, (1 if schema else 2,), is_false=not schema)
    if not isinstance(schema, dict):
        raise InvalidSchemaError(f"expected a schema, got {json.dumps(schema)[:60]}")
    if hops > MOST_HOPS:
        raise SchemaLimitError(f"more than {MOST_HOPS} references lead to each other: end the chain with a schema")
    if ("$id" in schema or "id" in schema) and "$ref" not in schema:
        resolver = resolver.in_subresource(Resource.from_contents(schema, default_specification=DRAFT7))
    node = Node({name: (value, resolver) for name, value in schema.items()}, (id(schema),), is_false=False)
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if isinstance(reference := schema.get(keyword), str):
            resolved = resolver.lookup(reference)
            target = make_node(resolved.contents, resolved.resolver, hops + 1)
            node = combine(target, node.without(keyword))
    return node


def combine(first: Node, second: Node) -> Node:
    """Return a node that represents both of two schemas; a keyword of both becomes an element of allOf."""
    keywords, both = dict(first.keywords), []
    for name, value in second.keywords.items():
        if name in keywords and name not in ANNOTATIONS and keywords[name][0] != value[0]:
            if name == "required":
                value = sorted({*keywords[name][0], *value[0]}), value[1]
            elif (
                name == "properties"
                and not keywords[name][0].keys() & value[0].keys()
                and keywords[name][1] is value[1]
            ):
                value = {**keywords[name][0], **value[0]}, value[1]
            else:
                both.append((name, value))
                continue
        keywords[name] = value
    for name, (value, resolver) in both:
        parts, _ = keywords.get("allOf", ([], resolver))
        keywords["allOf"] = [*parts, {name: value}], resolver
    return Node(keywords, (*first.identity, *second.identity), is_false=first.is_false or second.is_false)


def merge_weaker(first: Node, second: Node) -> Node:
    """Return a node that accepts at least what both schemas accept.

    It represents a writer. Of keywords that depend on each other, one schema's are taken.
    """
    keywords = {name: value for name, value in first.keywords.items() if name not in UNEVALUATED}
    taken = set(keywords)
    for group in GROUPS:
        if taken & set(group):
            taken |= set(group)
    for name, value in second.keywords.items():
        if name not in taken and name not in UNEVALUATED:
            keywords[name] = value
        elif name == "required" and name in keywords:
            keywords[name] = sorted({*keywords[name][0], *value[0]}), value[1]
        elif name == "properties" and name in keywords and keywords[name][1] is value[1]:
            keywords[name] = {**value[0], **keywords[name][0]}, value[1]
    return Node(keywords, (*first.identity, -1, *second.identity), is_false=first.is_false or second.is_false)


class JsonSchema:
    """A parsed schema."""

    def __init__(self, source: Any, resolver: Any) -> None:
        self._source = source
        self._resolver = resolver
        self.canonical = json.dumps(source, ensure_ascii=False, separators=(",", ":"))

    def normalized(self) -> str:
        """Return the text with the members of all objects sorted."""
        return json.dumps(self._source, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def differences_from(self, writer: JsonSchema) -> list[str]:
        """Return why this schema rejects values that `writer` accepts."""
        if self.canonical == writer.canonical and 'Ref"' not in self.canonical and '"$ref"' not in self.canonical:
            return []
        try:
            own, other = make_node(self._source, self._resolver), make_node(writer._source, writer._resolver)
            return Comparison().compare(own, other, "#")
        except Unresolvable as error:
            raise InvalidSchemaError(f"reference {error.ref!r} cannot be resolved") from None


class JsonSchemaKind:
    """JSON Schema."""

    name = "JSON"

    def parse(self, text: str, references: Sequence[NamedText]) -> JsonSchema:
        """Parse a schema. Referenced schemas are known by their names, relative to its `$id`."""
        source = load_json(text, "")
        base = source.get("$id", source.get("id", "")) if isinstance(source, dict) else ""
        if not isinstance(base, str):
            raise InvalidSchemaError(f"invalid $id {base!r}: expected a text")
        known: Any = Registry()
        for reference in references:
            contents = load_json(reference.text, f"reference {reference.name!r}: ")
            resource = Resource.from_contents(contents, default_specification=DRAFT7)
            for name in {reference.name, urljoin(base, reference.name)}:
                known = known.with_resource(name, resource)
        root = Resource.from_contents(source, default_specification=DRAFT7)
        known = known.with_resource(base, root)
        check_schema(source)
        resolver = known.resolver(base)
        check_references(root, resolver)
        return JsonSchema(source, resolver)


def load_json(text: str, prefix: str) -> Any:
    """Return the JSON of a schema, which is an object or a boolean."""
    try:
        source = json.loads(text)
    except RecursionError:
        raise SchemaLimitError(f"{prefix}the schema is nested too deeply") from None
    except ValueError as error:
        raise InvalidSchemaError(f"{prefix}not JSON: {error}") from None
    if not isinstance(source, dict | bool):
        raise InvalidSchemaError(f"{prefix}expected an object or a boolean, got {text[:40]!r}")
    if isinstance(source, dict):
        check_depth(source)
        if not isinstance(source.get("$schema", ""), str):
            raise InvalidSchemaError(f"{prefix}invalid $schema: expected a text")
    return source


def check_schema(source: Any) -> None:
    """Raise InvalidSchemaError if a schema does not follow the rules of its draft."""
    try:
        validator = validator_for(source, default=validator_for({"$schema": "http://json-schema.org/draft-07/schema#"}))
        for error in validator(validator.META_SCHEMA).iter_errors(source):
            place = "/".join(map(str, ("#", *error.absolute_path)))
            raise InvalidSchemaError(f"{error.message[:300]} at {place}")
    except RecursionError:
        raise SchemaLimitError("the schema is nested too deeply") from None
    except SchemaError as error:
        raise InvalidSchemaError(error.message[:300]) from None


def check_references(root: Any, resolver: Any) -> None:
    """Raise InvalidSchemaError if a reference leads nowhere."""
    pending = [(root, resolver)]
    while pending:
        resource, resolver = pending.pop()
        if isinstance(resource.contents, dict):
            for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
                reference = resource.contents.get(keyword)
                try:
                    if isinstance(reference, str):
                        resolver.lookup(reference)
                except Unresolvable:
                    raise InvalidSchemaError(
                        f"reference {reference!r} cannot be resolved: register its schema, and name it in references"
                    ) from None
        pending += [(each, resolver.in_subresource(each)) for each in resource.subresources()]


class Comparison:
    """The differences between a reader's and a writer's schema."""

    def __init__(self) -> None:
        self._budget = Budget()
        self._compatible: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        """Pairs that are compatible. A pair that is being compared counts as compatible, which ends recursion."""
        self._trail: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self._kept: list[Node] = []
        """Compared nodes, so that identities stay unique."""

    def compare(self, reader: Node, writer: Node, path: str) -> list[str]:
        """Return the differences of two schemas at a path."""
        pair = reader.identity, writer.identity
        if reader.accepts_all or writer.is_false or pair in self._compatible:
            return []
        if reader.is_false:
            return [difference("TYPE_NARROWED", f'the schema at path "{path}" accepts nothing', path)]
        self._budget.spend()
        self._kept += (reader, writer)
        self._compatible.add(pair)
        self._trail.append(pair)
        return self._compare_combined(reader, writer, path)[:MOST_MESSAGES]

    def accepts(self, reader: Node, writer: Node, path: str) -> bool:
        """Return True if there are no differences. A failed comparison leaves no assumptions."""
        mark = len(self._trail)
        if not self.compare(reader, writer, path):
            return True
        self._compatible.difference_update(self._trail[mark:])
        del self._trail[mark:]
        return False

    def _compare_combined(self, reader: Node, writer: Node, path: str) -> list[str]:
        """Compare schemas that may have allOf, anyOf and oneOf."""
        if "allOf" in writer.keywords and not has_same(reader, writer, "allOf"):
            return self._compare_writers_product(reader, writer, path)
        if "allOf" in reader.keywords:
            return self._compare_product(reader, writer, path)
        for kind in SUMS:
            if kind in writer.keywords:
                return self._compare_writers_sum(reader, writer, kind, path)
        for kind in SUMS:
            if kind in reader.keywords:
                return self._compare_readers_sum(reader, writer, kind, path)
        return self._compare_keywords(reader, writer, path)

    def _compare_writers_product(self, reader: Node, writer: Node, path: str) -> list[str]:
        """Compare with each part of the writer's allOf: it is enough that the reader accepts the values of one."""
        merged = base = writer.without("allOf")
        parts = writer.children("allOf")
        for each in parts:
            merged = merge_weaker(merged, each)
        if any(self.accepts(reader, merge_weaker(each, base), path) for each in parts):
            return []
        return self.compare(reader, merged, path)

    def _compare_product(self, reader: Node, writer: Node, path: str) -> list[str]:
        """Each part of the reader's allOf must accept the writer, or a part of its allOf."""
        found = self.compare(
            reader.without("allOf"), writer.without("allOf") if has_same(reader, writer, "allOf") else writer, path
        )
        parts = [writer.without("allOf"), *writer.children("allOf")]
        for position, each in enumerate(reader.children("allOf")):
            place = f"{path}/allOf/{position}"
            if not any(self.accepts(each, part, place) for part in parts):
                found.append(
                    difference("PRODUCT_TYPE_EXTENDED", f'the product type at path "{place}" is stricter', path)
                )
        return found

    def _compare_writers_sum(self, reader: Node, writer: Node, kind: str, path: str) -> list[str]:
        """Every alternative of the writer must be accepted."""
        base, found = writer.without(kind), list[str]()
        for position, each in enumerate(writer.children(kind)):
            both = merge_weaker(each, base), merge_weaker(base, each)
            if not any(self.accepts(reader, one, path) for one in both):
                found.append(
                    difference(
                        "SUM_TYPE_NARROWED", f'alternative "{path}/{kind}/{position}" of the writer is rejected', path
                    )
                )
        return found

    def _compare_readers_sum(self, reader: Node, writer: Node, kind: str, path: str) -> list[str]:
        """One alternative must accept the writer's values. With oneOf a second one might, which is not decided."""
        found = self.compare(reader.without(kind), writer, path)
        if any(self.accepts(each, writer, path) for each in reader.children(kind)):
            return found
        return [
            *found,
            difference(
                "COMBINED_TYPE_SUBSCHEMAS_CHANGED", f'no alternative at path "{path}/{kind}" accepts the writer', path
            ),
        ]

    def _compare_keywords(self, reader: Node, writer: Node, path: str) -> list[str]:
        found: list[str] = []
        for check in CHECKS:
            found += check(self, reader, writer, path)
        return found

    def check_types(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        """Check type, enum, const and not."""
        missing = types_of(writer) - types_of(reader)
        if missing:
            yield difference("TYPE_NARROWED", f'the type at path "{path}" is narrower', ", ".join(sorted(missing)))
        own, other = values_of(reader), values_of(writer)
        if own is not None and (other is None or any(each not in own for each in other)):
            yield difference("ENUM_ARRAY_NARROWED", f'the enum at path "{path}/enum" lacks values of the writer', path)
        if "not" in reader.keywords:
            if "not" not in writer.keywords:
                yield difference("NOT_TYPE_EXTENDED", f'a "not" was added at path "{path}"', path)
            elif not self.accepts(writer.child("not"), reader.child("not"), f"{path}/not"):
                yield difference("NOT_TYPE_EXTENDED", f'the "not" at path "{path}" excludes more', path)

    def check_bounds(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        """Check numeric bounds, multipleOf and uniqueItems."""
        for table, is_stricter in ((UPPER_BOUNDS, less), (LOWER_BOUNDS, more)):
            for keyword, name in table.items():
                own, other = reader.get(keyword), writer.get(keyword)
                if own is None or isinstance(own, bool) or (own == 0 and keyword in COUNTS):
                    if own is True and other is not True:  # exclusive bounds of draft 4
                        yield difference(f"{name}_ADDED", f'{keyword} was added at path "{path}"', path)
                elif other is None or isinstance(other, bool):
                    yield difference(f"{name}_ADDED", f'{keyword} was added at path "{path}"', path)
                elif is_stricter(own, other):
                    change = "DECREASED" if table is UPPER_BOUNDS else "INCREASED"
                    yield difference(f"{name}_{change}", f'{keyword} at path "{path}" is stricter', f"{other} to {own}")
        own, other = reader.get("multipleOf"), writer.get("multipleOf")
        if own is not None and (other is None or not is_multiple(other, own)):
            yield difference("MULTIPLE_OF_CHANGED", f'multipleOf at path "{path}" rejects more', path)
        if reader.get("uniqueItems") and not writer.get("uniqueItems"):
            yield difference("UNIQUE_ITEMS_ADDED", f'uniqueItems was added at path "{path}"', path)

    def check_opaque(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        """Check keywords that are compared as texts."""
        for keyword in OPAQUE:
            own = reader.get(keyword, ABSENT)
            if own is not ABSENT and own != writer.get(keyword, ABSENT):
                yield difference(f"{keyword.upper()}_CHANGED", f'{keyword} at path "{path}" was added or changed', path)

    def check_dependencies(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        """Check dependencies of properties on others, or on schemas."""
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, own in (reader.get(keyword) or {}).items():
                other = (writer.get(keyword) or {}).get(name)
                place = f"{path}/{keyword}/{name}"
                if other is None or isinstance(own, list) != isinstance(other, list):
                    yield difference("DEPENDENCY_ADDED", f'a dependency was added at path "{place}"', name)
                elif isinstance(own, list):
                    if not set(own) <= set(other):
                        yield difference("DEPENDENCY_ARRAY_EXTENDED", f'"{place}" requires more properties', name)
                else:
                    yield from self.compare(reader.child(keyword, name), writer.child(keyword, name), place)

    def check_properties(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        """Check the properties of objects."""
        if "object" not in types_of(writer):
            return
        own, other = reader.get("properties") or {}, writer.get("properties") or {}
        for name in own.keys() & other.keys():
            place = f"{path}/properties/{name}"
            yield from self.compare(reader.child("properties", name), writer.child("properties", name), place)
        for name in sorted(own.keys() - other.keys()):
            yield from self._check_added_property(reader, writer, name, path)
        for name in sorted(other.keys() - own.keys()):
            if not self.accepts(rest_of(reader, "Properties", name), writer.child("properties", name), path):
                state = "CLOSED" if rest_of(reader, "Properties").is_false else "PARTIALLY_OPEN"
                yield difference(
                    f"PROPERTY_REMOVED_FROM_{state}_CONTENT_MODEL",
                    f'property "{path}/properties/{name}" was removed',
                    name,
                )
        for name in reader.get("required") or ():
            was_there = name in (writer.get("required") or ()) or (name in own and name not in other)
            if not was_there and not has_default(reader, name):
                yield difference("REQUIRED_ATTRIBUTE_ADDED", f'"{name}" at path "{path}" is required now', name)
        if not self.accepts(rest_of(reader, "Properties"), rest_of(writer, "Properties"), path):
            yield difference(
                "ADDITIONAL_PROPERTIES_NARROWED", f'additional properties at path "{path}" are restricted', path
            )

    def _check_added_property(self, reader: Node, writer: Node, name: str, path: str) -> Iterator[str]:
        rest = rest_of(writer, "Properties", name)
        place = f"{path}/properties/{name}"
        if not rest.is_false and not self.accepts(reader.child("properties", name), rest, place):
            kind = (
                "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
                if rest.accepts_all
                else "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
            )
            yield difference(kind, f'property "{place}" was added, and the writer allows other values for it', name)
        elif name in (reader.get("required") or ()) and not has_default(reader, name):
            yield difference(
                "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", f'required property "{place}" was added', name
            )

    def check_items(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        """Check the items of arrays: those at fixed positions, and the rest."""
        if "array" not in types_of(writer):
            return
        own, other = items_of(reader), items_of(writer)
        own_rest, other_rest = rest_items_of(reader), rest_items_of(writer)
        for position in range(max(len(own), len(other))):
            before = other[position] if position < len(other) else other_rest
            after = own[position] if position < len(own) else own_rest
            if not self.accepts(after, before, f"{path}/items/{position}"):
                change = (
                    "CHANGED" if position < min(len(own), len(other)) else "ADDED" if position < len(own) else "REMOVED"
                )
                yield difference(f"ITEM_{change}", f'item "{path}/items/{position}" rejects values of the writer', path)
        if not other_rest.is_false:
            yield from self.compare(own_rest, other_rest, f"{path}/items")


CHECKS: Sequence[Callable[[Comparison, Node, Node, str], Iterator[str]]] = (
    Comparison.check_types,
    Comparison.check_bounds,
    Comparison.check_opaque,
    Comparison.check_dependencies,
    Comparison.check_properties,
    Comparison.check_items,
)


def has_same(reader: Node, writer: Node, keyword: str) -> bool:
    """Return True if a keyword has the same value in both schemas, with references into the same schema."""
    own, other = reader.keywords.get(keyword), writer.keywords.get(keyword)
    return own is not None and other is not None and own[0] == other[0] and "$ref" not in json.dumps(own[0])


def less(own: float, other: float) -> bool:
    return own < other


def more(own: float, other: float) -> bool:
    return own > other


def is_multiple(value: float, factor: float) -> bool:
    """Return True if a number is a multiple of another one, within the precision of floats."""
    ratio = value / factor
    return abs(ratio - round(ratio)) < 1e-9


def types_of(node: Node) -> frozenset[str]:
    """Return the types that a schema accepts; a number may be an integer."""
    given = node.get("type")
    if given is None:
        return ALL_TYPES
    types = frozenset((given,) if isinstance(given, str) else given)
    return types | {"integer"} if "number" in types else types


def values_of(node: Node) -> list[Any] | None:
    """Return the values of enum or const, None without."""
    if "const" in node.keywords:
        return [distinct(node.get("const"))]
    values: list[Any] | None = node.get("enum")
    return None if values is None else [distinct(value) for value in values]


def distinct(value: Any) -> Any:
    """Return a value in which true and 1 differ, as they do in JSON and not in Python."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, list):
        return [distinct(each) for each in value]
    return {name: distinct(each) for name, each in value.items()} if isinstance(value, dict) else value


def has_default(node: Node, name: str) -> bool:
    """Return True if a property has a default."""
    schema = (node.get("properties") or {}).get(name)
    return isinstance(schema, Mapping) and "default" in schema


def rest_of(node: Node, kind: str, name: str | None = None) -> Node:
    """Return the schema of properties that are not listed; one with a name may match a pattern."""
    if name is not None:
        for pattern in node.get("patternProperties") or {}:
            if matches(pattern, name):
                return node.child("patternProperties", pattern)
    for keyword in (f"additional{kind}", f"unevaluated{kind}"):
        if keyword in node.keywords:
            return node.child(keyword)
    return ANYTHING


def matches(pattern: str, name: str) -> bool:
    """Return True if a pattern is a plain prefix, suffix or text that the name has.

    Other patterns count as not matching: they could take a regular expression engine any time.
    """
    plain = pattern.removeprefix("^").removesuffix("$")
    if not all(each.isalnum() or each in "_- " for each in plain):
        return pattern in (".*", "^.*$")
    if pattern.startswith("^") and pattern.endswith("$"):
        return name == plain
    test = partial(str.startswith if pattern.startswith("^") else str.__contains__, name)
    return name.endswith(plain) if pattern.endswith("$") else bool(test(plain))


def items_of(node: Node) -> list[Node]:
    """Return the schemas of the items at fixed positions."""
    if "prefixItems" in node.keywords:
        return node.children("prefixItems")
    return node.children("items") if isinstance(node.get("items"), list) else []


def rest_items_of(node: Node) -> Node:
    """Return the schema of the items after those at fixed positions."""
    if "items" in node.keywords and not isinstance(node.get("items"), list):
        return node.child("items")
    for keyword in ("additionalItems", "unevaluatedItems"):
        if keyword in node.keywords and (keyword != "additionalItems" or isinstance(node.get("items"), list)):
            return node.child(keyword)
    return ANYTHING
