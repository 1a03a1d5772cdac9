"""Topics of pipelines: made where they are written to, asked for where they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, Broker, NewTopic
from ottla.pipelines.file.reading import PipelineDefinition, read_text
from ottla.pipelines.manager.topics import ensure_topics
from ottla.pipelines.place import PipelineFileError

ERRORS = {"tolerance": "all", "deadLetterTopic": "orders-dead"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def pipelines(broker: Broker, folder: Path, *pairs: tuple[str, str]) -> list[PipelineDefinition]:
    """One from each pair's first topic to its second, with dead letters."""
    each = [
        {"source": {"type": "topic", "topic": source}, "sink": {"type": "topic", "topic": sink}, "errors": ERRORS}
        for source, sink in pairs
    ]
    named = {f"p{number}": pipeline for number, pipeline in enumerate(each)}
    text = json.dumps({"settings": {"bootstrap.servers": broker.bootstrap_servers}, "pipelines": named})
    return read_text(text.encode(), "p.yaml", folder, {})


def test_nothing_is_created_for_a_pipeline_with_a_missing_source_topic(
    broker: Broker, admin: Admin, tmp_path: Path
) -> None:
    with pytest.raises(PipelineFileError, match="unknown topic 'orders'; create it with `ottla topics create orders`"):
        ensure_topics(pipelines(broker, tmp_path, ("orders", "lines")))
    assert list(admin.list_topics()) == []


def test_its_own_dead_letters_are_not_what_was_meant(broker: Broker, admin: Admin, tmp_path: Path) -> None:
    admin.create_topics([NewTopic("orders-dead")])
    with pytest.raises(PipelineFileError, match="unknown topic 'orders'; create it with"):
        ensure_topics(pipelines(broker, tmp_path, ("orders", "lines")))


def test_a_pipeline_may_read_the_output_of_another(broker: Broker, admin: Admin, tmp_path: Path) -> None:
    admin.create_topics([NewTopic("orders")])
    ensure_topics(pipelines(broker, tmp_path, ("lines", "counts"), ("orders", "lines")))
    assert list(admin.list_topics()) == ["counts", "lines", "orders", "orders-dead"]
