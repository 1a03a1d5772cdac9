"""The order of pipelines that run once and read from each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ottla.pipelines.file.reading import PipelineDefinition, read_text
from ottla.pipelines.manager.manager import should_wait_for

CONSOLE = {"type": "console"}
DELTA = {"type": "delta", "path": "lake"}


def read(source: dict[str, Any], sink: dict[str, Any], **more: Any) -> PipelineDefinition:
    text = json.dumps({"pipelines": {"p": {"source": source, "sink": sink, **more}}})
    return read_text(text.encode(), "p.yaml", Path(), {})[0]


def topic(*names: str) -> dict[str, Any]:
    return {"type": "topic", "topic": list(names)}


def test_a_pipeline_waits_for_the_pipeline_that_writes_its_topic() -> None:
    writer = read(topic("a"), {"type": "topic", "topic": "b"})
    assert should_wait_for(read(topic("x", "b"), CONSOLE), writer)
    assert not should_wait_for(read(topic("a"), CONSOLE), writer)
    assert should_wait_for(read(topic("a"), CONSOLE, inputs={"i": topic("b")}), writer)


def test_a_pipeline_with_an_unknown_source_waits() -> None:
    routed = read(topic("a"), {"type": "topic"}, transforms=[{"type": "RegexRouter", "regex": "a", "replacement": "b"}])
    pattern = {"type": "topic", "topicPattern": "b.*"}
    files = {"type": "files", "format": "lines", "path": "in"}
    assert should_wait_for(read(topic("c"), CONSOLE), routed)
    assert should_wait_for(read(pattern, CONSOLE), read(topic("a"), {"type": "topic", "topic": "b"}))
    assert should_wait_for(read(files, CONSOLE), read(topic("a"), DELTA))


def test_a_pipeline_that_cannot_read_it_does_not_wait() -> None:
    assert not should_wait_for(read(topic("a"), CONSOLE), read(topic("a"), DELTA))
    assert not should_wait_for(read({"type": "rate"}, CONSOLE), read(topic("a"), DELTA))
