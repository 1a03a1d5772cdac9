"""Compatibility of pairs of schemas, in each format; properties over drawn pairs; limits."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_one
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from ottla.registry.compatibility import LEVELS, Earlier, check_compatibility
from ottla.registry.errors import InvalidSchemaError
from ottla.registry.kinds.avro import AvroKind
from ottla.registry.kinds.json_schema import JsonSchemaKind
from ottla.registry.kinds.kind import NamedText
from ottla.registry.kinds.protobuf import ProtobufKind

PROTO3 = 'syntax = "proto3"; '


def avro(schema: Any) -> Any:
    return AvroKind().parse(json.dumps(schema), ())


def json_schema(schema: Any) -> Any:
    return JsonSchemaKind().parse(json.dumps(schema), ())


def protobuf(text: str, syntax: str = PROTO3) -> Any:
    return ProtobufKind().parse(syntax + text, ())


def errors_of(messages: list[str]) -> list[str]:
    """Return the names of the differences."""
    return [each.split("'")[1] for each in messages]


def avro_record(*fields: Any, name: str = "R", **others: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **others}


def field(name: str, kind: Any, **others: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **others}


X = field("x", "int")
LIST = avro_record(X, field("next", ["null", "R"]))
COLOR = {"type": "enum", "name": "C", "symbols": ["A", "B"]}

AVRO_PAIRS: list[tuple[str, Any, Any, list[str]]] = [
    ("int to long", "long", "int", []),
    ("int to double", "double", "int", []),
    ("long to float", "float", "long", []),
    ("float to double", "double", "float", []),
    ("bytes to string", "string", "bytes", []),
    ("string to bytes", "bytes", "string", []),
    ("long to int", "int", "long", ["TYPE_MISMATCH"]),
    ("double to float", "float", "double", ["TYPE_MISMATCH"]),
    ("a field with default added", avro_record(X, field("y", "int", default=1)), avro_record(X), []),
    ("a field without default added", avro_record(X, field("y", "int")), avro_record(X), ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
    ("a field removed", avro_record(X), avro_record(X, field("y", "int")), []),
    ("a field renamed with alias", avro_record(field("z", "int", aliases=["x"])), avro_record(X), []),
    ("a record renamed", avro_record(X, name="S"), avro_record(X), ["NAME_MISMATCH"]),
    ("a record renamed with alias", avro_record(X, name="S", aliases=["R"]), avro_record(X), []),
    ("another namespace", avro_record(X, namespace="b"), avro_record(X, namespace="a"), []),
    ("a union extended", ["null", "int", "string"], ["null", "int"], []),
    ("a union narrowed", ["null", "int"], ["null", "int", "string"], ["MISSING_UNION_BRANCH"]),
    ("a type to a union", ["null", "int"], "int", []),
    ("a union to a type that takes all", "long", ["int", "long"], []),
    ("a union to a type", "int", ["null", "int"], ["TYPE_MISMATCH"]),
    ("a symbol added", {**COLOR, "symbols": ["A", "B", "C"]}, COLOR, []),
    ("a symbol removed", {**COLOR, "symbols": ["A"]}, COLOR, ["MISSING_ENUM_SYMBOLS"]),
    ("a symbol removed, with default", {**COLOR, "symbols": ["A"], "default": "A"}, COLOR, []),
    ("another size", {"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 8}, ["FIXED_SIZE_MISMATCH"]),
    ("items promoted", {"type": "array", "items": "long"}, {"type": "array", "items": "int"}, []),
    ("values changed", {"type": "map", "values": "int"}, {"type": "map", "values": "string"}, ["TYPE_MISMATCH"]),
    ("recursive, equal", LIST, LIST, []),
    ("recursive, promoted", avro_record(field("x", "long"), field("next", ["null", "R"])), LIST, []),
    ("recursive, changed", LIST, avro_record(field("x", "string"), field("next", ["null", "R"])), ["TYPE_MISMATCH"]),
    ("nested", avro_record(field("r", avro_record(X, name="I"))), avro_record(field("r", avro_record(name="I"))), ["READER_FIELD_MISSING_DEFAULT_VALUE"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reader", "writer", "expected"), AVRO_PAIRS)
def test_avro_pairs_are_judged_by_the_rules_of_resolution(
    name: str, reader: Any, writer: Any, expected: list[str]
) -> None:
    assert errors_of(avro(reader).differences_from(avro(writer))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{", "5", '{"type":"recor"}', '{"type":"record","name":"1a","fields":[]}', '["int","int"]', '["int",["null"]]',
        '{"type":"record","name":"A"}', '{"type":"record","name":"A","fields":[{"name":"x","type":"int","default":"a"}]}',
        '{"type":"enum","name":"E","symbols":["A","A"]}', '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
        '{"type":"fixed","name":"F","size":-1}', '{"type":"array"}', '{"type":null}', "[" * 2_000 + "]" * 2_000,
        '{"type":"record","name":"A","fields":[{"name":"x","type":"int"},{"name":"x","type":"int"}]}',
    ],
)  # fmt: skip
def test_an_invalid_avro_schema_has_a_reason(text: str) -> None:
    with pytest.raises(InvalidSchemaError) as raised:
        AvroKind().parse(text, ())
    assert len(str(raised.value)) > 5


def test_avros_canonical_text_has_the_order_of_avros_java_library() -> None:
    given_text = """{"fields": [{"type": {"type": "string"}, "name": "f", "doc": "d", "aliases": ["g"], "default": "x"}],
        "name": "a.b.R", "type": "record", "extra": 1, "aliases": ["Old"], "doc": "text"}"""

    assert AvroKind().parse(given_text, ()).canonical == (
        '{"type":"record","name":"R","namespace":"a.b","doc":"text","fields":[{"name":"f","type":"string","doc":"d",'
        '"default":"x","aliases":["g"]}],"extra":1,"aliases":["Old"]}'
    )


@st.composite
def avro_types(draw: st.DrawFn, depth: int = 2) -> Any:
    """A type; named types have few names, so that two drawn schemas often match."""
    plain = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
    if depth == 0:
        return draw(plain)
    match draw(st.integers(0, 6)):
        case 0:
            return {"type": "array", "items": draw(avro_types(depth - 1))}
        case 1:
            return {"type": "map", "values": draw(avro_types(depth - 1))}
        case 2:
            names = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
            fields = [field(each, draw(avro_types(0))) for each in names]
            for each in fields:
                if each["type"] == "int" and draw(st.booleans()):
                    each["default"] = 1
            return avro_record(*fields, name=f"R{depth}")
        case 3:
            symbols = draw(st.lists(st.sampled_from("ABC"), unique=True, min_size=1))
            return {"type": "enum", "name": f"E{depth}", "symbols": symbols}
        case 4:
            return draw(st.lists(plain, unique=True, min_size=1, max_size=4))
        case _:
            return draw(plain)


@given(avro_types(), avro_types())
def test_fastavro_reads_the_data_of_every_pair_that_is_compatible(reader: Any, writer: Any) -> None:
    if avro(reader).differences_from(avro(writer)):
        return
    out = io.BytesIO()
    fastavro.schemaless_writer(out, writer, generate_one(writer))
    out.seek(0)
    try:
        fastavro.schemaless_reader(out, writer, reader)
    except UnicodeDecodeError:  # bytes that are no text, for a reader of strings
        assert "bytes" in json.dumps(writer)


@given(avro_types())
def test_a_schema_reads_its_own_data_and_its_canonical_text_is_stable(schema: Any) -> None:
    parsed = avro(schema)

    assert parsed.differences_from(avro(schema)) == []
    assert AvroKind().parse(parsed.canonical, ()).canonical == parsed.canonical


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def open_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def closed_object(**properties: Any) -> dict[str, Any]:
    return {**open_object(**properties), "additionalProperties": False}


NEWEST = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
JSON_PAIRS: list[tuple[str, Any, Any, list[str]]] = [
    ("added to an open object", open_object(a=STRING, b=STRING), open_object(a=STRING), ["PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
    ("added to a closed object", closed_object(a=STRING, b=STRING), closed_object(a=STRING), []),
    ("removed from an open object", open_object(), open_object(a=STRING), []),
    ("removed from a closed object", closed_object(), closed_object(a=STRING), ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
    ("opened", open_object(a=STRING), closed_object(a=STRING), []),
    ("closed", closed_object(a=STRING), open_object(a=STRING), ["ADDITIONAL_PROPERTIES_NARROWED"]),
    ("integer to number", {"type": "number"}, INTEGER, []),
    ("number to integer", INTEGER, {"type": "number"}, ["TYPE_NARROWED"]),
    ("required", {**open_object(a=STRING), "required": ["a"]}, open_object(a=STRING), ["REQUIRED_ATTRIBUTE_ADDED"]),
    ("enum extended", {"enum": [1, 2]}, {"enum": [1]}, []),
    ("enum without true", {"enum": [1, {"a": [0]}]}, {"enum": [1, True, {"a": [False]}]}, ["ENUM_ARRAY_NARROWED"]),
    ("enum narrowed", {"enum": [1]}, {"enum": [1, 2]}, ["ENUM_ARRAY_NARROWED"]),
    ("maxLength", {"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 5}, ["MAX_LENGTH_DECREASED"]),
    ("minimum", {"minimum": 3}, {"minimum": 2}, ["MINIMUM_INCREASED"]),
    ("multipleOf", {"multipleOf": 2}, {"multipleOf": 4}, []),
    ("anyOf extended", {"anyOf": [STRING, INTEGER]}, STRING, []),
    ("oneOf reordered", {"oneOf": [STRING, INTEGER]}, {"oneOf": [INTEGER, STRING]}, []),
    ("oneOf narrowed", STRING, {"oneOf": [INTEGER, STRING]}, ["SUM_TYPE_NARROWED"]),
    ("allOf extended", {"allOf": [open_object(a=STRING), open_object(b=STRING)]}, {"allOf": [open_object(a=STRING)]}, ["PRODUCT_TYPE_EXTENDED"]),
    ("items narrowed", {"type": "array", "items": INTEGER}, {"type": "array", "items": {"type": "number"}}, ["TYPE_NARROWED"]),
    ("a tuple", {**NEWEST, "prefixItems": [INTEGER]}, {**NEWEST, "prefixItems": [{"type": "number"}]}, ["ITEM_CHANGED"]),
    ("unevaluated", {**NEWEST, **open_object(a=STRING), "unevaluatedProperties": False}, open_object(a=STRING), ["ADDITIONAL_PROPERTIES_NARROWED"]),
    ("not", {"not": STRING}, {}, ["NOT_TYPE_EXTENDED"]),
    ("everything", {}, STRING, []),
    ("from everything", STRING, {}, ["TYPE_NARROWED"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reader", "writer", "expected"), JSON_PAIRS)
def test_json_schema_pairs_are_judged_by_keyword(name: str, reader: Any, writer: Any, expected: list[str]) -> None:
    assert errors_of(json_schema(reader).differences_from(json_schema(writer))) == expected


def test_a_recursive_json_schema_is_compared_through_dynamic_references() -> None:
    tree = {**NEWEST, "$dynamicAnchor": "n", **closed_object(c={"$dynamicRef": "#n"}, v=INTEGER)}
    wider = {**NEWEST, "$dynamicAnchor": "n", **closed_object(c={"$dynamicRef": "#n"}, v={"type": "number"})}

    assert json_schema(wider).differences_from(json_schema(tree)) == []
    assert errors_of(json_schema(tree).differences_from(json_schema(wider))) == ["TYPE_NARROWED"]


NUMBERS = st.integers(0, 3)
NAMES = st.lists(st.sampled_from("ab"), unique=True)
BOUNDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
LEAVES = st.one_of(
    st.sampled_from(["string", "integer", "number", "null", "boolean"]).map(lambda kind: {"type": kind}),
    st.tuples(st.sampled_from(["minLength", "maxLength"]), NUMBERS).map(
        lambda bound: {"type": "string", bound[0]: bound[1]}
    ),
    st.tuples(st.sampled_from(BOUNDS), NUMBERS).map(lambda bound: {"type": "integer", bound[0]: bound[1]}),
    st.lists(st.sampled_from([1, 2, "a", None]), unique=True, min_size=1).map(lambda values: {"enum": values}),
    st.sampled_from([True, False, {}]),
)


@st.composite
def json_objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    """A schema of objects."""
    schema: dict[str, Any] = {"type": "object", "properties": {name: draw(inner) for name in draw(NAMES)}}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(inner)
    if draw(st.booleans()):
        schema["required"] = draw(NAMES)
    return schema


def json_schemas() -> st.SearchStrategy[Any]:
    """Schemas of draft 7."""
    return st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            json_objects(inner),
            inner.map(lambda items: {"type": "array", "items": items}),
            st.tuples(st.sampled_from(["anyOf", "allOf"]), st.lists(inner, min_size=1, max_size=3)).map(
                lambda parts: {parts[0]: parts[1]}
            ),
            inner.map(lambda part: {"not": part}),
        ),
        max_leaves=5,
    )


SCALARS: list[Any] = [None, True, 0, 1, 2, 3, 4, 1.5, "", "a", "aaaa"]
VALUES = [
    *SCALARS, [], *([each] for each in SCALARS), {}, *({"a": each} for each in SCALARS), *({"c": each} for each in SCALARS),
    *({"a": one, "b": other} for one in SCALARS[:6] for other in SCALARS[:6]), [1, "a"], {"a": {"b": 1}}, {"a": {"a": "x"}},
]  # fmt: skip


@given(json_schemas(), json_schemas())
def test_a_compatible_reader_accepts_every_value_of_the_writer(reader: Any, writer: Any) -> None:
    if json_schema(reader).differences_from(json_schema(writer)):
        return
    for value in VALUES:
        if Draft7Validator(writer).is_valid(value):
            assert Draft7Validator(reader).is_valid(value), value


@given(json_schemas())
def test_a_json_schema_accepts_what_it_accepts(schema: Any) -> None:
    if "not" not in json.dumps(schema):
        assert json_schema(schema).differences_from(json_schema(schema)) == []


PROTOBUF_PAIRS: list[tuple[str, str, str, list[str]]] = [
    ("a field added", "message A{int32 a=1; string b=2;}", "message A{int32 a=1;}", []),
    ("a field removed", "message A{}", "message A{int32 a=1;}", []),
    ("a field renamed", "message A{int32 z=1;}", "message A{int32 a=1;}", []),
    ("the same wire format", "message A{int64 a=1; bytes s=2; fixed32 f=3;}", "message A{bool a=1; string s=2; sfixed32 f=3;}", []),
    ("an enum to a number", "message A{int32 a=1;}", "message A{E a=1;} enum E{X=0;}", []),
    ("another wire format", "message A{sint32 a=1;}", "message A{int32 a=1;}", ["FIELD_SCALAR_KIND_CHANGED"]),
    ("a message to a scalar", "message A{int32 a=1;}", "message A{B a=1;} message B{}", ["FIELD_KIND_CHANGED", "MESSAGE_REMOVED"]),
    ("a message removed", "", "message A{}", ["MESSAGE_REMOVED"]),
    ("another type", "message A{C a=1;} message B{} message C{}", "message A{B a=1;} message B{} message C{}", ["FIELD_NAMED_TYPE_CHANGED"]),
    ("a number to a list", "message A{repeated int32 a=1;}", "message A{int32 a=1;}", ["FIELD_NUMERIC_LABEL_CHANGED"]),
    ("a text to a list", "message A{repeated string a=1;}", "message A{string a=1;}", []),
    ("a map's value", "message A{map<string,int32> a=1;}", "message A{map<string,string> a=1;}", ["FIELD_SCALAR_KIND_CHANGED"]),
    ("a map to a list", "message A{repeated int32 a=1;}", "message A{map<string,string> a=1;}", ["FIELD_KIND_CHANGED"]),
    ("fields moved to a oneof", "message A{oneof o{int32 a=1; int32 b=2;}}", "message A{int32 a=1; int32 b=2;}", ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"]),
    ("one field moved to a new oneof", "message A{oneof o{int32 a=1;}}", "message A{int32 a=1;}", []),
    ("removed from a oneof", "message A{oneof o{int32 a=1;}}", "message A{oneof o{int32 a=1; int32 b=2;}}", ["ONEOF_FIELD_REMOVED"]),
    ("a package", "package b; message A{}", "package a; message A{}", ["PACKAGE_CHANGED"]),
    ("nested", "message A{message B{int32 b=1;}}", "message A{message B{string b=1;}}", ["FIELD_SCALAR_KIND_CHANGED"]),
    ("recursive", "message A{A a=1; int64 b=2;}", "message A{A a=1; int32 b=2;}", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reader", "writer", "expected"), PROTOBUF_PAIRS)
def test_protobuf_pairs_are_judged_by_the_wire_format(name: str, reader: str, writer: str, expected: list[str]) -> None:
    assert errors_of(protobuf(reader).differences_from(protobuf(writer))) == expected


def test_required_fields_of_proto2_may_not_come_or_go() -> None:
    with_field = protobuf("message A { required int32 a = 1; }", 'syntax = "proto2"; ')
    without = protobuf("message A { }", 'syntax = "proto2"; ')

    assert errors_of(with_field.differences_from(without)) == ["REQUIRED_FIELD_ADDED"]
    assert errors_of(without.differences_from(with_field)) == ["REQUIRED_FIELD_REMOVED"]


EVERYTHING = """
syntax = "proto3";
package a.b;
import "google/protobuf/timestamp.proto";
import "other.proto";
option java_package = "x.y";
option (mine).foo = { a: 1 };
message M {  // a comment
  int32 a = 1; optional string b = 2 [json_name = "bb", deprecated = true]; repeated double c = 3 [packed = false];
  map<string, N> m = 4; oneof o { string x = 5; N y = 6; } google.protobuf.Timestamp t = 7; x.Other other = 8;
  reserved 100 to 110, 200; reserved "foo"; E e = 9; string message = 10;
  message N { bool z = 1; } enum E { option allow_alias = true; A = 0; B = 1 [(q) = 3]; C = 1; }
}
service S { rpc Do (M) returns (stream M); }
"""


def test_protobufs_text_and_descriptor_are_the_same_schema() -> None:
    references = [NamedText("other.proto", 'syntax = "proto3"; package x; message Other { int32 i = 1; }')]
    parsed = ProtobufKind().parse(EVERYTHING, references)

    again = ProtobufKind().parse(parsed.canonical, references)
    serialized = ProtobufKind().parse(parsed.formatted("serialized"), references)

    assert again.canonical == parsed.canonical
    assert 'optional string b = 2 [json_name = "bb", deprecated = true];' in parsed.canonical
    assert serialized.normalized() == parsed.normalized()
    assert parsed.differences_from(serialized) == serialized.differences_from(parsed) == []


@pytest.mark.parametrize(
    "text",
    [
        "message A { int32 a = 1; int32 b = 1; }", "message A { B b = 1; }", 'import "no.proto";', "x", "message A {",
        "message A { option x = {; }", "message A { int32 a = 1", "/*", 'import "google/protobuf/../x.proto";',
        "message A { int32 a = 99999999999; }", "enum E { }", "message A {" * 3_000, "message A { int32 a = 1 [x = 1; }",
    ],
)  # fmt: skip
def test_an_invalid_protobuf_schema_has_a_reason(text: str) -> None:
    with pytest.raises(InvalidSchemaError) as raised:
        protobuf(text)
    assert len(str(raised.value)) > 5


@given(st.text(alphabet='message A{}=1;"int32 option/*()<>,.', max_size=60))
def test_any_text_is_a_schema_or_a_reason(text: str) -> None:
    for kind in (AvroKind(), JsonSchemaKind(), ProtobufKind()):
        try:
            kind.parse(text, ())
        except InvalidSchemaError:
            pass


def test_a_level_selects_versions_and_direction() -> None:
    schemas = [
        avro(avro_record(X)),
        avro(avro_record(X, field("y", "int", default=1))),
        avro(avro_record(field("y", "int"))),
    ]
    earlier = [Earlier(number, "AVRO", each) for number, each in enumerate(schemas[:2], 1)]

    passed = {level for level in LEVELS if not check_compatibility(level, "AVRO", schemas[2], earlier)}

    assert passed == {"NONE", "BACKWARD"}


BOMB = {
    "definitions": {
        **{
            f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}, {"$ref": f"#/definitions/d{n + 1}"}]}
            for n in range(40)
        },
        "d40": STRING,
    },
    "$ref": "#/definitions/d0",
}


def test_a_schema_that_doubles_at_each_reference_is_judged_in_bounded_time() -> None:
    other = json.loads(json.dumps(BOMB).replace('"string"', '"integer"'))
    began = time.monotonic()

    with pytest.raises(InvalidSchemaError, match="60000 steps"):
        json_schema(BOMB).differences_from(json_schema(other))

    assert time.monotonic() - began < 60


def test_references_that_lead_to_each_other_are_an_error() -> None:
    cycle = {
        "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        "$ref": "#/definitions/a",
    }

    with pytest.raises(InvalidSchemaError, match="lead to each other"):
        json_schema(cycle).differences_from(json_schema(STRING))
