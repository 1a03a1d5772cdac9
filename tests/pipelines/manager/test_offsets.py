"""How far a pipeline is by Spark's files, and where it may begin instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.model import TopicPartition
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.home import Home
from ottla.pipelines.manager.offsets import Way, begin_at, chosen, position_of, topic_offsets

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(home: Home, number: int, *offsets: object, done: bool = True) -> None:
    """A batch in Spark's logs."""
    for name, text in (("offsets", "\n".join(["v1", "{}", *map(json.dumps, offsets)])), ("commits", "v1\n{}")):
        folder = home.checkpoint / name
        folder.mkdir(parents=True, exist_ok=True)
        if name == "offsets" or done:
            (folder / str(number)).write_text(text, encoding="utf-8")


def test_a_pipeline_is_where_its_last_finished_batch_ended(tmp_path: Path) -> None:
    home = Home(tmp_path, "p")
    assert position_of(home.checkpoint) is None
    batch(home, 9, {"t": {"0": 5}})
    batch(home, 10, {"t": {"0": 7, "1": 2}, "#ids": {"t": "x"}})
    batch(home, 11, {"t": {"0": 9}}, done=False)
    position = position_of(home.checkpoint)
    assert position is not None
    assert (position.batch, topic_offsets(position)) == (10, {A: 7, B: 2})


def test_what_is_no_offset_of_topics_has_none_and_a_damaged_file_is_told(tmp_path: Path) -> None:
    home = Home(tmp_path, "p")
    batch(home, 0, {"logOffset": 3})
    assert topic_offsets(position_of(home.checkpoint)) == {}
    (home.checkpoint / "offsets" / "0").write_text("v1\n{}\n{", encoding="utf-8")
    with pytest.raises(ConfigError, match="batch 0 is done, and its offsets cannot be read"):
        position_of(home.checkpoint)


def test_partitions_that_nobody_named_stay_and_places_that_are_not_there_are_refused() -> None:
    first, end = {A: 2, B: 0}, {A: 9, B: 4}
    assert chosen({A: 3}, {B: 1}, first, end) == {A: 3, B: 1}
    assert chosen({A: 9}, {}, first, end) == {A: 9, B: 0}
    with pytest.raises(ConfigError, match="offset 1 of t-0: it has 2 to 9"):
        chosen({A: 1}, {}, first, end)
    with pytest.raises(ConfigError, match="the source has no partition u-0; it has t-0, t-1"):
        chosen({TopicPartition("u", 0): 1}, {}, first, end)


def test_offsets_that_cannot_be_read_are_refused_before_a_broker_is_asked(tmp_path: Path) -> None:
    text = "{settings: {bootstrap.servers: '127.0.0.1:1'}, pipelines: {p: {source: {type: topic, topic: t}, sink: {type: console}}}}"
    (read,) = read_text(text.encode(), "p.yaml", tmp_path, {})
    with pytest.raises(ConfigError, match=r"option offsets = '\{': must be JSON such as"):
        begin_at(read, Home(tmp_path, "p"), Way("given", "{"))


def test_a_reset_puts_checkpoints_aside_and_keeps_what_spark_called_them(tmp_path: Path) -> None:
    home = Home(tmp_path, "p")
    for identity in ("one", "two"):
        batch(home, 0, {"t": {"0": 5}})
        (home.checkpoint / "metadata").write_text(json.dumps({"id": identity}), encoding="utf-8")
        home.reset({"t": {"0": 1}})
    assert home.is_new
    assert home.start() == '{"t": {"0": 1}}'
    assert sorted(home.query_ids) == ["one", "two"]
    assert sorted(one.name for one in home.folder.iterdir()) == ["checkpoint.1", "checkpoint.2", "start.json"]
