"""Compare our transforms with those of Kafka Connect, from Apache Kafka's jars, on the same records.

`DIFFERENT` lists the differences with our results; docs/pipelines.md lists them too.
"""

from __future__ import annotations

import base64
import datetime
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from ottla.errors import OttlaError
from rivals import apache_kafka
from tests.spark.pipelines.steps import after, of, rows, value
from tests.spark.topics import new_session

pytestmark = [pytest.mark.behaviour("D1"), pytest.mark.usefixtures("quick_drivers")]
PACKAGE = "org.apache.kafka.connect.transforms."
DATA = "org.apache.kafka.connect.data."
AT_MS = 1777629600000
RECORD = (
    "named_struct('id', 1) as _key, 'orders' as _topic, 3 as _partition, 7L as _offset, "
    f"timestamp_millis({AT_MS}L) as _timestamp, false as _tombstone, "
    "array(named_struct('key', 'a', 'value', binary('x'))) as _headers"
)
KEY = {"type": "struct", "fields": [{"field": "id", "type": "int32"}]}

SQL: dict[str, str] = {
    "int8": "cast({0} as tinyint)",
    "int16": "cast({0} as smallint)",
    "int32": "cast({0} as int)",
    "int64": "cast({0} as bigint)",
    "float": "cast({0} as float)",
    "double": "cast({0} as double)",
    "boolean": "cast({0} as boolean)",
    "string": "'{0}'",
    "timestamp": "timestamp_millis({0}L)",
    "date": "date_from_unix_date({0})",
    "bytes": "unbase64('{0}')",
}
LOGICAL = {"timestamp": ("int64", "Timestamp"), "date": ("int32", "Date")}


class Field(NamedTuple):
    name: str
    kind: str
    value: Any

    def sql(self) -> str:
        """Return the value as an expression in Spark SQL."""
        return f"{self.expression()} as `{self.name}`"

    def expression(self) -> str:
        if self.kind == "struct":
            parts = ", ".join(f"'{one.name}', {one.expression()}" for one in self.value)
            return f"named_struct({parts})"
        if self.value is None:
            return SQL[self.kind].replace("'{0}'", "cast(null as string)").format("null").replace("nullL", "null")
        return SQL[self.kind].format(str(self.value).lower() if isinstance(self.value, bool) else self.value)

    def schema(self) -> dict[str, Any]:
        """Return the schema in the form of Connect's JsonConverter."""
        if self.kind == "struct":
            return {"field": self.name, "type": "struct", "fields": [one.schema() for one in self.value]}
        kind, name = LOGICAL.get(self.kind, (self.kind, None))
        logical = {} if name is None else {"name": DATA + name, "version": 1}
        return {"field": self.name, "type": kind, "optional": True, **logical}

    def payload(self) -> Any:
        return {one.name: one.payload() for one in self.value} if self.kind == "struct" else self.value


def f(name: str, kind: str, value: Any) -> Field:
    return Field(name, kind, value)


ABC = [f("a", "int32", 1), f("b", "string", "x"), f("c", "double", 2.5)]
TIME = [f("t", "timestamp", 1777629600123)]
NESTED = [f("x", "struct", [f("y", "int32", 1), f("z", "struct", [f("w", "string", "q")])]), f("n", "string", None)]

Case = tuple[str, list[Field], Mapping[str, str]]
CASES: list[Case] = [
    ("Cast$Value", [f("a", "string", "7")], {"spec": "a:int8"}),
    ("Cast$Value", [f("a", "string", "-7")], {"spec": "a:int64"}),
    ("Cast$Value", [f("a", "string", "7.5")], {"spec": "a:float64"}),
    ("Cast$Value", [f("a", "string", "7.5")], {"spec": "a:float32"}),
    ("Cast$Value", [f("a", "string", "true")], {"spec": "a:boolean"}),
    ("Cast$Value", [f("a", "string", "yes")], {"spec": "a:boolean"}),
    ("Cast$Value", [f("a", "string", " 7")], {"spec": "a:int32"}),
    ("Cast$Value", [f("a", "double", 1.9), f("b", "double", -1.9)], {"spec": "a:int32,b:int64"}),
    ("Cast$Value", [f("a", "int32", 300)], {"spec": "a:int8"}),
    ("Cast$Value", [f("a", "int64", 5000000000)], {"spec": "a:int32"}),
    ("Cast$Value", [f("a", "double", 1e30)], {"spec": "a:int64"}),
    ("Cast$Value", [f("a", "boolean", True), f("b", "int32", 0)], {"spec": "a:int32,b:boolean"}),
    ("Cast$Value", [f("a", "double", 1.0), f("b", "float", 0.5)], {"spec": "a:string,b:string"}),
    ("Cast$Value", [f("a", "double", 1e21), f("b", "double", 1e-5)], {"spec": "a:string,b:string"}),
    ("Cast$Value", [f("a", "int64", 7), f("b", "boolean", False)], {"spec": "a:string,b:string"}),
    ("Cast$Value", [f("a", "int32", None)], {"spec": "a:string"}),
    ("Cast$Value", TIME, {"spec": "t:int64"}),
    ("Cast$Value", TIME, {"spec": "t:string"}),
    ("Cast$Value", [f("d", "date", 20000)], {"spec": "d:int32"}),
    ("Cast$Value", [f("d", "date", 20000)], {"spec": "d:int64"}),
    ("Cast$Value", [f("d", "date", 20000)], {"spec": "d:string"}),
    ("Cast$Value", [f("a", "bytes", "aGk=")], {"spec": "a:string"}),
    ("Cast$Value", [f("a", "string", "x")], {"spec": "a:int32"}),
    ("Cast$Value", [f("a", "string", "1e3")], {"spec": "a:float64"}),
    ("Cast$Key", ABC, {"spec": "id:string"}),
    ("DropHeaders", ABC, {"headers": "a"}),
    ("DropHeaders", ABC, {"headers": "b"}),
    ("ExtractField$Value", ABC, {"field": "b"}),
    ("ExtractField$Value", NESTED, {"field": "x"}),
    ("ExtractField$Key", ABC, {"field": "id"}),
    ("Flatten$Value", NESTED, {}),
    ("Flatten$Value", NESTED, {"delimiter": "_"}),
    ("HeaderFrom$Value", ABC, {"fields": "a,b", "headers": "ha,hb", "operation": "move"}),
    ("HeaderFrom$Value", ABC, {"fields": "b", "headers": "a", "operation": "copy"}),
    ("HeaderFrom$Key", ABC, {"fields": "id", "headers": "h", "operation": "copy"}),
    ("HoistField$Value", ABC, {"field": "all"}),
    ("HoistField$Key", ABC, {"field": "k"}),
    ("InsertField$Value", ABC, {"static.field": "s", "static.value": "v"}),
    (
        "InsertField$Value",
        ABC,
        {"topic.field": "t", "partition.field": "p", "offset.field": "o", "timestamp.field": "at"},
    ),
    ("InsertField$Value", ABC, {"static.field": "b", "static.value": "over"}),
    ("InsertField$Key", ABC, {"static.field": "s!", "static.value": "v"}),
    ("InsertHeader", ABC, {"header": "h", "value.literal": "text"}),
    ("InsertHeader", ABC, {"header": "a", "value.literal": "y"}),
    ("InsertHeader", ABC, {"header": "h", "value.literal": "5"}),
    ("MaskField$Value", [*ABC, f("d", "boolean", True), f("e", "int64", 9)], {"fields": "a,b,c,d,e"}),
    ("MaskField$Value", ABC, {"fields": "b", "replacement": "***"}),
    ("MaskField$Value", ABC, {"fields": "a,c", "replacement": "42"}),
    ("MaskField$Value", [f("t", "timestamp", 5), f("d", "date", 5)], {"fields": "t,d"}),
    ("MaskField$Value", [f("a", "string", None)], {"fields": "a", "replacement": "x"}),
    ("RegexRouter", ABC, {"regex": "ord(.*)", "replacement": "new-$1"}),
    ("RegexRouter", ABC, {"regex": "ord", "replacement": "new"}),
    ("RegexRouter", ABC, {"regex": "(?<first>o)(.*)", "replacement": "${first}-$2"}),
    ("ReplaceField$Value", ABC, {"exclude": "a"}),
    ("ReplaceField$Value", ABC, {"include": "a,b", "exclude": "a"}),
    ("ReplaceField$Value", ABC, {"renames": "a:x,b:y"}),
    ("ReplaceField$Value", ABC, {"include": "a", "renames": "a:x"}),
    ("ReplaceField$Key", ABC, {"renames": "id:no"}),
    *(
        ("TimestampConverter$Value", TIME, {"field": "t", "target.type": "unix", "unix.precision": unit})
        for unit in ("seconds", "milliseconds", "microseconds", "nanoseconds")
    ),
    ("TimestampConverter$Value", TIME, {"field": "t", "target.type": "Date"}),
    ("TimestampConverter$Value", TIME, {"field": "t", "target.type": "Time"}),
    ("TimestampConverter$Value", TIME, {"field": "t", "target.type": "string", "format": "yyyy-MM-dd HH:mm:ss.SSS"}),
    ("TimestampConverter$Value", TIME, {"field": "t", "target.type": "string", "format": "dd.MM.yy H:mm"}),
    ("TimestampConverter$Value", TIME, {"field": "t", "target.type": "string", "format": "EEE, d MMM yyyy"}),
    (
        "TimestampConverter$Value",
        [f("t", "string", "2026-05-01 10")],
        {"field": "t", "target.type": "Timestamp", "format": "yyyy-MM-dd HH"},
    ),
    (
        "TimestampConverter$Value",
        [f("t", "string", "01.05.2026")],
        {"field": "t", "target.type": "unix", "format": "dd.MM.yyyy"},
    ),
    (
        "TimestampConverter$Value",
        [f("t", "string", "no")],
        {"field": "t", "target.type": "unix", "format": "dd.MM.yyyy"},
    ),
    ("TimestampConverter$Value", [f("t", "int64", -1)], {"field": "t", "target.type": "Timestamp"}),
    (
        "TimestampConverter$Value",
        [f("t", "int64", 1777629600)],
        {"field": "t", "target.type": "Timestamp", "unix.precision": "seconds"},
    ),
    ("TimestampConverter$Value", [f("t", "date", 20000)], {"field": "t", "target.type": "unix"}),
    ("TimestampConverter$Value", [f("t", "timestamp", None)], {"field": "t", "target.type": "unix"}),
    (
        "TimestampConverter$Value",
        [f("t", "timestamp", -1)],
        {"field": "t", "target.type": "unix", "unix.precision": "seconds"},
    ),
    ("TimestampRouter", ABC, {}),
    ("TimestampRouter", ABC, {"topic.format": "${timestamp}_${topic}", "timestamp.format": "yyyy.MM"}),
    ("ValueToKey", ABC, {"fields": "a,b"}),
    ("predicates.HasHeaderKey", ABC, {"name": "a"}),
    ("predicates.HasHeaderKey", ABC, {"name": "b"}),
    ("predicates.TopicNameMatches", ABC, {"pattern": "ord.*"}),
    ("predicates.TopicNameMatches", ABC, {"pattern": "ord"}),
    ("predicates.RecordIsTombstone", ABC, {}),
    # Cases of missing fields.
    ("ReplaceField$Value", ABC, {"exclude": "no"}),
    ("MaskField$Value", ABC, {"fields": "no"}),
    ("ExtractField$Value", ABC, {"field": "no"}),
    ("Cast$Value", ABC, {"spec": "no:int32"}),
]


def name_of(case: Case) -> str:
    kind, fields, config = case
    return f"{kind} {json.dumps(config)} of {', '.join(f'{one.kind} {one.payload()}' for one in fields)}"


BIT = "the number does not fit: an error, where Connect cuts off bits or takes the largest"
SPACE = "spaces around a number are passed over"
COLUMNS = "columns are known before rows are, and a field that is not there is a mistake in the file"
DIFFERENT: dict[tuple[str, str], tuple[str, str]] = {
    ("Cast$Value", "string  7"): ('"value": {"a": 7}', SPACE),
    ("Cast$Value", "int32 300"): ("error", BIT),
    ("Cast$Value", "int64 5000000000"): ("error", BIT),
    ("Cast$Value", "double 1e+30"): ("error", BIT),
    ("ReplaceField$Value", "exclude=no"): ("unknown field 'no'", COLUMNS),
    ("MaskField$Value", "fields=no"): ("unknown field 'no'", COLUMNS),
    ("Cast$Value", "spec=no:int32"): ("unknown field 'no'", COLUMNS),
}
"""Our results that differ from Connect's, with the reason, by transform and its only field or setting."""


def difference(case: Case) -> str | None:
    kind, fields, config = case
    about = [f"{fields[0].kind} {fields[0].payload()}", *(f"{name}={text}" for name, text in config.items())]
    return next((DIFFERENT[kind, one][0] for one in about if (kind, one) in DIFFERENT), None)


@pytest.fixture(scope="module")
def connect() -> dict[str, dict[str, Any]]:
    """Run all cases in Connect and return the results by case name."""
    apache_kafka.fetch()
    asked = [
        {
            "class": PACKAGE + kind,
            "config": dict(config),
            "timestamp": AT_MS,
            "key": {"schema": KEY, "payload": {"id": 1}},
            "value": {
                "schema": {"type": "struct", "fields": [one.schema() for one in fields]},
                "payload": {one.name: one.payload() for one in fields},
            },
        }
        for kind, fields, config in CASES
    ]
    command = apache_kafka.java(str(Path(__file__).parent / "java" / "Transforms.java"))
    text = "\n".join(map(json.dumps, asked)) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return dict(zip(map(name_of, CASES), answers, strict=True))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = new_session(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


def ours(spark: SparkSession, case: Case) -> dict[str, Any]:
    """Run a case with our transform and return the result in the form of Connect's results."""
    kind, fields, config = case
    frame = rows(spark, ", ".join(one.sql() for one in fields), beside=RECORD)
    try:
        if kind.startswith("predicates."):
            predicate = {"type": kind.removeprefix("predicates."), **config}
            return {"holds": not after(frame, {"type": "Filter", "predicate": "p"}, p=predicate).collect()}
        result = after(frame, {"type": kind, **config})
        found = {name: to_json_form(one) for name, one in value(result).items()}
        tombstone = bool(of(result, "_tombstone"))
        headers = [[one["key"], read(one["value"])] for one in of(result, "_headers")]
    except OttlaError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": str(error).splitlines()[0]}
    whole = None if tombstone else found["value"] if list(found) == ["value"] else found
    return {"topic": of(result, "_topic"), "key": to_json_form(of(result, "_key")), "value": whole, "headers": headers}


def to_json_form(one: Any) -> Any:
    """Convert a value to the form of Connect's JsonConverter."""
    if isinstance(one, dict):
        return {name: to_json_form(inner) for name, inner in one.items()}
    if isinstance(one, datetime.datetime):
        return round(one.replace(tzinfo=datetime.UTC).timestamp() * 1000)
    if isinstance(one, datetime.date):
        return (one - datetime.date(1970, 1, 1)).days
    return base64.b64encode(one).decode() if isinstance(one, bytes) else one


def read(data: bytes) -> Any:
    """Decode a header. Ours is text, so a numeric text becomes a number."""
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """True if the results are equal, or both are errors. Their texts differ."""
    return ("error" in one) == ("error" in other) and ("error" in one or one == other)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_transform_has_the_same_result_as_kafka_connects(
    spark: SparkSession, connect: dict[str, dict[str, Any]], case: Case
) -> None:
    found, expected = ours(spark, case), connect[name_of(case)]
    known = difference(case)
    if known is not None:
        assert known in json.dumps(found), (found, expected)
        assert not same(found, expected), "it is the same by now: strike it from DIFFERENT"
    else:
        assert same(found, expected), f"ours {found}, Connect's {expected}"
