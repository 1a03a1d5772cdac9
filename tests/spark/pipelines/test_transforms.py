"""Kafka Connect's transforms do to rows what Connect does to records."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.errors import ConfigError
from tests.spark.pipelines.steps import after, of, rows, value

TEN = "timestamp'2026-05-01 10:00:00.123' as t"
MILLIS = 1777629600123
UTC = datetime.UTC

VALUES: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = [
    ("'7' as a, 1 as b", {"type": "Cast", "spec": "a:int64,b:string"}, {"a": 7, "b": "1"}),
    ("1.9D as a, true as b", {"type": "Cast", "spec": "a:int32,b:int8"}, {"a": 1, "b": 1}),
    (TEN, {"type": "Cast", "spec": "t:int64"}, {"t": MILLIS}),
    (TEN, {"type": "Cast", "spec": "t:string"}, {"t": "2026-05-01T10:00:00.123Z"}),
    ("binary('hi') as a", {"type": "Cast", "spec": "a:string"}, {"a": "aGk="}),
    ("'7' as value", {"type": "Cast", "spec": "int32"}, {"value": 7}),
    ("named_struct('x', 1, 'y', 2) as a, 3 as b", {"type": "ExtractField", "field": "a"}, {"x": 1, "y": 2}),
    ("1 as a, 2 as b", {"type": "ExtractField$Value", "field": "b"}, {"value": 2}),
    ("named_struct('x', 1, 'y', named_struct('z', 2)) as a", {"type": "Flatten"}, {"a.x": 1, "a.y.z": 2}),
    ("named_struct('x', 1) as a, 2 as b", {"type": "Flatten", "delimiter": "_"}, {"a_x": 1, "b": 2}),
    ("1 as a, 2 as b", {"type": "HoistField", "field": "all"}, {"all": {"a": 1, "b": 2}}),
    ("'x' as value", {"type": "HoistField", "field": "text"}, {"text": "x"}),
    ("1 as a", {"type": "InsertField", "static.field": "shop", "static.value": "seoul"}, {"a": 1, "shop": "seoul"}),
    (
        "1 as a",
        {"type": "InsertField", "topic.field": "t!", "partition.field": "p", "offset.field": "o?"},
        {"a": 1, "t": "orders", "p": 3, "o": 7},
    ),
    ("1 as a", {"type": "InsertField", "timestamp.field": "at"}, {"a": 1, "at": datetime.datetime(2026, 5, 1, 10)}),
    (
        "'x' as a, 5 as b, true as c, array(1) as d",
        {"type": "MaskField", "fields": "a,b,c,d"},
        {"a": "", "b": 0, "c": False, "d": []},
    ),
    ("'x' as a, 5 as b", {"type": "MaskField", "fields": ["a", "b"], "replacement": "42"}, {"a": "42", "b": 42}),
    ("cast(null as string) as a", {"type": "MaskField", "fields": "a", "replacement": "xx"}, {"a": None}),
    ("1 as a, 2 as b, 3 as c", {"type": "ReplaceField", "exclude": "a", "renames": "b:x"}, {"x": 2, "c": 3}),
    ("1 as a, 2 as b, 3 as c", {"type": "ReplaceField", "include": "a,b", "exclude": "a"}, {"b": 2}),
    (TEN, {"type": "TimestampConverter", "field": "t", "target.type": "unix"}, {"t": MILLIS}),
    (
        TEN,
        {"type": "TimestampConverter", "field": "t", "target.type": "unix", "unix.precision": "seconds"},
        {"t": MILLIS // 1000},
    ),
    (
        TEN,
        {"type": "TimestampConverter", "field": "t", "target.type": "unix", "unix.precision": "nanoseconds"},
        {"t": MILLIS * 1_000_000},
    ),
    (TEN, {"type": "TimestampConverter", "field": "t", "target.type": "Date"}, {"t": datetime.date(2026, 5, 1)}),
    (TEN, {"type": "TimestampConverter", "field": "t", "target.type": "Time"}, {"t": 36_000_123}),
    (
        TEN,
        {"type": "TimestampConverter", "field": "t", "target.type": "string", "format": "yyyy/MM/dd HH"},
        {"t": "2026/05/01 10"},
    ),
    (
        "'01.05.2026' as t",
        {"type": "TimestampConverter", "field": "t", "target.type": "unix", "format": "dd.MM.yyyy"},
        {"t": 1777593600000},
    ),
    (
        f"{MILLIS}L as value",
        {"type": "TimestampConverter", "target.type": "Date"},
        {"value": datetime.date(2026, 5, 1)},
    ),
    ("-1L as t", {"type": "TimestampConverter", "field": "t", "target.type": "unix"}, {"t": -1}),
    ("1 as a", {"type": "org.apache.kafka.connect.transforms.HoistField$Value", "field": "x"}, {"x": {"a": 1}}),
    ("1 as `a.b`, 2 as `c``d`", {"type": "ReplaceField", "renames": "a.b:x"}, {"x": 1, "c`d": 2}),
]


@pytest.mark.parametrize(
    ("before", "transform", "expected"), VALUES, ids=[f"{t['type']} of {v[:40]}" for v, t, _ in VALUES]
)
def test_a_value_is_transformed_as_in_connect(
    spark: SparkSession, before: str, transform: Mapping[str, Any], expected: dict[str, Any]
) -> None:
    assert value(after(rows(spark, before), transform)) == expected


KEYS: list[tuple[Mapping[str, Any], Any]] = [
    ({"type": "InsertField$Key", "static.field": "s", "static.value": 5}, {"id": 1, "s": "5"}),
    ({"type": "ExtractField$Key", "field": "id"}, 1),
    ({"type": "HoistField$Key", "field": "k"}, {"k": {"id": 1}}),
    ({"type": "ReplaceField$Key", "renames": "id:no"}, {"no": 1}),
    ({"type": "ValueToKey", "fields": "a"}, {"a": 9}),
    ({"type": "Drop$Key"}, None),
]


@pytest.mark.parametrize(("transform", "expected"), KEYS, ids=[t["type"] for t, _ in KEYS])
def test_a_key_is_transformed_as_in_connect_and_the_value_is_kept(
    spark: SparkSession, transform: Mapping[str, Any], expected: Any
) -> None:
    frame = after(rows(spark, "9 as a"), transform)
    assert (of(frame, "_key"), value(frame)) == (expected, {"a": 9})


TOPICS: list[tuple[Mapping[str, Any], str]] = [
    ({"type": "RegexRouter", "regex": "ord(.*)", "replacement": "new-$1"}, "new-ers"),
    ({"type": "RegexRouter", "regex": "ord", "replacement": "new"}, "orders"),
    ({"type": "RegexRouter", "regex": "orders|x", "replacement": "y"}, "y"),
    ({"type": "TimestampRouter"}, "orders-20260501"),
    (
        {"type": "TimestampRouter", "topic.format": "${timestamp}_${topic}.$", "timestamp.format": "yyyy"},
        "2026_orders.$",
    ),
]


@pytest.mark.parametrize(("transform", "expected"), TOPICS, ids=[expected for _, expected in TOPICS])
def test_a_router_names_the_topic(spark: SparkSession, transform: Mapping[str, Any], expected: str) -> None:
    assert of(after(rows(spark, "1 as a"), transform), "_topic") == expected


def test_headers_are_inserted_taken_from_fields_and_dropped(spark: SparkSession) -> None:
    frame = after(
        rows(spark, "1 as a, 'x' as b"),
        {"type": "InsertHeader", "header": "h", "value.literal": "lit"},
        {"type": "HeaderFrom", "fields": "a", "headers": "ha", "operation": "move"},
        {"type": "HeaderFrom", "fields": "b", "headers": "hb", "operation": "copy"},
        {"type": "DropHeaders", "headers": "a"},
    )
    assert value(frame) == {"b": "x"}
    assert of(frame, "_headers") == [{"key": k, "value": v} for k, v in (("h", b"lit"), ("ha", b"1"), ("hb", b"x"))]


def test_a_header_is_inserted_where_there_were_none(spark: SparkSession) -> None:
    frame = after(rows(spark, "1 as a", beside=""), {"type": "InsertHeader", "header": "h", "value.literal": "l"})
    assert of(frame, "_headers") == [{"key": "h", "value": b"l"}]


PREDICATES: list[tuple[Mapping[str, Any], list[int]]] = [
    ({"type": "TopicNameMatches", "pattern": "ord.*"}, [1, 2]),
    ({"type": "TopicNameMatches", "pattern": "ord"}, []),
    ({"type": "HasHeaderKey", "name": "a"}, [1, 2]),
    ({"type": "HasHeaderKey", "name": "b"}, []),
    ({"type": "RecordIsTombstone"}, []),
]


@pytest.mark.parametrize(("predicate", "held"), PREDICATES, ids=[str(sorted(p.items())) for p, _ in PREDICATES])
def test_a_filter_drops_records_that_match_its_predicate(
    spark: SparkSession, predicate: Mapping[str, Any], held: list[int]
) -> None:
    frame = rows(spark, "1 as a", "2 as a")
    left = after(frame, {"type": "Filter", "predicate": "p"}, p=predicate).collect()
    kept = after(frame, {"type": "Filter", "predicate": "p", "negate": True}, p=predicate).collect()
    assert sorted(row.a for row in kept) == held
    assert sorted(row.a for row in left) == [one for one in (1, 2) if one not in held]


def test_a_dropped_value_is_a_tombstone(spark: SparkSession) -> None:
    frame = after(rows(spark, "1 as a"), {"type": "Drop"})
    assert (value(frame), of(frame, "_tombstone")) == ({"a": None}, True)
    assert after(frame, {"type": "Filter", "predicate": "gone"}, gone={"type": "RecordIsTombstone"}).collect() == []


def test_a_transform_with_a_predicate_changes_only_matching_records(spark: SparkSession) -> None:
    frame = rows(spark, "1 as a, 'x' as b", beside="'old' as _topic").unionByName(
        rows(spark, "2 as a, 'y' as b", beside="'new' as _topic")
    )
    transform = {"type": "ReplaceField", "exclude": "b", "renames": "a:c", "predicate": "old"}
    found = after(frame, transform, old={"type": "TopicNameMatches", "pattern": "old"}).orderBy("_topic").collect()
    assert [row.asDict() for row in found] == [
        {"c": None, "_topic": "new", "a": 2, "b": "y"},
        {"c": 1, "_topic": "old", "a": None, "b": None},
    ]


def test_a_predicate_may_not_give_a_field_two_types(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="the field 'a' would be string in some records and int in others"):
        after(
            rows(spark, "1 as a"),
            {"type": "Cast", "spec": "a:string", "predicate": "p"},
            p={"type": "RecordIsTombstone"},
        )


MISTAKES: list[tuple[str, Mapping[str, Any], str]] = [
    ("1 as amount", {"type": "MaskField", "fields": "amuont"}, "unknown field 'amuont'; did you mean 'amount'"),
    ("1 as a", {"type": "ExtractField", "field": "xyz"}, "unknown field 'xyz'; the fields are a"),
    ("1 as a", {"type": "ReplaceField", "exclude": "a"}, "no field of the value would be left; leave one"),
    (
        "named_struct('x', 1) as a",
        {"type": "MaskField", "fields": "a"},
        "field 'a' is struct<x:int>, which has no mask",
    ),
    ("true as a", {"type": "MaskField", "fields": "a", "replacement": "x"}, "replacement is for text and numbers"),
    ("'x' as t", {"type": "TimestampConverter", "field": "t", "target.type": "unix"}, "text needs format"),
    (
        "true as t",
        {"type": "TimestampConverter", "field": "t", "target.type": "unix"},
        "t is boolean, not a time",
    ),
    ("1 as a, 2 as b", {"type": "Cast", "spec": "string"}, "the value is a record; give field:type pairs"),
    ("named_struct('b', 1) as a, 2 as `a.b`", {"type": "Flatten"}, "two fields would be named 'a.b'"),
]


@pytest.mark.parametrize(("before", "transform", "message"), MISTAKES, ids=[message for _, _, message in MISTAKES])
def test_a_transform_that_does_not_fit_its_rows_is_reported_with_the_reason(
    spark: SparkSession, before: str, transform: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        after(rows(spark, before), transform)
    assert message in str(error.value)


def test_what_only_records_of_topics_have_is_missed_with_a_remedy(spark: SparkSession) -> None:
    bare = rows(spark, "1 as a", beside="binary('k') as _key")
    for transform, reported in (
        (
            {"type": "InsertField", "offset.field": "o"},
            "there is no column _offset here; only records of topics have it",
        ),
        ({"type": "TimestampRouter"}, "there is no column _topic here"),
        ({"type": "ExtractField$Key", "field": "k"}, "the key is binary, not a record; give the source keyFormat"),
    ):
        with pytest.raises(ConfigError) as error:
            after(bare, transform)
        assert reported in str(error.value)
