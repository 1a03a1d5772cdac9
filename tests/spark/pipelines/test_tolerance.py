"""With `tolerance: all` a record that a step cannot do is put aside, as it came, and the others go on."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from ottla.spark.tables.iceberg_store import IcebergStore
from ottla.spark.tables.options import IcebergOptions
from tests.spark.pipelines.test_manager import Folder, committed, folder, topic
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

__all__ = ["folder"]


def error_headers(letter: Any) -> dict[str, str]:
    prefix = "__connect.errors."
    return {name.removeprefix(prefix): value.decode() for name, value in letter.headers if name.startswith(prefix)}


def tolerant(topics: Topics, source: dict[str, Any], *steps: Any) -> dict[str, Any]:
    errors = {"tolerance": "all", "deadLetterTopic": f"{topics.prefix}-dead"}
    return {"source": source, "transforms": list(steps), "sink": topic(f"{topics.prefix}-out"), "errors": errors}


@pytest.mark.behaviour("D1")
def test_a_record_that_fails_a_transform_is_sent_unchanged_to_the_dead_letters(folder: Folder, topics: Topics) -> None:
    source = topics.create("in")
    topics.send(source, '{"a": "1", "t": "2026-05-01"}', '{"a":  "x", "t": "2026-05-01"}', key=b"k")
    topics.send(source, "no json", '{"a": "4", "t": "soon"}', '{"a": null, "t": null}', headers=[("h", b"1")])
    pipeline = tolerant(
        topics,
        topic(source, valueFormat="json", valueSchema="a string, t string"),
        {"type": "ReplaceField", "renames": "a:b"},
        {"type": "Cast", "spec": "b:int32"},
        {"type": "TimestampConverter", "field": "t", "target.type": "unix", "format": "yyyy-MM-dd"},
        {"type": "Drop$Key"},
    )
    assert folder.run(p=pipeline)
    good = [json.loads(record.value) for record in committed(topics.servers, f"{topics.prefix}-out")]
    assert good == [{"b": 1, "t": 1777593600000}, {"b": None, "t": None}]
    letters = committed(topics.servers, f"{topics.prefix}-dead")
    found = [(one.key, one.value, error_headers(one)["offset"], error_headers(one)["stage"]) for one in letters]
    assert found == [
        (b"k", b'{"a":  "x", "t": "2026-05-01"}', "1", "TRANSFORMATION"),
        (None, b"no json", "2", "VALUE_CONVERTER"),
        (None, b'{"a": "4", "t": "soon"}', "3", "TRANSFORMATION"),
    ]
    assert error_headers(letters[0])["exception.message"] == "Cast cannot read b = x"
    assert letters[2].headers[0] == ("h", b"1")
    progress = [reported.facts for reported in folder.reported if reported.event == "progress"]
    counts = [sum(facts[name] for facts in progress) for name in ("rows_in", "rows_out")]
    assert counts == [4, 2], "what is no JSON is no row"


def test_filtered_records_are_no_dead_letters_and_text_can_be_one(folder: Folder, topics: Topics) -> None:
    source = topics.create("in")
    topics.send(source, "7", "x", headers=[("cast", b"1")])
    topics.send(source, "y")
    pipeline = tolerant(
        topics,
        topic(source, valueFormat="string", includeHeaders=True),
        {"type": "HoistField", "field": "a"},
        {"type": "InsertField", "static.field": "b", "static.value": "z"},
        {"type": "Filter", "predicate": "has", "negate": True},
        {"type": "Cast", "spec": "a:int64"},
    )
    pipeline["predicates"] = {"has": {"type": "HasHeaderKey", "name": "cast"}}
    assert folder.run(p=pipeline)
    good = [json.loads(record.value) for record in committed(topics.servers, f"{topics.prefix}-out")]
    assert good == [{"a": 7, "b": "z"}]
    assert [one.value for one in committed(topics.servers, f"{topics.prefix}-dead")] == [b"x"]


def test_only_null_is_a_tombstone_and_an_empty_value_is_a_dead_letter(folder: Folder, topics: Topics) -> None:
    source, text = topics.create("in"), topics.create("text")
    good = '{"id": 1, "n": 7}'
    for empty in ("", "  ", "\n"):
        topics.send(source, good, empty, key=b'{"id": 1}')
    topics.send(source, good, key=b"")
    topics.send(source, None, key=b'{"id": 2}')
    topics.send(text, "", None, key=b"k")
    read = topic(source, keyFormat="json", keySchema="id bigint", valueFormat="json", valueSchema="id bigint, n bigint")
    rows = tolerant(topics, read)
    table = {**rows, "sink": {"type": "delta", "path": "t", "key": ["id"], "delete.enabled": True}}
    texts = {"source": topic(text, valueFormat="string"), "sink": topic(f"{topics.prefix}-texts")}
    assert folder.run(rows=rows, table=table, texts=texts)
    written = committed(topics.servers, f"{topics.prefix}-out")
    assert [one.value for one in written] == [b'{"id":1,"n":7}'] * 3 + [None]
    kept = folder.spark.read.format("ottla_delta").load(str(folder.path / "t")).collect()
    assert [row.asDict() for row in kept] == [{"id": 1, "n": 7}]
    letters = [
        one
        for one in committed(topics.servers, f"{topics.prefix}-dead")
        if error_headers(one)["connector.name"] == "rows"
    ]
    assert [(one.key, one.value) for one in letters] == [
        *((b'{"id": 1}', empty) for empty in (b"", b"  ", b"\n")),
        (b"", good.encode()),
    ]
    assert error_headers(letters[1])["exception.message"] == (
        "value: it has 2 bytes and no content; only null is a tombstone, write null instead"
    )
    assert error_headers(letters[3])["exception.message"].startswith("key: it has 0 bytes and no content")
    assert [one.value for one in committed(topics.servers, f"{topics.prefix}-texts")] == [b"", None]


def test_an_empty_value_stops_a_pipeline_that_tolerates_nothing_and_deletes_nothing(
    folder: Folder, topics: Topics
) -> None:
    source = topics.create("in")
    topics.send(source, '{"id": 1}', "", key=b"1")
    table = {"type": "delta", "path": "t", "key": ["id"], "delete.enabled": True}
    assert not folder.run(p={"source": topic(source, valueFormat="json", valueSchema="id bigint"), "sink": table})
    (reason, *_) = [reported.facts["reason"] for reported in folder.reported if reported.event == "failed"]
    assert f"the record at offset 1 of {source}-0 cannot be decoded: value: it has 0 bytes and no content" in reason


def table_of(folder: Folder, kind: str) -> dict[str, Any]:
    """Return a sink with a table that does not allow null in `n`."""
    if kind == "delta":
        DeltaTable.create(
            str(folder.path / "t"),
            Schema([Field("id", PrimitiveType("long")), Field("n", PrimitiveType("long"), nullable=False)]),
        )
        return {"type": "delta", "path": "t"}
    options = IcebergOptions(path="shop.t", warehouse=str(folder.path / "lake"))
    catalog = IcebergStore(options).catalog()
    catalog.create_namespace("shop")
    columns = [pa.field("id", pa.int64()), pa.field("n", pa.int64(), nullable=False)]
    catalog.create_table("shop.t", pa.schema(columns))
    return {"type": "iceberg", "table": "shop.t", "warehouse": "lake"}


def ids_in(folder: Folder, kind: str) -> list[int]:
    reader = folder.spark.read.format(f"ottla_{kind}")
    if kind == "iceberg":
        reader = reader.option("warehouse", str(folder.path / "lake"))
    return sorted(row["id"] for row in reader.load(str(folder.path / "t") if kind == "delta" else "shop.t").collect())


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_null_that_a_table_does_not_allow_is_a_dead_letter_and_is_counted(
    folder: Folder, topics: Topics, kind: str
) -> None:
    source = topics.create("in")
    topics.send(source, '{"id": 1, "n": 1}', '{"id": 2, "n": null}', '{"id": 3, "n": 3}')
    read = topic(source, valueFormat="json", valueSchema="id bigint, n bigint")
    pipeline = {**tolerant(topics, read), "sink": table_of(folder, kind)}
    assert folder.run(p=pipeline), folder.reported
    assert ids_in(folder, kind) == [1, 3]
    (letter,) = committed(topics.servers, f"{topics.prefix}-dead")
    assert json.loads(letter.value) == {"id": 2, "n": None}
    assert error_headers(letter)["exception.message"].endswith("column 'n' is null, which the table does not allow")
    assert [one.facts for one in folder.reported if one.event == "progress"][-1]["dead_letters"] == 1


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_without_dead_letters_such_a_null_fails_the_pipeline_once_with_its_row(
    folder: Folder, topics: Topics, kind: str
) -> None:
    source = topics.create("in")
    topics.send(source, '{"id": 1, "n": 1}', '{"id": 2, "n": null}')
    read = topic(source, valueFormat="json", valueSchema="id bigint, n bigint")
    assert not folder.run(p={"source": read, "sink": table_of(folder, kind)})
    (reason,) = [reported.facts["reason"] for reported in folder.reported if reported.event == "failed"]
    assert "column 'n' is null in the row id = 2, n = None, and the table does not allow null; fill it" in reason
    assert ids_in(folder, kind) == []


def test_a_row_without_a_key_for_a_compacted_topic_is_a_dead_letter_and_is_counted(
    folder: Folder, topics: Topics
) -> None:
    source = topics.create("in")
    topics.send(source, '{"id": "a", "n": 1}', '{"id": null, "n": 2}', '{"id": "c", "n": 3}')
    pipeline = tolerant(topics, topic(source, valueFormat="json", valueSchema="id string, n bigint"))
    pipeline["sink"] = topic(f"{topics.prefix}-out", key="id", table=True)
    assert folder.run(p=pipeline), folder.reported
    assert [record.key for record in committed(topics.servers, f"{topics.prefix}-out")] == [b"a", b"c"]
    (letter,) = committed(topics.servers, f"{topics.prefix}-dead")
    assert json.loads(letter.value)["n"] == 2
    assert error_headers(letter)["exception.message"].startswith("it has no key, and ")
    assert [one.facts for one in folder.reported if one.event == "progress"][-1]["dead_letters"] == 1
