"""Files that pipelines write: no row is read and left out because another checkpoint had a batch of that number."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from ottla.errors import ConfigError
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.offsets import ResetTarget, reset
from ottla.pipelines.manager.state_directory import StateDirectory
from tests.spark.pipelines.test_manager import Folder, folder, mistakes, topic
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy

__all__ = ["folder"]
FOLDER = {"type": "files", "format": "json", "path": "out"}
SPARK = {"type": "spark", "format": "JSON"}


def sink_of(folder: Folder, kind: str) -> dict[str, Any]:
    return FOLDER if kind == "files" else {**SPARK, "options": {"Path": str(folder.path / "out")}}


def values(folder: Folder) -> list[str]:
    """Return the rows for a reader that uses the log."""
    return sorted(
        row.value for row in folder.spark.read.schema("value string").json(str(folder.path / "out")).collect()
    )


@pytest.mark.parametrize("kind", ["files", "spark"])
def test_a_pipeline_that_starts_again_is_refused_its_folder_and_loses_no_row(
    folder: Folder, topics: Topics, kind: str
) -> None:
    source = topics.create("in")
    topics.send(source, "a")
    pipeline = {"source": topic(source, valueFormat="string"), "sink": sink_of(folder, kind)}
    assert folder.run(p=pipeline)
    topics.send(source, "b")
    assert folder.run(p=pipeline)
    assert values(folder) == ["a", "b"]
    topics.send(source, "c")
    (read,) = read_text(folder.text.encode(), "p.yaml", folder.path, {})
    home = StateDirectory(folder.path / "state", "p")
    for way in (ResetTarget("earliest"), ResetTarget("latest"), ResetTarget("given", json.dumps({source: {"0": 1}}))):
        with pytest.raises(ConfigError, match=r"pipeline 'p' cannot be reset: folder .*/out has batches up to 1"):
            reset(read, home, way)
    assert folder.run(p=pipeline), "the refused reset has changed nothing"
    assert values(folder) == ["a", "b", "c"]

    home.checkpoint.rename(home.folder / "gone")
    (mistake,) = mistakes(folder, p=pipeline)
    assert f"folder {folder.path}/out has batches up to 2, and the checkpoint of this pipeline has none" in mistake
    (home.folder / "gone").rename(home.checkpoint)
    for name in ("offsets", "commits"):
        (home.checkpoint / name / "2").unlink()
    (mistake,) = mistakes(folder, p=pipeline)
    assert "has batches up to 2, and the checkpoint of this pipeline is at batch 1" in mistake

    shutil.move(folder.path / "out", folder.path / "old")
    (mistake,) = mistakes(folder, p=pipeline)
    assert "has none of the batches up to 1 of this pipeline, without which Spark cannot read it" in mistake
    reset(read, home, ResetTarget("earliest"))
    assert folder.run(p=pipeline)
    assert values(folder) == ["a", "b", "c"]


def test_a_folder_belongs_to_one_pipeline(folder: Folder, topics: Topics) -> None:
    first, second = topics.create("first"), topics.create("second")
    topics.send(first, "a")
    topics.send(second, "b")
    one, two = ({"source": topic(name, valueFormat="string"), "sink": FOLDER} for name in (first, second))
    assert folder.run(one=one)
    (mistake,) = mistakes(folder, two=two)
    assert (
        f"folder {folder.path}/out belongs to pipeline 'one', with its checkpoint in {folder.path}/state/one" in mistake
    )
    assert folder.run(one=one, two={**two, "sink": {**FOLDER, "path": "other"}})
    shutil.rmtree(folder.path / "state" / "one")
    (mistake,) = mistakes(folder, renamed=one)
    assert "has batches up to 0, and the checkpoint of this pipeline has none" in mistake
    assert values(folder) == ["a"]


def test_a_project_that_was_moved_continues_with_its_folder(folder: Folder, topics: Topics) -> None:
    source = topics.create("in")
    topics.send(source, "a")
    pipeline = {"source": topic(source, valueFormat="string"), "sink": FOLDER}
    place = folder.path
    folder.path = place / "before"
    assert folder.run(p=pipeline)
    folder.path = (place / "before").rename(place / "after")
    topics.send(source, "b")
    assert folder.run(p=pipeline)
    assert values(folder)[-1] == "b"


def test_batches_without_rows_are_in_the_log_and_refuse_nothing(folder: Folder, topics: Topics) -> None:
    source = topics.create("in")
    step = {"sql": "select value from input where value <> 'a'"}
    pipeline = {"source": topic(source, valueFormat="string"), "transforms": [step], "sink": FOLDER}
    for value in ("a", "a", "b"):
        topics.send(source, value)
        assert folder.run(p=pipeline)
    assert values(folder) == ["b"]
