"""Offsets as JSON: the official format, and the additional fields."""

from __future__ import annotations

import json

import pytest

from ottla.errors import ConfigError
from ottla.model import TopicPartition
from ottla.spark.ranges.offsets import SplitLimits, StreamOffset, parse_assignment, parse_offsets

A0, A1, A10, B0 = (TopicPartition(*tp) for tp in (("a", 0), ("a", 1), ("a", 10), ("b", 0)))


def test_offsets_are_written_as_the_official_connector_does() -> None:
    offset = StreamOffset({B0: 1, A10: 7, A1: 5})
    assert json.dumps(offset.to_dict()) == '{"a": {"1": 5, "10": 7}, "b": {"0": 1}}'


def test_pinned_offsets_survive_json() -> None:
    offset = StreamOffset({A0: 9, B0: 1}, {A0: 3}, SplitLimits(4, None), initial=True)
    assert StreamOffset.from_dict(json.loads(json.dumps(offset.to_dict()))) == offset


def test_a_batch_starts_at_the_offsets_pinned_by_its_end() -> None:
    asked_again = StreamOffset({A0: 44_461}, initial=True)
    end = StreamOffset({A0: 44_500}, start={A0: 44_306})
    assert end.begin(asked_again) == {A0: 44_306}


def test_a_topic_may_be_named_like_a_pin() -> None:
    tp = TopicPartition("_start", 0)
    assert StreamOffset.from_dict(StreamOffset({tp: 5}, {tp: 1}).to_dict()) == StreamOffset({tp: 5}, {tp: 1})


def test_offsets_copied_from_a_checkpoint_can_be_given_as_an_option() -> None:
    text = json.dumps(StreamOffset({A0: 5}, {A0: 1}, SplitLimits(2, 3)).to_dict())
    assert parse_offsets("startingOffsets", text) == {A0: 5}


def test_an_assignment_names_partitions() -> None:
    assert parse_assignment('{"b":[0],"a":[1,0]}') == [A0, A1, B0]


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"a":0}', '{"a":["x"]}'])
def test_an_assignment_that_is_none_is_a_one_line_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r'must be JSON, for example \{"topic": '):
        parse_assignment(text)
