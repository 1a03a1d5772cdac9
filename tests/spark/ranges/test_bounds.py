"""The bounds of ranges, and options that batch or stream reject."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.errors import ConfigError
from ottla.model import EARLIEST, LATEST, TopicPartition
from ottla.spark.options import SourceOptions, read_source_options
from ottla.spark.ranges.bounds import (
    AtOffsets,
    AtTime,
    Bound,
    Everywhere,
    delay_ms,
    end_of_batch,
    start_of_batch,
    start_of_stream,
)

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def source(**options: str) -> SourceOptions:
    return read_source_options({"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a"} | options)


def test_by_default_a_batch_reads_every_record_and_a_stream_new_ones() -> None:
    assert start_of_batch(source()) == Everywhere(EARLIEST)
    assert end_of_batch(source()) == Everywhere(LATEST)
    assert start_of_stream(source()) == Everywhere(LATEST)


def test_offsets_are_read_for_each_partition() -> None:
    bound = AtOffsets("startingOffsets", {A0: 23, A1: EARLIEST})
    assert start_of_batch(source(startingOffsets='{"a":{"0":23,"1":-2}}')) == bound


def test_a_timestamp_for_all_wins_over_one_for_each_which_wins_over_offsets() -> None:
    three = {
        "startingTimestamp": "5",
        "startingOffsetsByTimestamp": '{"a":{"0":7}}',
        "startingOffsets": "earliest",
    }
    assert start_of_stream(source(**three)) == AtTime("startingTimestamp", timestamp=5)
    del three["startingTimestamp"]
    assert start_of_stream(source(**three)) == AtTime("startingOffsetsByTimestamp", timestamps={A0: 7})


def test_a_timestamp_may_be_the_earliest_or_the_latest() -> None:
    assert start_of_batch(source(startingTimestamp="-2")) == Everywhere(EARLIEST)
    assert start_of_stream(source(startingTimestamp="-1")) == Everywhere(LATEST)
    assert end_of_batch(source(endingTimestamp="-1")) == Everywhere(LATEST)
    each = AtTime("startingOffsetsByTimestamp", timestamps={A0: EARLIEST, A1: 7})
    assert start_of_batch(source(startingOffsetsByTimestamp='{"a":{"0":-2,"1":7}}')) == each


@pytest.mark.parametrize(
    ("decide", "options", "sentence"),
    [
        (start_of_batch, {"startingOffsets": "latest"}, "option startingOffsets = 'latest': a batch query would"),
        (start_of_batch, {"startingOffsets": '{"a":{"0":-1}}'}, r"option startingOffsets is the latest of a-0"),
        (end_of_batch, {"endingOffsets": "earliest"}, "option endingOffsets = 'earliest': a batch query would have"),
        (end_of_batch, {"endingOffsets": '{"a":{"1":-2}}'}, "option endingOffsets is the earliest of a-1"),
        (start_of_batch, {"startingTimestamp": "-1"}, "option startingTimestamp = 'latest': a batch query would"),
        (end_of_batch, {"endingTimestamp": "-2"}, "option endingTimestamp = 'earliest': a batch query would"),
        (
            start_of_stream,
            {"startingTimestamp": "-3"},
            "option startingTimestamp = -3: must be milliseconds since 1970",
        ),
        (
            start_of_batch,
            {"startingOffsetsByTimestamp": '{"a":{"1":-1}}'},
            r"option startingOffsetsByTimestamp is the latest of a-1 \(-1\)",
        ),
        (
            end_of_batch,
            {"endingOffsetsByTimestamp": '{"a":{"0":-9}}'},
            "option endingOffsetsByTimestamp of a-0 = -9: must be milliseconds since 1970, or -2 for the earliest",
        ),
        (
            start_of_stream,
            {"startingOffsets": '{"a":{"0":-3}}'},
            "option startingOffsets of a-0 = -3: must be an offset, or -2 for the earliest, -1 for the latest",
        ),
        (start_of_stream, {"endingOffsets": "latest"}, "option endingOffsets is only for batch queries"),
        (start_of_stream, {"endingTimestamp": "9"}, "option endingTimestamp is only for batch queries"),
        (start_of_stream, {"startingOffsets": "newest"}, "option startingOffsets = 'newest': must be earliest, latest"),
        (start_of_stream, {"startingOffsets": '{"a":[1]}'}, "option startingOffsets = .* must be JSON, for example"),
        (
            start_of_stream,
            {"startingOffsets": '{"a":{"0":"x"}}'},
            "option startingOffsets = .* must be JSON, for example",
        ),
        (start_of_stream, {"maxTriggerDelay": "soon"}, "option maxTriggerDelay = 'soon': must be a number with a unit"),
        (start_of_stream, {"idleWait": "long"}, "option idleWait = 'long': must be a number with a unit"),
        (
            start_of_stream,
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"},
            "option minOffsetsPerTrigger = 9 is more than maxOffsetsPerTrigger = 5; lower it",
        ),
    ],
)
def test_a_bound_that_makes_no_sense_is_refused(
    decide: Callable[[SourceOptions], Bound], options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        decide(source(**options))


def test_delays_have_units_and_are_milliseconds_where_they_have_none() -> None:
    assert [delay_ms(text) for text in ("15m", "30s", "250 ms", "2h", "7")] == [900_000, 30_000, 250, 7_200_000, 7]
