"""Pipelines of a file, run by the manager in the session of the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla import Broker, Consumer, TopicPartition
from ottla.cli.pipelines.pipeline import plan_lines, plan_of
from ottla.pipelines import Pipeline
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.runner import PipelineEvent
from ottla.pipelines.place import PipelineFileError
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

CSV = "id,card,at,amount\n1,4111,2026-05-01T10:00:00Z,5.5\n2,4112,2026-05-01T10:00:30Z,4.5\n"


class Folder:
    """A folder with a pipeline file in it, which is run again and again."""

    def __init__(self, spark: SparkSession, broker: Broker, path: Path) -> None:
        self.spark, self.path = spark, path
        self.settings: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
        self.reported: list[PipelineEvent] = []
        self.text = ""

    def manager(self, once: bool = True, **pipelines: Any) -> Manager:
        self.text = json.dumps({"settings": self.settings, "pipelines": pipelines}, indent=1)
        return Manager(
            read_text(self.text.encode(), "p.yaml", self.path, {}), self.spark, once=once, on_event=self.reported.append
        )

    def run(self, **pipelines: Any) -> bool:
        return self.manager(**pipelines).run()

    def events(self, name: str) -> list[str]:
        return [reported.event for reported in self.reported if reported.pipeline == name]

    def write(self, name: str, text: str) -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text, encoding="utf-8")


@pytest.fixture
def folder(spark: SparkSession, broker: Broker, tmp_path: Path) -> Folder:
    return Folder(spark, broker, tmp_path)


def files_to(topic: str, *transforms: Any, **sink: Any) -> dict[str, Any]:
    """A pipeline from CSV files to a topic."""
    schema = "id bigint, card string, at timestamp, amount double"
    source = {"type": "files", "format": "csv", "path": "in", "schema": schema, "options": {"header": True}}
    return {"source": source, "transforms": list(transforms), "sink": {"type": "topic", "topic": topic, **sink}}


def topic(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "topic", "topic": name, **more}


def committed(servers: str, name: str) -> list[Any]:
    """Return the records that a read_committed consumer reads."""
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        tps = [TopicPartition(name, info.partition) for info in consumer.partitions_for(name)]
        consumer.assign(tps)
        consumer.seek_to_beginning(*tps)
        ends, found = consumer.end_offsets(tps), list[Any]()
        while any(consumer.position(tp) < ends[tp] for tp in tps):
            found += consumer.poll(timeout=1)
    return found


def mistakes(folder: Folder, **pipelines: Any) -> Sequence[str]:
    with pytest.raises(PipelineFileError) as error:
        folder.manager(**pipelines)
    return [str(one) for one in error.value.mistakes]


@pytest.mark.behaviour("D1")
def test_files_are_sent_to_a_topic_once_each_through_transforms(folder: Folder, topics: Topics) -> None:
    out = f"{topics.prefix}-out"
    pipeline = files_to(
        out,
        {"type": "InsertField", "static.field": "shop", "static.value": "seoul"},
        {"type": "MaskField", "fields": ["card"]},
        {"type": "ReplaceField", "exclude": "at"},
        key="id",
    )
    folder.write("in/a.csv", CSV)
    assert folder.run(orders=pipeline)
    folder.write("in/b.csv", "id,card,at,amount\n3,4113,2026-05-01T10:00:00Z,5.5\n")
    assert folder.run(orders=pipeline)
    found = {record.key: json.loads(record.value) for record in committed(topics.servers, out)}
    assert sorted(found) == [b"1", b"2", b"3"]
    assert found[b"1"] == {"id": 1, "card": "", "amount": 5.5, "shop": "seoul"}
    progress = [reported.facts for reported in folder.reported if reported.event == "progress"]
    assert sum(facts["rows_in"] for facts in progress) == sum(facts["rows_out"] for facts in progress) == 3


@pytest.mark.behaviour("D2")
def test_a_pipeline_reads_the_output_of_another_one_and_sends_bad_records_to_the_dead_letters(
    folder: Folder, topics: Topics, spark: SparkSession
) -> None:
    folder.settings["kafka"] = {"default.api.timeout.ms": 60_000, "linger.ms": 0, "fetch.min.bytes": 1}
    orders, dead = topics.create("orders"), f"{topics.prefix}-dead"
    topics.send(orders, "no order", key=b"k")
    folder.write("in/a.csv", CSV)
    source = topic(orders, valueFormat="json", valueSchema="id bigint, at timestamp, amount double")
    query = "select id, amount * 2 as double, _offset as place from input"
    revenue = {
        "source": source,
        "transforms": [{"sql": query}],
        "sink": {"type": "delta", "path": "lake/revenue"},
        "errors": {"tolerance": "all", "deadLetterTopic": dead},
    }
    assert folder.run(first=files_to(orders), revenue=revenue)
    rows = spark.read.format("ottla_delta").load(str(folder.path / "lake/revenue")).collect()
    assert sorted((row.id, row.double) for row in rows) == [(1, 11.0), (2, 9.0)]
    (letter,) = committed(topics.servers, dead)
    headers = {name: value.decode() for name, value in letter.headers}
    assert (letter.key, letter.value, headers["__connect.errors.offset"]) == (b"k", b"no order", "0")
    assert headers["__connect.errors.connector.name"] == "revenue"
    assert headers["__connect.errors.exception.message"]


def test_a_failing_pipeline_fails_alone_and_reports_the_reason(folder: Folder, topics: Topics) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    topics.send(source, "no order")
    folder.write("in/a.csv", CSV)
    bad = {"source": topic(source, valueFormat="json", valueSchema="id bigint"), "sink": topic(out)}
    assert not folder.run(bad=bad, good=files_to(out))
    assert folder.events("bad").count("failed") == 3
    assert "done" in folder.events("good")
    reasons = [reported.facts["reason"] for reported in folder.reported if reported.event == "failed"]
    # Not each: on a busy machine Spark may give a try up because a worker was not there in its ten seconds.
    assert any(f"{source}-0" in reason for reason in reasons), reasons
    assert all("\n" not in reason for reason in reasons), reasons
    assert len(committed(topics.servers, out)) == 2


def test_a_router_and_the_keys_headers_and_tombstones_of_records_are_copied_from_topic_to_topic(
    folder: Folder, topics: Topics
) -> None:
    source = topics.create("in")
    topics.send(source, '{"id": 1}', None, key=b"k", headers=[("h", b"x")])
    pipeline = {
        "source": topic(source, valueFormat="json", valueSchema="id bigint", includeHeaders=True),
        "transforms": [{"type": "RegexRouter", "regex": "(.*)-in", "replacement": "$1-routed"}],
        "sink": {"type": "topic"},
    }
    assert folder.run(route=pipeline)
    found = committed(topics.servers, f"{topics.prefix}-routed")
    assert [record.value for record in found] == [b'{"id":1}', None]
    assert [(record.key, list(record.headers)) for record in found] == [(b"k", [("h", b"x")])] * 2


def test_mismatches_are_reported_with_their_place_before_the_start(folder: Folder, topics: Topics) -> None:
    source = topics.create("in")
    shaped = topic(source, valueFormat="json", valueSchema="id bigint")
    missing = {"source": topic(f"{source}n"), "sink": topic(f"{topics.prefix}-out")}
    (mistake,) = mistakes(folder, p=missing)
    assert f"unknown topic '{source}n'; did you mean '{source}'?" in mistake
    assert mistake.startswith("p.yaml:9:")
    steps = [{"sql": "select ids from input"}]
    (mistake,) = mistakes(folder, p={"source": shaped, "transforms": steps, "sink": {"type": "console"}})
    assert "`ids` cannot be resolved" in mistake
    (mistake,) = mistakes(folder, p={"source": shaped, "sink": topic("out", key="idd")})
    assert "unknown field 'idd'" in mistake
    steps = [{"sql": "select count(*) as n from input"}]
    (mistake,) = mistakes(folder, p={"source": shaped, "transforms": steps, "sink": topic("out")})
    assert "give the sql transform a watermark, or the pipeline outputMode: update" in mistake
    folder.settings = {}
    (mistake,) = mistakes(folder, p={"source": topic(source), "sink": {"type": "console"}})
    assert "no brokers are configured; set bootstrap.servers under settings" in mistake
    assert folder.reported == []


def test_a_change_that_the_checkpoint_does_not_fit_is_refused_and_another_continues(
    folder: Folder, topics: Topics
) -> None:
    one, other, out = topics.create("one"), topics.create("other"), f"{topics.prefix}-out"
    topics.send(one, "a")
    pipeline = {"source": topic(one), "sink": topic(out)}
    assert folder.run(p=pipeline)
    (mistake,) = mistakes(folder, p={**pipeline, "source": topic(other)})
    assert (
        f"its source was topic {one} and is topic {other}; undo the change, or start again under another name"
        in mistake
    )
    (runner,) = folder.manager(p=pipeline).runners
    lines = list(plan_lines(plan_of(runner.built, runner.home)))
    runner.home.unlock()
    assert lines[:2] == ["p", f"  topic {one}"]
    assert lines[2].startswith("    value binary, _key binary, _topic string, _partition int, _offset bigint")
    assert lines[3:] == [
        f"  to topic {out}, exactly once",
        f"  checkpoint {runner.home.checkpoint}: continues from its checkpoint",
    ]
    topics.send(one, "b")
    assert folder.run(p={**pipeline, "transforms": [{"type": "InsertHeader", "header": "h", "value.literal": "1"}]})
    assert [record.value for record in committed(topics.servers, out)] == [b"a", b"b"]


def test_changes_of_an_aggregation_are_written_and_other_keys_of_its_state_are_refused(
    folder: Folder, topics: Topics
) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    topics.send(source, '{"a": 1, "b": 2}', '{"a": 1, "b": 3}')
    pipeline = {
        "source": topic(source, valueFormat="json", valueSchema="a bigint, b bigint"),
        "transforms": [{"sql": "select a, count(*) as n from input group by a"}],
        "sink": topic(out, key="a"),
        "outputMode": "update",
    }
    assert folder.run(p=pipeline)
    topics.send(source, '{"a": 1, "b": 3}')
    assert folder.run(p=pipeline)
    assert [record.value for record in committed(topics.servers, out)] == [b'{"a":1,"n":2}', b'{"a":1,"n":3}']
    (mistake,) = mistakes(
        folder,
        p={**pipeline, "transforms": [{"sql": "select b, count(*) as n from input group by b"}], "sink": topic(out)},
    )
    assert "its state was kept by Aggregate [a]" in mistake


def test_windows_of_another_length_and_state_of_other_types_are_refused_with_the_remedies(
    folder: Folder, topics: Topics
) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    topics.send(source, '{"at": "2026-05-01T10:00:00Z", "n": 1}')

    def by(length: str, kind: str) -> dict[str, Any]:
        window = f"window(at, '{length}')"
        sql = f"select {window}.start as at, sum(n) as n from input group by {window}"
        return {
            "source": topic(source, valueFormat="json", valueSchema=f"at timestamp, n {kind}"),
            "transforms": [{"sql": sql, "watermark": {"column": "at", "delay": "10 seconds"}}],
            "sink": topic(out),
            "outputMode": "update",
        }

    assert folder.run(p=by("1 minute", "double"))
    (mistake,) = mistakes(folder, p=by("5 minutes", "double"))
    assert "its state was kept by windows of 60 s and would be by windows of 300 s; undo the change, or" in mistake
    topics.send(source, '{"at": "2026-05-01T10:00:01Z", "n": 2}')
    assert not folder.run(p=by("1 minute", "decimal(10,2)"))
    failed = folder.reported[-1]
    assert (
        "its state was kept with the value (sum double) and would be with (sum decimal(20,2)" in failed.facts["reason"]
    )
    assert "start again under another name" in failed.facts["reason"]
    assert folder.events("p").count("failed") == 1
    assert folder.run(p=by("1 minute", "double"))
    assert json.loads(committed(topics.servers, out)[-1].value)["n"] == 3


def test_a_distinct_that_never_ends_is_reported_before_anything_runs(folder: Folder, topics: Topics) -> None:
    source = topics.create("in")
    (mistake,) = mistakes(
        folder,
        p={
            "source": topic(source),
            "transforms": [{"sql": "select distinct value from input"}],
            "sink": topic(f"{topics.prefix}-out"),
        },
    )
    assert "cannot know that a row is final without a watermark" in mistake


def test_a_pipeline_runs_on_until_it_is_stopped(folder: Folder, topics: Topics) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    manager = folder.manager(once=False, p={"source": topic(source), "sink": topic(out), "trigger": "100 milliseconds"})

    def look(event: PipelineEvent) -> None:
        folder.reported.append(event)
        if event.event == "running":
            topics.send(source, "a")
        if event.event == "progress" and event.facts["rows_out"]:
            manager.stop()

    for runner in manager.runners:
        runner._on_event = look
    assert manager.run()
    assert folder.events("p")[-1] == "stopped"
    assert [record.value for record in committed(topics.servers, out)] == [b"a"]


def test_a_pipeline_in_python_is_the_same_as_one_in_a_file(topics: Topics, tmp_path: Path) -> None:
    source, out = topics.create("in"), f"{topics.prefix}-out"
    topics.send(source, '{"id": 1, "card": "4111"}')
    events: list[PipelineEvent] = []
    pipeline = Pipeline(
        source=topic(source, valueFormat="json", valueSchema="id bigint, card string"),
        transforms=[{"type": "MaskField", "fields": "card"}],
        sink=topic(out),
        settings={"bootstrap.servers": topics.servers},
        folder=tmp_path,
    )
    assert pipeline.run(once=True, on_event=events.append)
    assert [record.value for record in committed(topics.servers, out)] == [b'{"id":1,"card":""}']
    assert events[0].event == "starting"
    assert events[-1].event == "done"


def test_a_mistake_in_python_is_reported_with_the_pipeline_s_name() -> None:
    with pytest.raises(PipelineFileError) as error:
        Pipeline(source={"type": "topik"}, sink={"type": "console"}, name="masked")
    assert str(error.value) == "masked: unknown type of source 'topik'; did you mean 'topic'?"


def test_records_keep_their_times_and_headers_if_the_sink_is_configured_so(folder: Folder, topics: Topics) -> None:
    source, out = topics.create("in"), topics.create("out")
    topics.send(source, "a", timestamp=123_456, headers=[("h", b"1")])
    keep = topic(out, includeTimestamp=True, includeHeaders=True)
    assert folder.run(p={"source": topic(source, includeHeaders=True), "sink": keep})
    (record,) = committed(topics.servers, out)
    assert (record.value, record.timestamp, list(record.headers)) == (b"a", 123_456, [("h", b"1")])
    (mistake,) = mistakes(folder, p={"source": {"type": "rate"}, "sink": topic(out, includeTimestamp=True)})
    assert "there is no column _timestamp here; only records of topics have it" in mistake
    (mistake,) = mistakes(folder, p={"source": topic(source), "sink": topic(out, includeHeaders=True)})
    assert "there is no column _headers here; set includeHeaders: true at a source that is a topic" in mistake
