"""Every mistake in a pipeline file is one sentence with its place, its value and a remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ottla.pipelines.file.reading import AS_WRITTEN, read_text
from ottla.pipelines.place import PipelineFileError
from ottla.pipelines.sources import FilesSource, RateSource
from tests.pipelines.file.files import WHOLE, mistakes, pipeline, read

TOPIC = "{type: topic, topic: orders}"
"""The topic of both source and sink."""

SCHEMAS = {
    "valueSchema: {id: bigint, name: string}": 'valueSchema: "id bigint, name string"',
    "valueSchema: [id bigint, name string]": 'valueSchema: "id bigint, name string"',
    "valueSchema: {}": 'such as valueSchema: "id bigint, name string"',
    "valueSchema: {type: record, fields: []}": "write the JSON of the schema in single quotes",
    "valueSchema: 5": "must be text; put it in quotes",
}
IN_URL = "user, password and server are part of url, for example postgresql://user:${env:PW}@host/name"
REMEDIES = {
    pipeline(sink="{type: delta, path: x, mode: append}"): "take the place of those with their key; leave it out",
    pipeline(sink="{type: database, url: 'sqlite:///a', table: t, mode: upsert}"): "here it is 'insert.mode'",
    pipeline(
        sink="{type: files, format: csv, path: x, mode: append}"
    ): "chosen by the pipeline's outputMode; leave it out",
    pipeline(sink="{type: topic, topic: a, mode: append}"): "chosen by the pipeline's outputMode; leave it out",
    pipeline(
        "{type: topic, topic: a, mode: PERMISSIVE}"
    ): "handled by errors of the pipeline, for example errors: {tolerance: all",
    pipeline("{type: files, format: lines, path: a, mode: DROPMALFORMED}"): "write options: {mode: …}",
    pipeline("{type: rate, mode: x}"): "the keys are type, rowsPerSecond",
    pipeline(
        "{type: database, url: 'sqlite:///a', table: t, incrementing: i, mode: bulk}"
    ): "incrementing and timestamp",
    pipeline("{type: postgres-cdc, url: 'postgresql://h/d', table: t, hostname: h}"): IN_URL,
    pipeline("{type: postgres-cdc, url: 'postgresql://h/d', table: t, database: h}"): IN_URL,
    pipeline("{type: database, url: 'sqlite:///a', table: t, incrementing: i, password: h}"): IN_URL,
    pipeline(sink="{type: database, url: 'sqlite:///a', table: t, database.user: h}"): IN_URL,
    pipeline("{type: topic, topic: a, hostname: h}"): "the brokers are in bootstrap.servers",
    pipeline(sink="{type: http, url: 'http://h', password: h}"): "a password is a header",
    pipeline(sink="{type: topic, topic: a, key: [id]}"): "key = a list: must be text; write one value, and not a list",
    pipeline(
        sink="{type: s3}"
    ): "here it is 'files' with path: s3a://BUCKET/FOLDER; settings: {spark: {spark.jars.packages",
    pipeline("{type: io.confluent.connect.s3.source.S3Source}"): "here it is 'files' with path: s3a://BUCKET/FOLDER",
    pipeline(
        sink="{type: files, format: csv, path: 's3://b/x'}"
    ): "Hadoop's scheme for S3 is s3a; write s3a://b/x, and settings",
    pipeline(
        "{type: files, format: lines, path: 's3n://b/x'}"
    ): "Hadoop's scheme for S3 is s3a; write s3a://b/x, and settings",
    pipeline(
        sink="{type: delta, path: 's3://b/x'}"
    ): "tables are written to a folder of this machine, or a mounted one",
    pipeline(
        sink="{type: iceberg, table: a.b, warehouse: 's3://b/x'}"
    ): "warehouse = 's3://b/x': tables are written to a folder",
} | {pipeline(f"{{type: topic, topic: a, valueFormat: json, {given}}}"): remedy for given, remedy in SCHEMAS.items()}
"""Mistakes, and the remedy that is theirs."""

CASES = {
    pipeline(
        "{type: topic, topic: a, valueFromat: json}"
    ): "3:35: unknown key 'valueFromat'; did you mean 'valueFormat'?",
    pipeline("{type: topic, topic: 5}"): "3:25: topic = 5: must be text or a list",
    pipeline("{type: topic}"): "3:3: source: give either topic or topicPattern",
    pipeline("{type: topic, topic: a, topicPattern: b}"): "3:3: source: give either topic or topicPattern",
    pipeline("{type: topic, topic: a, maxOffsetsPerTrigger: 0}"): "3:35: maxOffsetsPerTrigger = 0: must be at least 1",
    pipeline("{type: topic, topic: a, includeHeaders: maybe}"): "3:35: includeHeaders = 'maybe': must be true or false",
    pipeline(
        "{type: topic, topic: [a, 'b/c']}"
    ): "3:25: 'b/c' is not a valid topic name: use letters, digits, dots, dashes and underscores, at most 249",
    pipeline(
        sink="{type: topic, topic: ''}"
    ): "5:23: '' is not a valid topic name: use letters, digits, dots, dashes and underscores, at most 249",
    pipeline(
        more="errors: {tolerance: all, deadLetterTopic: a b}"
    ): "6:28: deadLetterTopic: 'a b' is not a valid topic name: use letters, digits, dots, dashes and underscores, at most 249",
    pipeline(
        "{type: topic, topic: a, bootstrap.servers: 'h:0'}"
    ): "3:35: bootstrap.servers: 'h:0': write host:port, such as 127.0.0.1:9092",
    pipeline(
        sink="{type: topic, topic: a, bootstrap.servers: ','}"
    ): "5:33: bootstrap.servers: is empty: write host:port, such as 127.0.0.1:9092",
    "pipelines: {}\nsettings: {bootstrap.servers: [h, 'i:x']}": "2:12: bootstrap.servers: 'i:x': write host:port, such as 127.0.0.1:9092",
    pipeline(
        "{type: database, url: 'sqlite:///a', table: t, incrementing.column.name: id}"
    ): "3:58: unknown key 'incrementing.column.name'; here it is 'incrementing'",
    pipeline(more="tasks.max: 1"): "6:3: unknown key 'tasks.max'; Spark divides the work by itself; leave it out",
    pipeline(
        more="transforms.mask.type: MaskField"
    ): "6:3: unknown key 'transforms.mask.type'; transforms is a list, such as transforms: [{type: MaskField, fields: card}]",
    pipeline(
        "{type: rate, connection.user: me}"
    ): "3:24: unknown key 'connection.user'; user, password and server are part of url, for example postgresql://user:${env:PW}@host/name",
    pipeline("{type: rate, connection.url: x}"): "3:24: unknown key 'connection.url'; the keys are type, rowsPerSecond",
    pipeline(
        "{type: io.confluent.connect.jdbc.JdbcSourceConnector}"
    ): "3:3: unknown type of source 'io.confluent.connect.jdbc.JdbcSourceConnector'; here it is 'database'",
    '{"name": "a", "config": {"connector.class": "io.debezium.connector.postgresql.PostgresConnector"}}': (
        "1:1: this is a connector of Kafka Connect, io.debezium.connector.postgresql.PostgresConnector, not a pipeline file; "
        "write pipelines: {NAME: {source: {type: postgres-cdc, …}, sink: {type: topic, topic: …}}}"
    ),
    "name=a\nconnector.class=FileStreamSink\ntopics=a\n": (
        "1:1: this is a connector of Kafka Connect, FileStreamSink, not a pipeline file; "
        "write pipelines: {NAME: {source: {type: topic, topic: …}, sink: {type: files, …}}}"
    ),
    pipeline("{type: topik}"): "3:3: unknown type of source 'topik'; did you mean 'topic'?",
    pipeline("{}"): "3:3: source needs the key 'type', one of topic, files, database, postgres-cdc, http, rate",
    pipeline("nothing"): "3:3: source = 'nothing': must be a mapping with the key 'type'",
    pipeline("{type: rate, rowsPerSecond: 1.5}"): "3:24: rowsPerSecond = 1.5: must be a whole number",
    pipeline(
        "{type: files, format: csv, path: in}"
    ): "3:3: source: format csv needs schema, the columns, such as `id bigint, name string`",
    pipeline(
        "{type: files, format: cvs, path: in}"
    ): "3:25: format = 'cvs': must be csv or json or parquet or lines; did you mean 'csv'?",
    pipeline(transforms="{}"): "4:3: transforms = a mapping: must be a list",
    pipeline(
        transforms="[{type: InsertFeld}]"
    ): "4:16: unknown type of transform 'InsertFeld'; did you mean 'InsertField'?",
    pipeline(
        transforms="[{type: InsertHeader$Key, header: a, value.literal: b}]"
    ): "4:16: unknown type of transform 'InsertHeader$Key'; did you mean 'InsertHeader'?",
    pipeline(transforms="[{type: MaskField}]"): "4:16: transforms number 1 needs the key 'fields'",
    pipeline(
        transforms="[{type: Cast, spec: 'a:int23'}]"
    ): "4:29: spec: 'a:int23': unknown type 'int23'; did you mean 'int32'? The types are int8, int16, int32, int64, float32, float64, boolean, string.",
    pipeline(
        transforms="[{type: InsertField, static.field: a}]"
    ): "4:16: transforms number 1: static.field needs static.value; give both",
    pipeline(
        transforms="[{type: HeaderFrom, fields: a, headers: 'a,b', operation: copy}]"
    ): "4:16: transforms number 1: 1 fields and 2 headers; give a header for each field",
    pipeline(
        transforms="[{type: Filter, predicate: gone}]"
    ): "2:2: p: unknown predicate 'gone'; define it under predicates",
    pipeline(
        transforms="[{sql: ' '}]"
    ): "4:17: sql: it is empty; write a query over the table input, such as `select * from input`",
    pipeline(
        transforms="[{sql: s, watermark: {column: a, delay: soon}}]"
    ): "4:48: delay: 'soon' is not a duration; write for example `10 seconds`",
    pipeline(
        "{type: topic, topic: t, valueFormat: json, valueSchema: 'id bigin'}"
    ): "3:54: valueSchema: expected a type instead of 'bigin', for example bigint, binary, boolean, byte, date, double, array<…>, struct<…> at '' of 'id bigin'",
    pipeline(
        "{type: http, url: 'http://h/', schema: 'id bigint name string'}"
    ): "3:42: schema: expected the end, or a comma at 'name string' of 'id bigint name string'",
    pipeline(
        "{type: topic, topic: t, keyFormat: json, keySchema: ','}"
    ): "3:52: keySchema: expected a column's name at ',' of ','",
    pipeline(
        "{type: topic, topic: t, valueFormat: json, valueSchema: a/order.avsc}"
    ): "3:54: valueSchema: 'a/order.avsc' looks like a file name; write the columns here, for example `id bigint, name string`",
    pipeline(
        "{type: database, url: 'postgresql://u:${env:PW}@h:1,[::1]:x/d', table: t, incrementing: i}",
        sink="{type: http, url: 'http://h:99999/'}",
    ): "5:22: url: port '99999' is not valid: expected a number from 1 to 65535",
    pipeline(
        "{type: database, url: 'postgresql://u:1@h:1,[::1]:x/d', table: t, incrementing: i}"
    ): "3:28: url: port 'x' is not valid: expected a number from 1 to 65535",
    pipeline(
        sink="{type: database, url: 'mysql://u:a:b@h:0/d', table: t}"
    ): "5:26: url: port '0' is not valid: expected a number from 1 to 65535",
    pipeline(
        "{type: topic, topic: t, valueFormat: avro}"
    ): "3:3: source: valueFormat avro needs valueSchema, an Avro schema as JSON, or a file of it, or a schema registry: schemaRegistryUrl under settings",
    pipeline(
        "{type: topic, topic: t, keyFormat: protobuf, keyDescriptor: k.desc}"
    ): "3:3: source: keyFormat protobuf needs keyMessage, the full name of the message",
    pipeline(transforms="[{function: f}]"): "4:17: 'f' is not a function; write module:function",
    pipeline(
        transforms="[{type: RegexRouter, regex: a, replacement: b}]"
    ): "2:2: p: a router needs a topic sink, and this sink is console",
    pipeline(sink="{type: topic}"): "2:2: p: the sink needs topic: only records of a topic have one",
    pipeline(
        TOPIC, "[{type: TimestampRouter}]", TOPIC
    ): "2:2: p: the sink has a topic and a router chooses one too; leave one out",
    pipeline(
        sink="{type: files, format: csv, path: out, options: {a: [1]}}"
    ): "5:57: a = a list: must be text or true or false or a whole number or a number",
    pipeline(more="trigger: often"): "6:3: trigger: 'often' is not a duration; write for example `1 second`",
    pipeline(
        TOPIC, more="errors: {tolerance: all}"
    ): "6:3: errors: tolerance all needs deadLetterTopic: records that cannot be read would be lost",
    pipeline(
        more="errors: {tolerance: all, deadLetterTopic: d}"
    ): "6:3: no brokers are configured for its dead letters; set bootstrap.servers under settings, or leave errors out",
    pipeline(more="sauce: 1"): "6:3: unknown key 'sauce'; did you mean 'source'?",
    pipeline("{type: rate, rows: '${env:ROWS}'}"): "3:24: ${env:ROWS}: environment variable 'ROWS' is not set; set it",
    "": "1:1: the file is empty; it needs the key 'pipelines'",
    "pipelines: {}": "1:1: there are no pipelines; define one",
    "pipelines: {a/b: {source: {type: rate}, sink: {type: console}}}": "1:1: pipelines: 'a/b' is not a valid pipeline name: use letters, digits, dots, dashes and underscores",
    "- 1": "1:1: the file = a list: must be a mapping, of keys and values",
    "pipelines: {p: {}}": "1:13: p needs the key 'source'",
    "a: b: c": "1:5: this is not YAML: mapping values are not allowed here; see 'a: b: c'",
    "a: 1\na: 2": "2:1: key 'a' is given twice here; give it once",
    "? [1]\n: 2": "1:3: a key must be text, not a list or a mapping",
    "a: !secret b": "1:4: the tag '!secret' is not supported; leave it out",
    "a: &a [*a]": "1:4: this alias refers to a value that contains it; refer to another value",
    "[" * 2000: "1:101: values are nested more than 100 levels deep; reduce the nesting",
}


@pytest.mark.parametrize(("text", "message"), CASES.items(), ids=[message[:70] for message in CASES.values()])
def test_a_mistake_is_reported_with_its_place(text: str, message: str) -> None:
    assert f"p.yaml:{message}" in mistakes(text)


@pytest.mark.parametrize(
    "source",
    [
        "{type: topic, topic: t, valueFormat: json, valueSchema: Infer}",
        "{type: topic, topic: t, valueFormat: avro, valueSchema: '\"long\"'}",
        "{type: topic, topic: t, valueFormat: json, valueSchema: 'id bigint, tags array<struct<a: decimal(4,2)>>'}",
    ],
)
def test_a_schema_that_spark_or_avro_reads_is_not_a_mistake(source: str) -> None:
    assert len(read(pipeline(source))) == 1


@pytest.mark.parametrize("servers", ["SASL_SSL://h:1,[::1]:2,", "h:${env:NAME}", "h"])
def test_a_possible_address_or_topic_is_not_a_mistake(servers: str) -> None:
    source = f"{{type: topic, topic: '${{env:NAME}}', bootstrap.servers: '{servers}'}}"
    assert len(read(pipeline(source), NAME="a/b")) == 1


@pytest.mark.parametrize(
    "url",
    ["postgresql://u:1:2@h,i:5432/d", "postgresql:///d?host=/run", "mysql://[::1]/d", "postgresql://h:${env:NAME}/d"],
)
def test_a_possible_database_address_is_not_a_mistake(url: str) -> None:
    assert len(read(pipeline(sink=f"{{type: database, url: '{url}', table: t}}"), NAME="x")) == 1


@pytest.mark.parametrize("below", ["", "/inner"])
def test_checkpoints_that_can_be_no_folder_are_reported_with_their_place(tmp_path: Path, below: str) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    text = f"settings: {{checkpoints: state{below}}}\n{pipeline()}"
    with pytest.raises(PipelineFileError) as error:
        read_text(text.encode(), "p.yaml", tmp_path, {})
    message = f"{tmp_path / 'state'} is not a folder, and pipelines keep their progress in one; choose another"
    assert str(error.value) == f"p.yaml:1:12: checkpoints = 'state{below}': {message}"
    assert len(read_text(text.encode(), "p.yaml", tmp_path, AS_WRITTEN)) == 1


def test_bytes_that_are_not_text_are_reported_with_their_place() -> None:
    assert mistakes(b"a: 1\nb: \xff") == ["p.yaml:2:4: byte 0xff is not UTF-8; save the file as UTF-8"]


def test_all_mistakes_of_a_file_are_reported_at_once_in_their_order() -> None:
    found = mistakes(
        "settings: {checkpoint: a}\npipelines:\n p:\n  source: {type: rat}\n  sink: {typ: console}\n  x: 1"
    )
    assert [one.split(":")[1] for one in found] == ["1", "4", "5", "6"]


def test_a_file_without_mistakes_is_read_with_its_values_and_places() -> None:
    first, second = read(WHOLE)
    assert isinstance(first.model.source, FilesSource)
    assert first.model.source.options == {"header": True}
    assert [step.describe().split()[0] for step in first.model.transforms] == ["InsertField", "MaskField", "Cast$Value"]
    assert (second.model.sink.describe(), second.model.errors.dead_letter_topic) == (
        "Delta table lake/revenue",
        "orders-dead",
    )
    assert str(second.place("transforms", 1)) == "p.yaml:17:9"


def test_an_alias_and_a_merge_are_replaced_by_the_named_values() -> None:
    text = (
        pipeline("&s {type: rate, rowsPerSecond: 2}") + "\n q:\n  source: {<<: *s, type: rate}\n  sink: {type: console}"
    )
    found = [one.model.source for one in read(text)]
    assert [one.rows_per_second for one in found if isinstance(one, RateSource)] == [2, 2]


def test_aliases_that_multiply_are_a_mistake_and_not_a_bomb() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (mistake,) = mistakes("\n".join(lines))
    assert mistake.endswith("with its aliases it has more than 100,000 values; use fewer aliases")


@pytest.mark.parametrize("page", ["docs/getting-started.md", "docs/pipelines.md"])
def test_the_files_that_the_documentation_shows_have_no_mistakes(page: str) -> None:
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    shown = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert shown
    assert all(bool(read(one, PW="s3cr3t")) for one in shown)


@pytest.mark.parametrize("text", REMEDIES, ids=range(len(REMEDIES)))
def test_the_remedy_is_that_of_the_place(text: str) -> None:
    (mistake,) = mistakes(text)
    assert REMEDIES[text] in mistake


def test_names_are_a_list_or_text_in_every_place() -> None:
    sinks = (
        "{type: delta, path: x, key: 'a, b', partitionBy: c}",
        "{type: database, url: 'sqlite:///a', table: t, insert.mode: upsert, pk.fields: 'a, b'}",
        "{type: files, format: csv, path: x, partitionBy: 'a,b'}",
    )
    delta, database, files = (read(pipeline(sink=sink))[0].model.sink.model_dump() for sink in sinks)
    assert (delta["key"], delta["partition_by"]) == (["a", "b"], ["c"])
    assert database["pk_fields"] == files["partition_by"] == ["a", "b"]
    (source,) = read(pipeline("{type: database, url: 'sqlite:///a', table: t, incrementing: i, columns: 'a,b'}"))
    assert source.model.source.model_dump()["columns"] == ["a", "b"]
