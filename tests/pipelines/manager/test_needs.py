"""Which pipelines, where all run once, wait for which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ottla.pipelines.file.reading import Read, read_text
from ottla.pipelines.manager.needs import needs

CONSOLE = {"type": "console"}
DELTA = {"type": "delta", "path": "lake"}


def read(source: dict[str, Any], sink: dict[str, Any], **more: Any) -> Read:
    text = json.dumps({"pipelines": {"p": {"source": source, "sink": sink, **more}}})
    return read_text(text.encode(), "p.yaml", Path(), {})[0]


def topic(*names: str) -> dict[str, Any]:
    return {"type": "topic", "topic": list(names)}


def test_who_reads_the_topic_that_another_writes_waits_for_it() -> None:
    writer = read(topic("a"), {"type": "topic", "topic": "b"})
    assert needs(read(topic("x", "b"), CONSOLE), writer)
    assert not needs(read(topic("a"), CONSOLE), writer)
    assert needs(read(topic("a"), CONSOLE, inputs={"i": topic("b")}), writer)


def test_what_cannot_be_told_is_waited_for() -> None:
    routed = read(topic("a"), {"type": "topic"}, transforms=[{"type": "RegexRouter", "regex": "a", "replacement": "b"}])
    pattern = {"type": "topic", "topicPattern": "b.*"}
    files = {"type": "files", "format": "lines", "path": "in"}
    assert needs(read(topic("c"), CONSOLE), routed)
    assert needs(read(pattern, CONSOLE), read(topic("a"), {"type": "topic", "topic": "b"}))
    assert needs(read(files, CONSOLE), read(topic("a"), DELTA))


def test_who_cannot_read_it_does_not_wait() -> None:
    assert not needs(read(topic("a"), CONSOLE), read(topic("a"), DELTA))
    assert not needs(read({"type": "rate"}, CONSOLE), read(topic("a"), DELTA))
