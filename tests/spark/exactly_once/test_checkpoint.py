"""The parts of a checkpoint that the sink reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.spark.exactly_once.checkpoint import read_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make the folder in the state in which Spark leaves it before batch 10 is written."""
    (tmp_path / "a b" / "offsets").mkdir(parents=True)
    (tmp_path / "a b" / "metadata").write_text(json.dumps({"id": "the-query"}))
    for batch in (9, 10):
        text = f'v1\n{{"conf": {{"spark.sql.shuffle.partitions": "{batch}"}}}}\n{{"t": {{"0": 1}}}}'
        (tmp_path / "a b" / "offsets" / str(batch)).write_text(text)
    (tmp_path / "a b" / "offsets" / ".10.crc").write_text("")
    return tmp_path / "a b"


def test_the_newest_batch_is_the_one_to_write(folder: Path) -> None:
    for location in (str(folder), f"{folder}/", folder.as_uri(), f"file:{folder}".replace(" ", "%20")):
        found = read_checkpoint(location, "t")
        assert found is not None
        assert (found.query, found.batch, found.plan.shuffle, found.plan.topic) == ("the-query", 10, "10", "t")


@pytest.mark.parametrize("location", [None, "/nowhere/at/all", "dbfs:/checkpoints/x"])
def test_a_checkpoint_that_python_cannot_reach_is_none(location: str | None) -> None:
    assert read_checkpoint(location, None) is None


def test_one_without_a_batch_is_none(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text("{}")
    assert read_checkpoint(str(tmp_path), None) is None
