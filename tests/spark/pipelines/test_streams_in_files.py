"""Kafka Streams' operations as steps of a file, and the examples that show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager
from tests.spark.pipelines.test_manager import Folder, committed, folder, mistakes, topic
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

__all__ = ["folder"]
EXAMPLES = Path(__file__).parents[3] / "examples" / "streams"


def run_example(topics: Topics, name: str, path: Path, *renamed: str) -> bool:
    """An example at the test's broker, with topics of the test's own."""
    text = (EXAMPLES / name).read_text("utf-8").replace("127.0.0.1:9092", topics.servers)
    for each in renamed:
        text = text.replace(f"topic: {each}", f"topic: {topics.prefix}-{each}")
    return Manager(read_text(text.encode(), name, path, {}), topics.spark, once=True).run()


def latest(topics: Topics, name: str) -> dict[bytes, Any]:
    return {record.key: json.loads(record.value) for record in committed(topics.servers, f"{topics.prefix}-{name}")}


def test_words_are_counted_into_a_table(topics: Topics, tmp_path: Path) -> None:
    lines = topics.create("lines")
    topics.send(lines, "all streams lead to Kafka", "all, all")
    assert run_example(topics, "word_count.yaml", tmp_path, "lines", "words")
    topics.send(lines, "streams")
    assert run_example(topics, "word_count.yaml", tmp_path, "lines", "words")
    counted = {key.decode(): value["count"] for key, value in latest(topics, "words").items()}
    assert counted == {"all": 3, "streams": 2, "lead": 1, "to": 1, "kafka": 1}


def test_a_flight_has_the_weather_that_its_airport_last_reported(topics: Topics, tmp_path: Path) -> None:
    flights, weather = topics.create("flights"), topics.create("weather")
    for hour, wind in ((1, 10.0), (3, 30.0)):
        report = {"origin": "JFK", "wind_speed": wind, "visib": 9.0}
        topics.send(weather, json.dumps(report), timestamp=hour * 3_600_000)
    for number, hour, origin in ((1, 2, "JFK"), (2, 4, "JFK"), (3, 2, "LGA")):
        flight = {"flight": number, "origin": origin, "dep_delay": 5}
        topics.send(flights, json.dumps(flight), timestamp=hour * 3_600_000)
    assert run_example(topics, "weather.yaml", tmp_path, "flights-with-weather", "flights", "weather")
    found = [json.loads(record.value) for record in committed(topics.servers, f"{topics.prefix}-flights-with-weather")]
    assert sorted((one["flight"], one["wind_speed"]) for one in found if one["origin"] == "JFK") == [
        (1, 10.0),
        (2, 30.0),
    ]
    assert [one["wind_speed"] for one in found if one["origin"] == "LGA"] == [None]


def test_a_table_of_a_changelog_has_the_latest_rows_and_writes_tombstones(folder: Folder, topics: Topics) -> None:
    source = topics.create("in")
    topics.send(source, '{"n": 1}', '{"n": 2}', key=b"a")
    topics.send(source, '{"n": 3}', None, key=b"b")
    pipeline = {
        "source": topic(source, valueFormat="json", valueSchema="n bigint"),
        "transforms": [{"type": "AsTable"}],
        "sink": topic(f"{topics.prefix}-table", table=True),
        "outputMode": "update",
    }
    assert folder.run(p=pipeline)
    found = {record.key: record.value for record in committed(topics.servers, f"{topics.prefix}-table")}
    assert found == {b"a": b'{"n":2}', b"b": None}


def test_sql_sees_the_other_inputs_as_tables(folder: Folder, topics: Topics) -> None:
    left, right, out = topics.create("left"), topics.create("right"), f"{topics.prefix}-out"
    topics.send(left, '{"id": 1, "a": "x"}', '{"id": 2, "a": "y"}')
    topics.send(right, '{"id": 1, "b": "z"}')
    pipeline = {
        "source": topic(left, valueFormat="json", valueSchema="id bigint, a string"),
        "inputs": {"others": topic(right, valueFormat="json", valueSchema="id bigint, b string")},
        "transforms": [{"sql": "select input.id, a, b from input join others on input.id = others.id"}],
        "sink": topic(out),
    }
    assert folder.run(p=pipeline)
    assert [record.value for record in committed(topics.servers, out)] == [b'{"id":1,"a":"x","b":"z"}']


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"type": "Window", "time": "at", "aggregates": {"n": "count(*)"}}, "give either size, the length of all windows"),
    ({"type": "Window", "time": "at", "size": "1 fortnight", "aggregates": {"n": "count(*)"}}, "is not a duration"),
    ({"type": "TableJoin", "input": "wether", "keys": "id"}, "unknown input 'wether'; did you mean 'weather'?"),
    ({"type": "Dedupe", "keys": "idd"}, "unknown field 'idd'"),
    ({"type": "Aggregate", "keys": "id", "aggregates": {"n": "cnt(*)"}}, "cnt"),
]


@pytest.mark.parametrize(("step", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_step_that_does_not_fit_is_reported_with_its_place(
    folder: Folder, topics: Topics, step: dict[str, Any], message: str
) -> None:
    source = topics.create("in")
    shaped = topic(source, valueFormat="json", valueSchema="id bigint, at timestamp")
    given = {"source": shaped, "inputs": {"weather": shaped}, "transforms": [step], "sink": {"type": "console"}}
    (found,) = mistakes(folder, p=given)
    assert message in found
