"""Keys and values decoded by the source, through Spark and a broker."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from pyspark.errors import PySparkException

from ottla.spark.formats.protobuf import Protobuf
from tests.spark.formats.test_schemas import descriptors
from tests.spark.test_stream import run
from tests.spark.topics import Topics

pytestmark = pytest.mark.behaviour("D2")
SCHEMA = "id bigint, at timestamp, tags array<string>, size struct<w: int>"
GOOD = '{"id": 1, "at": "2020-01-02T03:04:05Z", "tags": ["a"], "size": {"w": 5}}'


def json_options(**more: Any) -> dict[str, Any]:
    return {"valueFormat": "json", "valueSchema": SCHEMA} | more


def test_json_is_parsed_into_columns_with_errors_in_a_column_of_their_own(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, GOOD, '{"id": "x", "tags": []}', "poison", None)
    frame = topics.read(subscribe=topic, keyFormat="string", **json_options()).orderBy("offset")
    assert frame.columns == [*topics.read(subscribe=topic).columns, "_error", "_raw"]
    rows = frame.selectExpr(
        "value.id", "value.tags", "value.size.w", "unix_seconds(value.at)", "_error", "_raw"
    ).collect()
    assert tuple(rows[0]) == (1, ["a"], 5, 1_577_934_245, None, None)
    assert tuple(rows[1]) == (None, [], None, None, 'value: id: "x" is not an integer', b'{"id": "x", "tags": []}')
    assert rows[2]._error.startswith("value: not JSON: expected a value at character 0")
    assert rows[2]._raw == b"poison"
    assert tuple(rows[3]) == (None, None, None, None, None, None)


def test_malformed_records_are_left_out_or_stop_the_query_with_their_place(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, GOOD, "poison", GOOD)
    dropped = topics.read(subscribe=topic, **json_options(mode="dropMalformed"))
    assert [row.offset for row in dropped.orderBy("offset").collect()] == [0, 2]
    assert "_error" not in dropped.columns
    with pytest.raises(
        PySparkException, match=f"the record at offset 1 of {topic}-0 cannot be decoded: value: not JSON"
    ):
        topics.read(subscribe=topic, **json_options(mode="FAILFAST")).collect()


def test_columns_are_inferred_from_the_topic_on_request(topics: Topics) -> None:
    topic = topics.create()
    topics.send(topic, '{"b": 1, "a": [{"x": 1.5}]}', '{"b": 2.5, "c": null, "d": {}}', "poison")
    frame = topics.read(subscribe=topic, valueFormat="json", valueSchema="infer", mode="DROPMALFORMED")
    theirs = topics.spark.read.json(topics.spark.sparkContext.parallelize(topics.values(topic)[:2]))
    assert frame.schema["value"].dataType == theirs.schema
    assert [row.value.b for row in frame.orderBy("offset").collect()] == [1.0, 2.5]


def test_avro_and_protobuf_are_parsed_into_columns(topics: Topics, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    stream = io.BytesIO()
    schemaless_writer(stream, parse_schema(schema), {"id": 5})
    (tmp_path / "r.avsc").write_text(json.dumps(schema))
    (tmp_path / "shop.desc").write_bytes(descriptors())
    avro, proto = topics.create("avro"), topics.create("proto")
    topics.send_bytes(avro, stream.getvalue(), b"\xff")
    topics.send_bytes(proto, Protobuf(descriptors(), "shop.Order").message(id=6).SerializeToString())
    for text in (json.dumps(schema), str(tmp_path / "r.avsc")):
        rows = topics.read(subscribe=avro, valueFormat="avro", valueSchema=text).orderBy("offset").collect()
        assert (rows[0].value.id, rows[0]._error) == (5, None)
        assert rows[1]._error.startswith("value: not Avro of this schema")
    options = {"valueFormat": "protobuf", "valueDescriptor": str(tmp_path / "shop.desc"), "valueMessage": "shop.Order"}
    assert [row.value.id for row in topics.read(subscribe=proto, **options).collect()] == [6]


def test_a_stream_decodes_too_and_continues_after_poison(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create()
    topics.send(topic, GOOD, "poison")
    seen: list[Any] = []
    frame = topics.stream(subscribe=topic, startingOffsets="earliest", **json_options())
    run(frame, tmp_path, lambda batch, _: seen.extend(batch.selectExpr("value.id", "_error is null as good").collect()))
    assert [tuple(row) for row in seen] == [(1, True), (None, False)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"valueFormat": "jsn"}, "valueFormat = 'jsn': must be one of raw, string, json, avro, protobuf"),
        (
            {"valueFormat": "json"},
            "option valueFormat = json needs the option valueSchema, for example `id bigint, name",
        ),
        ({"valueFormat": "json", "valueSchema": "id int8"}, "option valueSchema: expected a type instead of 'int8'"),
        ({"valueFormat": "json", "valueSchema": "m map<int,int>"}, "option valueSchema: JSON cannot be read as map"),
        ({"valueFormat": "avro", "valueSchema": "/none.avsc"}, "'/none.avsc' cannot be read: No such file"),
        ({"valueFormat": "protobuf", "valueMessage": "a"}, "needs the option valueDescriptor, the file that `protoc"),
        ({"valueFormat": "json", "valueSchema": "a int", "timeZone": "Mars"}, "timeZone = 'Mars' is not a time zone"),
        ({"mode": "STRICT"}, "mode = 'STRICT': must be one of PERMISSIVE, DROPMALFORMED, FAILFAST"),
    ],
)
def test_a_wrong_format_is_a_one_line_error(topics: Topics, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(PySparkException) as error:
        topics.read(subscribe="t", **options).collect()
    assert sentence in str(error.value)
    assert "Traceback" not in str(error.value)
