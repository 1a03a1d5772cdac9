"""Pairs of schemas drawn from a grammar, and judged by other libraries: jsonschema and google.protobuf.

A pair is a schema and a variant of it. The registry's verdict is compared with the data: a reader that it calls compatible must
accept what the writer's schema produces. The opposite is not required: rules of registries are stricter than the data.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from jsonschema import Draft7Validator

from ottla.registry.errors import InvalidSchemaError
from ottla.registry.kinds.json_schema import JsonSchemaKind
from ottla.registry.kinds.protobuf import ProtobufKind

OVERLAPPING = "several branches of a oneOf accept it"
"""The one known reason why a compatible reader rejects data: registries compare the branches of oneOf as those of anyOf."""


BRANCHES = "branches are compared one by one, and several together may accept what one rejects"
UNDECIDED = (
    "a schema that rejects nothing in the values that were drawn, or rejects them all, is not recognised as such"
)
EXPLAINED = {
    "NOT_TYPE_EXTENDED": "only equal or narrower schemas in not are accepted",
    "SUM_TYPE_NARROWED": BRANCHES,
    "PRODUCT_TYPE_EXTENDED": BRANCHES,
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": BRANCHES,
    "COMBINED_TYPE_CHANGED": BRANCHES,
    "SUM_TYPE_EXTENDED": BRANCHES,
    "PRODUCT_TYPE_NARROWED": BRANCHES,
    "TYPE_NARROWED": "types are compared, not the values that bounds leave of them",
    "TYPE_CHANGED": "types are compared, not the values that bounds leave of them",
    "ENUM_ARRAY_NARROWED": "enumerations are compared without the type that rejects some of their values",
    "ITEM_CHANGED": UNDECIDED,
    "ITEM_ADDED": UNDECIDED,
    "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL": UNDECIDED,
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": UNDECIDED,
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": UNDECIDED,
    "ITEM_REMOVED": UNDECIDED,
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": UNDECIDED,
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": UNDECIDED,
    "ADDITIONAL_ITEMS_NARROWED": UNDECIDED,
    "ADDITIONAL_ITEMS_REMOVED": UNDECIDED,
    "PROPERTY_CHANGED": UNDECIDED,
    "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "a writer whose model is open may have sent the property with any value",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": UNDECIDED,
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": UNDECIDED,
    "PROPERTY_REMOVED_FROM_PARTIALLY_OPEN_CONTENT_MODEL": UNDECIDED,
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": UNDECIDED,
    "REQUIRED_ATTRIBUTE_ADDED": UNDECIDED,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": UNDECIDED,
    "ADDITIONAL_PROPERTIES_NARROWED": UNDECIDED,
    "ADDITIONAL_PROPERTIES_REMOVED": UNDECIDED,
    "MIN_LENGTH_ADDED": UNDECIDED,
    "MIN_LENGTH_INCREASED": UNDECIDED,
    "MAX_LENGTH_ADDED": UNDECIDED,
    "MAX_LENGTH_DECREASED": UNDECIDED,
    "MINIMUM_ADDED": UNDECIDED,
    "MINIMUM_INCREASED": UNDECIDED,
    "MAXIMUM_ADDED": UNDECIDED,
    "MAXIMUM_DECREASED": UNDECIDED,
    "EXCLUSIVE_MINIMUM_ADDED": UNDECIDED,
    "EXCLUSIVE_MINIMUM_INCREASED": UNDECIDED,
    "EXCLUSIVE_MAXIMUM_ADDED": UNDECIDED,
    "EXCLUSIVE_MAXIMUM_DECREASED": UNDECIDED,
    "MULTIPLE_OF_ADDED": UNDECIDED,
    "MULTIPLE_OF_CHANGED": UNDECIDED,
    "MIN_ITEMS_ADDED": UNDECIDED,
    "MIN_ITEMS_INCREASED": UNDECIDED,
    "MAX_ITEMS_ADDED": UNDECIDED,
    "MAX_ITEMS_DECREASED": UNDECIDED,
    "FIELD_SCALAR_KIND_CHANGED": "the drawn data of the field has the same meaning in both types, or the message is not used",
    "FIELD_NUMERIC_LABEL_CHANGED": "google.protobuf reads packed and single numbers alike; other readers do not",
    "FIELD_KIND_CHANGED": "bytes that are a message by chance, or the message is not used",
    "FIELD_NAMED_TYPE_CHANGED": "another message or enum whose fields agree; registries compare the names",
    "ONEOF_FIELD_REMOVED": "the data is kept as an unknown field; the user's code loses the case",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "only data with several members of the oneof loses one",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "only data with several members of the oneof loses one",
}
"""The differences for which the drawn data may show no loss, with the reason."""


class Outcome(NamedTuple):
    """The result of many pairs."""

    compatible: int
    unsound: list[str]
    """Pairs that the registry calls compatible, with data that the reader does not accept."""
    refuted: int
    """Pairs that the registry calls incompatible, with data that shows it."""
    overlapping: int
    """Pairs that the registry calls compatible, with data that several branches of the reader's oneOf accept."""
    strict: Counter[str]
    """The differences of pairs that the registry calls incompatible, for which no data was found."""


def judge_pairs(
    count: int,
    seed: int,
    draw: Callable[[random.Random], tuple[Any, Any]],
    find_loss: Callable[..., str | None],
    parse: Any,
) -> Outcome:
    """Draw pairs of a writer and a reader, and compare the verdicts."""
    rng = random.Random(seed)
    outcome = Outcome(0, [], 0, 0, Counter())
    compatible = refuted = overlapping = 0
    while compatible + refuted + sum(outcome.strict.values()) < count:
        writer, reader = draw(rng)
        try:
            parsed_writer, parsed_reader = parse(writer), parse(reader)
        except InvalidSchemaError:
            continue
        differences = parsed_reader.differences_from(parsed_writer)
        loss = find_loss(writer, reader, parsed_writer, parsed_reader, rng)
        if not differences:
            compatible += 1
            if loss is not None and loss.startswith(OVERLAPPING):
                overlapping += 1
            elif loss is not None:
                outcome.unsound.append(f"writer {writer}\nreader {reader}\n{loss}")
        elif loss is not None:
            refuted += 1
        else:
            outcome.strict[differences[0].split("'")[1]] += 1
    return outcome._replace(compatible=compatible, refuted=refuted, overlapping=overlapping)


# JSON Schema

KINDS = ("string", "integer", "number", "boolean", "null")


def draw_json_schema(rng: random.Random, depth: int = 3) -> Any:
    """Draw a schema of draft 7."""
    choice = rng.random()
    if depth == 0 or choice < 0.35:
        return draw_json_leaf(rng)

    def inner() -> Any:
        return draw_json_schema(rng, depth - 1)

    if choice < 0.65:
        names = rng.sample("abc", rng.randint(0, 3))
        schema: dict[str, Any] = {"type": "object", "properties": {name: inner() for name in names}}
        if rng.random() < 0.4:
            schema["additionalProperties"] = rng.choice([False, True, inner()])
        if names and rng.random() < 0.5:
            schema["required"] = rng.sample(names, 1)
        return schema
    if choice < 0.8:
        schema = {"type": "array", "items": inner() if rng.random() < 0.7 else [inner(), inner()]}
        if rng.random() < 0.3:
            schema[rng.choice(["minItems", "maxItems"])] = rng.randint(0, 2)
        return schema
    if choice < 0.95:
        return {rng.choice(["anyOf", "allOf", "oneOf"]): [inner() for _ in range(rng.randint(1, 3))]}
    return {"not": inner()}


def draw_json_leaf(rng: random.Random) -> Any:
    kind = rng.choice(KINDS)
    schema: Any = {"type": kind}
    if kind == "string" and rng.random() < 0.4:
        schema[rng.choice(["minLength", "maxLength"])] = rng.randint(0, 3)
    if kind in ("integer", "number") and rng.random() < 0.5:
        bound = rng.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
        schema[bound] = rng.randint(1, 3)
    if rng.random() < 0.15:
        schema = {"enum": rng.sample([1, 2, "a", "b", None, True], rng.randint(1, 3))}
    elif rng.random() < 0.1:
        schema = {"type": rng.sample(KINDS, 2)}
    return schema


def vary_json_schema(rng: random.Random, schema: Any) -> Any:
    """Return a schema with one or two changes somewhere in it."""
    varied = copy.deepcopy(schema)
    for _ in range(rng.randint(0, 2)):
        places = list(schemas_in(varied))
        place = rng.choice(places)
        new = draw_json_schema(rng, 1)
        if isinstance(place, dict) and "properties" in place and rng.random() < 0.6:
            name = rng.choice("abc")
            if name in place["properties"] and rng.random() < 0.5:
                del place["properties"][name]
            else:
                place["properties"][name] = new
        elif isinstance(place, dict) and isinstance(new, dict) and rng.random() < 0.5:
            place.clear()
            place.update(new)
        elif isinstance(place, dict) and place.get("type") == "integer":
            place["type"] = "number"
        elif isinstance(place, dict):
            keywords = [name for name in place if name not in ("type", "properties", "items")]
            if keywords:
                del place[rng.choice(keywords)]
    return varied


def schemas_in(schema: Any) -> Iterator[Any]:
    """Yield a schema and all schemas in it."""
    yield schema
    if not isinstance(schema, dict):
        return
    parts: list[Any] = [*schema.get("properties", {}).values(), schema.get("not"), schema.get("additionalProperties")]
    items = schema.get("items")
    parts += items if isinstance(items, list) else [items]
    for keyword in ("anyOf", "allOf", "oneOf"):
        parts += schema.get(keyword, [])
    for part in parts:
        if isinstance(part, dict):
            yield from schemas_in(part)


def draw_json_pair(rng: random.Random) -> tuple[Any, Any]:
    writer = draw_json_schema(rng)
    reader = vary_json_schema(rng, writer) if rng.random() < 0.8 else draw_json_schema(rng)
    return (writer, reader) if rng.random() < 0.5 else (reader, writer)


def parse_json_schema(schema: Any) -> Any:
    return JsonSchemaKind().parse(json.dumps(schema), ())


SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, 4, 6, 1.5, -1, "", "a", "b", "ab", "abcd"]


def draw_instance(rng: random.Random, schema: Any, depth: int = 4) -> Any:
    """Draw a value that a schema may accept; about half of them are what it describes."""
    if depth == 0 or not isinstance(schema, dict) or rng.random() < 0.15:
        return rng.choice([*SCALARS, [], {}, {"c": 1}, ["a"]])
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return draw_instance(rng, rng.choice(schema[keyword]), depth - 1)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        names = [
            name for name in schema.get("properties", {}) if rng.random() < 0.7 or name in schema.get("required", ())
        ]
        found = {name: draw_instance(rng, schema["properties"][name], depth - 1) for name in names}
        if rng.random() < 0.3:
            found[rng.choice("abcd")] = draw_instance(rng, schema.get("additionalProperties", True), depth - 1)
        return found
    if kind == "array":
        items = schema.get("items", True)
        kinds = items if isinstance(items, list) else [items] * rng.randint(0, 2)
        extra = [rng.choice(SCALARS)] if rng.random() < 0.2 else []
        return [*(draw_instance(rng, one, depth - 1) for one in kinds), *extra]
    fitting = [value for value in SCALARS if Draft7Validator(schema).is_valid(value)]
    return rng.choice(fitting or SCALARS)


def find_json_loss(writer: Any, reader: Any, _: Any, __: Any, rng: random.Random) -> str | None:
    """Return a value that the writer's schema accepts and the reader's does not."""
    accepts, reads = Draft7Validator(writer), Draft7Validator(reader)
    overlapping = None
    for value in [*SCALARS, *(draw_instance(rng, rng.choice([writer, reader])) for _ in range(60))]:
        if accepts.is_valid(value) and not reads.is_valid(value):
            if not Draft7Validator(with_any_of(reader)).is_valid(value):
                return f"value {value!r}"
            overlapping = f"{OVERLAPPING}: value {value!r}"
    return overlapping


def with_any_of(schema: Any) -> Any:
    """Return the schema with anyOf in place of oneOf."""
    return json.loads(json.dumps(schema).replace('"oneOf"', '"anyOf"'))


# Protobuf

INTEGERS = ("int32", "int64", "uint32", "uint64", "bool", "E")
NUMERIC = (*INTEGERS, "sint32", "sint64", "fixed32", "sfixed32", "fixed64", "sfixed64", "float", "double")
TYPES = (*NUMERIC, "string", "bytes", "B", "C")


class ProtoField(NamedTuple):
    name: str
    kind: str
    label: str
    """`repeated`, `optional`, `map`, `oneof` or nothing."""


ProtoFile = dict[str, dict[int, ProtoField]]
"""The fields of the messages A, B and C by number."""


def draw_proto_field(rng: random.Random, number: int) -> ProtoField:
    label = rng.choice(["", "", "", "repeated", "repeated", "optional", "map", "oneof"])
    return ProtoField(rng.choice("xyz") + str(number), rng.choice(TYPES), label)


def draw_proto_file(rng: random.Random) -> ProtoFile:
    """Draw the fields of three messages."""
    return {
        name: {number: draw_proto_field(rng, number) for number in rng.sample(range(1, 7), rng.randint(0, 4))}
        for name in "ABC"
    }


def vary_proto_file(rng: random.Random, file: ProtoFile) -> ProtoFile:
    """Return a file with up to three changes."""
    varied = {name: dict(fields) for name, fields in file.items()}
    for _ in range(rng.randint(0, 3)):
        fields = varied[rng.choice("AAB")]
        number = rng.choice(list(fields) or [1])
        field = fields.get(number)
        choice = rng.random()
        if field is None or choice < 0.2:
            new = rng.randint(1, 6)
            fields[new] = draw_proto_field(rng, new)
        elif choice < 0.35:
            del fields[number]
        elif choice < 0.7:
            near = next((group for group in NEAR if field.kind in group), TYPES)
            fields[number] = field._replace(kind=rng.choice(near if rng.random() < 0.6 else TYPES))
        elif choice < 0.9:
            fields[number] = field._replace(label=rng.choice(["", "repeated", "optional", "oneof"]))
        else:
            fields[number] = field._replace(name=f"w{number}")
    return varied


NEAR = (
    INTEGERS,
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("B", "C"),
)


def draw_proto_pair(rng: random.Random) -> tuple[ProtoFile, ProtoFile]:
    writer = draw_proto_file(rng)
    return writer, vary_proto_file(rng, writer)


def proto_text(file: ProtoFile) -> str:
    """Return the text of a file."""
    lines = ['syntax = "proto3"; package p; enum E { Z = 0; O = 1; T = 2; }']
    for name, fields in file.items():
        lines.append(f"message {name} {{")
        in_oneof = []
        for number, field in sorted(fields.items()):
            if field.label == "oneof":
                in_oneof.append(f"{field.kind} {field.name} = {number};")
            elif field.label == "map":
                lines.append(f"map<string, {field.kind}> {field.name} = {number};")
            else:
                lines.append(f"{field.label} {field.kind} {field.name} = {number};")
        lines += [f"oneof o {{ {' '.join(in_oneof)} }}"] if in_oneof else []
        lines.append("}")
    return "\n".join(lines)


def parse_proto(file: ProtoFile) -> Any:
    return ProtobufKind().parse(proto_text(file), ())


def message_class(parsed: Any) -> Any:
    """Return google.protobuf's class of the message A."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(parsed.formatted("serialized")))
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.A"))


def draw_scalar(rng: random.Random, kind: str) -> Any:
    """Draw a value other than the type's default."""
    if kind == "bool":
        return True
    if kind == "E":
        return rng.choice([1, 2])
    if kind in ("float", "double"):
        return rng.choice([0.5, -2.0, 1024.0])
    if kind == "string":
        return rng.choice(["a", "ab"])
    if kind == "bytes":
        return rng.choice([b"a", b"xyz"])  # other bytes than UTF-8 are not a string: a difference that is known
    return rng.choice([1, 2, 7]) if kind.startswith(("u", "fixed")) else rng.choice([1, 7, -3])


def fill(rng: random.Random, message: Any, file: ProtoFile, name: str, depth: int = 2) -> None:
    """Set fields of a message."""
    for field in file[name].values():
        if rng.random() < 0.2:
            continue
        for _ in range(2 if field.label == "repeated" else 1):
            if field.kind in file:
                if depth == 0:
                    continue
                whole = getattr(message, field.name)
                inner = whole.add() if field.label == "repeated" else whole["k"] if field.label == "map" else whole
                if field.label not in ("repeated", "map"):
                    inner.SetInParent()
                fill(rng, inner, file, field.kind, depth - 1)
            elif field.label == "repeated":
                getattr(message, field.name).append(draw_scalar(rng, field.kind))
            elif field.label == "map":
                getattr(message, field.name)["k"] = draw_scalar(rng, field.kind)
            else:
                setattr(message, field.name, draw_scalar(rng, field.kind))


def find_proto_loss(writer: ProtoFile, reader: ProtoFile, one: Any, other: Any, rng: random.Random) -> str | None:
    """Return how data of the writer is misread by google.protobuf with the reader's schema."""
    writes, reads = message_class(one), message_class(other)
    for _ in range(8):
        message, found = writes(), reads()
        fill(rng, message, writer, "A")
        try:
            found.ParseFromString(message.SerializeToString())
        except DecodeError as error:
            return f"{message}: {error}"
        if (problem := compare_messages(message, found)) is not None:
            return f"{message}: {problem}"
    return None


def compare_messages(written: Any, read: Any) -> str | None:
    """Return how a message differs from what was written; fields that the reader does not have are left out."""
    theirs = {field.number: field for field in read.DESCRIPTOR.fields}
    for unknown in UnknownFieldSet(read):
        if unknown.field_number in theirs:
            return f"field {unknown.field_number} has another wire type"
    for field, value in written.ListFields():
        other = theirs.get(field.number)
        if other is None:
            continue
        values, found = as_list(field, value), as_list(other, getattr(read, other.name))
        if not other.is_repeated and len(values) > 1:
            values = values[-1:]  # the last value counts, and messages are merged
        if len(values) != len(found):
            return f"field {field.number} has {len(found)} values instead of {len(values)}"
        merged = field.is_repeated and not other.is_repeated
        for before, after in zip(values, found, strict=True):
            if (problem := compare_values(before, after, merged)) is not None:
                return f"field {field.number}: {problem}"
    return None


def compare_values(before: Any, after: Any, merged: bool) -> str | None:
    """Return how one value differs; `merged` messages have fields of several."""
    is_message = hasattr(before, "ListFields")
    if is_message != hasattr(after, "ListFields"):
        return f"{before!r} became {after!r}"
    if is_message:
        return None if merged else compare_messages(before, after)
    return None if is_same(before, after) else f"{before!r} became {after!r}"


def as_list(field: Any, value: Any) -> list[Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return [value[key] for key in sorted(value)] if hasattr(value, "keys") else list(value)
    return list(value) if field.is_repeated else [value]


def is_same(before: Any, after: Any) -> bool:
    """Return True if a scalar has kept its meaning; integers are compared in 32 bits, as protobuf converts them."""
    plain = [one.encode() if isinstance(one, str) else one for one in (before, after)]
    if isinstance(before, bool) or isinstance(after, bool):
        return bool(before) == bool(after)
    if all(isinstance(one, int) for one in plain):
        return int(before) % (1 << 32) == int(after) % (1 << 32)
    return type(plain[0]) is type(plain[1]) and plain[0] == plain[1]
