"""Pipelines with rows that would return to them are rejected when the file is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.file.reading import AS_WRITTEN, read_pipelines, read_text
from ottla.pipelines.place import PipelineFileError
from tests.pipelines.file.files import mistakes, read

SERVERS = {"bootstrap.servers": "a:1,b:2"}
ROUTER = {"type": "RegexRouter", "regex": "(.*)-in", "replacement": "$1"}


def topic(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "topic", "topic": names[0] if len(names) == 1 else list(names), **more}


def pattern(text: str) -> dict[str, Any]:
    return {"type": "topic", "topicPattern": text}


def one(source: Any, sink: Any, dead: str | None = None, **more: Any) -> dict[str, Any]:
    errors = {"errors": {"tolerance": "all", "deadLetterTopic": dead}} if dead else {}
    return {"source": source, "sink": sink, **errors, **more}


def file_of(**pipelines: Any) -> str:
    return json.dumps({"settings": SERVERS, "pipelines": pipelines}, indent=1)


RATE, CONSOLE = {"type": "rate"}, {"type": "console"}
LITE = {"type": "database", "url": "sqlite:///a.db", "table": "t"}
CDC = {"type": "postgres-cdc", "url": "postgresql://u:p@h/d", "table": "t"}

LOOPS = {
    "its own sink": (
        {"p": one(topic("a", "b"), topic("b"))},
        "pipeline 'p' reads topic b, and writes to it: its rows would return without end",
    ),
    "an input": ({"p": one(topic("a"), topic("b"), inputs={"other": topic("b")})}, "pipeline 'p' reads topic b"),
    "the topic of each record": ({"p": one(topic("a"), {"type": "topic"})}, "pipeline 'p' reads topic a"),
    "a pattern": (
        {"p": one(pattern("orders.*"), topic("orders-out"))},
        "pipeline 'p' reads topic orders-out, which topicPattern 'orders.*' matches, and writes to it",
    ),
    "its own dead letters": (
        {"p": one(topic("a"), topic("b"), "a")},
        "pipeline 'p' reads topic a of dead letters, and writes to it",
    ),
    "dead letters and a pattern": (
        {"p": one(pattern(r"orders(-\w+)?"), CONSOLE, "orders-dead")},
        "pipeline 'p' reads topic orders-dead of dead letters, which topicPattern",
    ),
    "dead letters of a sink": (
        {"p": one({**LITE, "incrementing": "id"}, topic("b"), "c"), "q": one(topic("b", "c"), {**LITE, "table": "t"})},
        "pipelines read from each other in a ring: 'p' writes topic b, which 'q' reads, 'q' writes table t, which 'p' reads",
    ),
    "two": (
        {"p": one(topic("a"), topic("b")), "q": one(topic("b"), topic("a"))},
        "pipelines read from each other in a ring: 'p' writes topic b, which 'q' reads, 'q' writes topic a, which 'p' reads: "
        "rows would circulate without end; choose another, or set allowLoop: true if a transform ends the loop",
    ),
    "three and one beside them": (
        {
            "x": one(RATE, topic("a")),
            "p": one(topic("a"), topic("b")),
            "q": one(pattern("b|z"), topic("c")),
            "r": one(topic("c"), topic("a")),
            "y": one(topic("c"), topic("d")),
        },
        "'p' writes topic b, which 'q' reads, 'q' writes topic c, which 'r' reads, 'r' writes topic a, which 'p' reads",
    ),
    "a ring by dead letters": (
        {"p": one(topic("a"), topic("b"), "dead"), "again": one(topic("dead"), topic("a"))},
        "'p' writes topic dead of dead letters, which 'again' reads, 'again' writes topic a, which 'p' reads",
    ),
    "other names of the same brokers": (
        {"p": one(topic("a"), topic("a", **{"bootstrap.servers": "B:2"}))},
        "pipeline 'p' reads topic a",
    ),
    "a router that leaves the name": (
        {"p": one(topic("a-in", "b"), {"type": "topic"}, transforms=[ROUTER])},
        "pipeline 'p' reads topic b",
    ),
    "a router into another's topic": (
        {"p": one(topic("a-in"), {"type": "topic"}, transforms=[ROUTER]), "q": one(topic("a"), topic("a-in"))},
        "'p' writes topic a, which 'q' reads",
    ),
    "a folder": (
        {
            "p": one(
                {"type": "files", "format": "lines", "path": "./x"}, {"type": "files", "format": "json", "path": "x"}
            )
        },
        "/x, and writes to it",
    ),
    "files in a folder": (
        {
            "p": one(
                {"type": "files", "format": "lines", "path": "x/*"},
                {"type": "spark", "format": "json", "options": {"path": "FOLDER/x"}},
            )
        },
        "/x, and writes to it",
    ),
    "a table": ({"p": one({**LITE, "incrementing": "id"}, LITE)}, "pipeline 'p' reads table t, and writes to it"),
    "changes of a table": (
        {"p": one(CDC, {**LITE, "url": "postgresql://other:x@h/d", "insert.mode": "upsert", "pk.fields": ["id"]})},
        "pipeline 'p' reads table t, and writes to it",
    ),
}
FINE = {
    "another topic": {"p": one(topic("a"), topic("b"), "c")},
    "other brokers": {"p": one(topic("a"), topic("a", **{"bootstrap.servers": "c:3"}))},
    "a chain": {"p": one(topic("a"), topic("b")), "q": one(topic("b"), topic("c")), "r": one(topic("b"), topic("d"))},
    "a router that renames": {"p": one(topic("a-in"), {"type": "topic"}, transforms=[ROUTER])},
    "a router by time": {"p": one(topic("a"), {"type": "topic"}, transforms=[{"type": "TimestampRouter"}])},
    "a narrow pattern": {"p": one(pattern("orders"), CONSOLE, "orders-dead")},
    "a folder below": {
        "p": one(
            {"type": "files", "format": "lines", "path": "x"}, {"type": "files", "format": "json", "path": "x/y/z"}
        )
    },
    "another table": {"p": one({**LITE, "incrementing": "id"}, {**LITE, "table": "u"})},
    "meant": {"p": one(topic("a"), topic("a"), allowLoop=True)},
    "meant by one of a ring": {
        "p": one(topic("a"), topic("b"), "dead"),
        "again": one(topic("dead"), topic("a"), allowLoop=True),
    },
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_refused_with_the_way_that_rows_take(name: str) -> None:
    pipelines, reported = LOOPS[name]
    text = file_of(**pipelines).replace("FOLDER", str(Path().absolute()))
    (mistake,) = mistakes(text)
    assert reported in mistake
    assert "allowLoop: true" in mistake


@pytest.mark.parametrize("name", FINE)
def test_a_chain_that_ends_is_not_a_loop(name: str) -> None:
    assert [each.name for each in read(file_of(**FINE[name]))] == list(FINE[name])


def test_a_loop_is_reported_at_the_step_that_closes_it() -> None:
    text = file_of(p=one(topic("a"), topic("b"), "a"))
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "deadLetterTopic" in line)
    assert mistakes(text)[0].startswith(f"p.yaml:{line}:")
    text = file_of(p=one(topic("a"), topic("a")))
    assert mistakes(text)[0].startswith(
        f"p.yaml:{max(n for n, line in enumerate(text.splitlines(), 1) if 'a' in line and 'topic' in line)}:"
    )


def test_a_ring_over_several_files_is_refused_and_files_are_read_for_commands(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(file_of(p=one(topic("a"), topic("b"))), encoding="utf-8")
    second.write_text(file_of(q=one(topic("b"), topic("a"))), encoding="utf-8")
    assert len(read_pipelines(first, {})) == len(read_pipelines(second, {})) == 1
    with pytest.raises(PipelineFileError, match="in a ring"):
        read_pipelines(tmp_path, {})
    assert len(read_pipelines(tmp_path, AS_WRITTEN)) == 2


def test_two_pipelines_do_not_write_files_to_one_folder() -> None:
    sink = {"type": "files", "format": "json", "path": "out"}
    same = {"type": "spark", "format": "Parquet", "options": {"PATH": f"{Path().absolute()}/out/"}}
    (mistake,) = mistakes(file_of(p=one(RATE, sink), q=one(RATE, same)))
    assert f"pipeline 'p' also writes files to folder {Path().absolute()}/out/, and Spark would skip" in mistake
    assert len(read_text(file_of(p=one(RATE, sink), q=one(RATE, {**sink, "path": "o"})).encode(), "p", Path(), {})) == 2
