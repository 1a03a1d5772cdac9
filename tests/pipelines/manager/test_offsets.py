"""How far a pipeline is by Spark's files, and where it may begin instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.model import TopicPartition
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.offsets import ResetTarget, choose_offsets, find_start_offsets, position_of, topic_offsets
from ottla.pipelines.manager.state_directory import StateDirectory

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(home: StateDirectory, number: int, *offsets: object, done: bool = True) -> None:
    """A batch in Spark's logs."""
    for name, text in (("offsets", "\n".join(["v1", "{}", *map(json.dumps, offsets)])), ("commits", "v1\n{}")):
        folder = home.checkpoint / name
        folder.mkdir(parents=True, exist_ok=True)
        if name == "offsets" or done:
            (folder / str(number)).write_text(text, encoding="utf-8")


def test_a_pipeline_is_where_its_last_finished_batch_ended(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path, "p")
    assert position_of(home.checkpoint) is None
    batch(home, 9, {"t": {"0": 5}})
    batch(home, 10, {"t": {"0": 7, "1": 2}, "#ids": {"t": "x"}})
    batch(home, 11, {"t": {"0": 9}}, done=False)
    position = position_of(home.checkpoint)
    assert position is not None
    assert (position.batch, topic_offsets(position)) == (10, {A: 7, B: 2})


def test_other_offsets_have_no_topic_offsets_and_a_damaged_file_is_reported(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path, "p")
    batch(home, 0, {"logOffset": 3})
    assert topic_offsets(position_of(home.checkpoint)) == {}
    (home.checkpoint / "offsets" / "0").write_text("v1\n{}\n{", encoding="utf-8")
    with pytest.raises(ConfigError, match="batch 0 is done, and its offsets cannot be read"):
        position_of(home.checkpoint)


def test_partitions_that_are_not_given_keep_their_offsets_and_offsets_out_of_range_are_refused() -> None:
    first, end = {A: 2, B: 0}, {A: 9, B: 4}
    assert choose_offsets({A: 3}, {B: 1}, first, end) == {A: 3, B: 1}
    assert choose_offsets({A: 9}, {}, first, end) == {A: 9, B: 0}
    with pytest.raises(ConfigError, match="offset 1 of t-0: it has 2 to 9"):
        choose_offsets({A: 1}, {}, first, end)
    with pytest.raises(ConfigError, match="the source has no partition u-0; it has t-0, t-1"):
        choose_offsets({TopicPartition("u", 0): 1}, {}, first, end)


def test_unreadable_offsets_are_refused_before_a_request_is_sent_to_a_broker(tmp_path: Path) -> None:
    text = "{settings: {bootstrap.servers: '127.0.0.1:1'}, pipelines: {p: {source: {type: topic, topic: t}, sink: {type: console}}}}"
    (read,) = read_text(text.encode(), "p.yaml", tmp_path, {})
    with pytest.raises(ConfigError, match=r"option offsets = '\{': must be JSON, for example"):
        find_start_offsets(read, StateDirectory(tmp_path, "p"), ResetTarget("given", "{"))


def test_a_reset_puts_checkpoints_aside_and_keeps_what_spark_called_them(tmp_path: Path) -> None:
    home = StateDirectory(tmp_path, "p")
    for identity in ("one", "two"):
        batch(home, 0, {"t": {"0": 5}})
        (home.checkpoint / "metadata").write_text(json.dumps({"id": identity}), encoding="utf-8")
        home.reset({"t": {"0": 1}})
    assert home.is_new
    assert home.start() == '{"t": {"0": 1}}'
    assert sorted(home.query_ids) == ["one", "two"]
    assert sorted(one.name for one in home.folder.iterdir()) == ["checkpoint.1", "checkpoint.2", "start.json"]
