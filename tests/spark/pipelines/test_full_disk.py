"""A pipeline with a full disk fails with a sentence, and continues by itself once there is space."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla import Broker
from ottla.errors import ConfigError
from ottla.pipelines.manager.manager import Manager
from tests.patience import eventually
from tests.small_disk import mounted
from tests.spark.pipelines.test_manager import Folder, committed, topic
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

FILES = {"type": "files", "format": "json", "path": "in", "schema": "id bigint"}


@pytest.fixture
def folder(spark: SparkSession, broker: Broker, tmp_path: Path) -> Folder:
    return Folder(spark, broker, tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place, 1) as small:
        yield small


def fill(disk: Path) -> Path:
    """Leave no room at all."""
    with suppress(OSError), (disk / "full").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return disk / "full"


def until(manager: Manager, what: Any) -> None:
    def stepped() -> Any:
        manager.step()
        return what()

    eventually(stepped)


@pytest.mark.behaviour("D2")
@pytest.mark.parametrize("where", ["checkpoint", "sink"])
def test_a_pipeline_with_a_full_disk_reports_it_and_continues_when_there_is_space(
    folder: Folder, topics: Topics, disk: Path, where: str
) -> None:
    out = topics.create("out")
    to_topic = {"source": FILES, "sink": topic(out)}
    to_files = {"source": FILES, "sink": {"type": "files", "format": "json", "path": "disk/out"}}
    if where == "checkpoint":
        folder.settings["checkpoints"] = "disk"

    def ids() -> list[int]:
        if where == "checkpoint":
            return sorted(json.loads(record.value)["id"] for record in committed(topics.servers, out))
        with suppress(Exception):  # nothing was written yet
            return sorted(row.id for row in folder.spark.read.schema("id bigint").json(str(disk / "out")).collect())
        return []

    folder.write("in/1.json", '{"id": 1}\n')
    manager = folder.manager(once=False, p=to_topic if where == "checkpoint" else to_files)
    try:
        until(manager, lambda: ids() == [1])
        full = fill(disk)
        folder.write("in/2.json", '{"id": 2}\n')
        until(manager, lambda: "failed" in folder.events("p"))
        (reason,) = {reported.facts["reason"] for reported in folder.reported if reported.event == "failed"}
        assert reason.startswith("the disk is full; free some space where checkpoints, tables or files are written")
        full.unlink()
        until(manager, lambda: ids() == [1, 2])
    finally:
        manager.stop()
        manager.run()


def test_a_disk_that_is_full_before_anything_runs_is_an_error(folder: Folder, topics: Topics, disk: Path) -> None:
    fill(disk)
    folder.settings["checkpoints"] = "disk"
    with pytest.raises(ConfigError, match=r"pipeline 'p': .*No space left on device; choose other checkpoints"):
        folder.manager(p={"source": FILES, "sink": topic(topics.create("out"))})
