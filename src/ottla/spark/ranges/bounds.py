"""Where a range begins or ends, as the options say it; and which options batch and stream refuse.

Pure. What a bound means in numbers is the cluster's to say (see `offset_reader.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.errors import ConfigError
from ottla.model import EARLIEST, LATEST, TopicPartition
from ottla.spark.options import SourceOptions
from ottla.spark.ranges.offsets import parse_offsets


@dataclass(frozen=True)
class Everywhere:
    """The same for every partition: EARLIEST or LATEST."""

    offset: int
    option: str = field(default="", compare=False)
    """That says so, or would."""


@dataclass(frozen=True)
class AtOffsets:
    """An offset for each partition, which may be EARLIEST or LATEST."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class AtTime:
    """The first record of that time or later; one time for all partitions, or one for each.

    A partition's time may be EARLIEST or LATEST, as an offset may.
    """

    option: str
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None


Bound = Everywhere | AtOffsets | AtTime


def start_of_batch(options: SourceOptions) -> Bound:
    """Where a batch query begins."""
    bound = starting(options, EARLIEST)
    refuse(bound, LATEST, "a batch query would have nothing to read")
    return bound


def start_of_stream(options: SourceOptions) -> Bound:
    """Where a new stream begins. ConfigError for options that only a batch has."""
    for name, value in {
        "endingOffsets": options.ending_offsets,
        "endingTimestamp": options.ending_timestamp,
        "endingOffsetsByTimestamp": options.ending_offsets_by_timestamp,
    }.items():
        if value is not None:
            raise ConfigError(f"option {name} is for batch queries; a stream ends when it is stopped")
    delay_ms(options.max_trigger_delay)
    delay_ms(options.idle_wait, "idleWait")
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least and most and least > most:
        raise ConfigError(f"option minOffsetsPerTrigger = {least} is more than maxOffsetsPerTrigger = {most}; lower it")
    return starting(options, LATEST)


def end_of_batch(options: SourceOptions) -> Bound:
    """Where a batch query ends."""
    bound = at_times("ending", options.ending_timestamp, options.ending_offsets_by_timestamp) or at_offsets(
        "endingOffsets", options.ending_offsets, LATEST
    )
    refuse(bound, EARLIEST, "a batch query would have nothing to read")
    return bound


def starting(options: SourceOptions, default: int) -> Bound:
    """The start, of the options that are given the one that wins."""
    timed = at_times("starting", options.starting_timestamp, options.starting_offsets_by_timestamp)
    return timed or at_offsets("startingOffsets", options.starting_offsets, default)


def at_times(edge: str, timestamp: int | None, by_partition: str | None) -> Everywhere | AtTime | None:
    """What the options `<edge>Timestamp` and `<edge>OffsetsByTimestamp` say, of which the first wins."""
    if timestamp is not None:
        name = f"{edge}Timestamp"
        if timestamp in (EARLIEST, LATEST):
            return Everywhere(timestamp, name)
        return AtTime(name, timestamp=checked_time(name, timestamp))
    if by_partition is None:
        return None
    name = f"{edge}OffsetsByTimestamp"
    times = parse_offsets(name, by_partition)
    for tp, time in times.items():
        if time not in (EARLIEST, LATEST):
            checked_time(f"{name} of {tp}", time)
    return AtTime(name, timestamps=times)


def checked_time(what: str, timestamp: int) -> int:
    """`timestamp`, if Kafka knows such a time."""
    if timestamp < 0:
        raise ConfigError(
            f"option {what} = {timestamp}: must be milliseconds since 1970, or -2 for the earliest, -1 for the latest"
        )
    return timestamp


def at_offsets(option: str, text: str | None, default: int) -> Everywhere | AtOffsets:
    """`earliest`, `latest`, or JSON."""
    if text is None:
        return Everywhere(default, option)
    words = {"earliest": EARLIEST, "latest": LATEST}
    if text.lower() in words:
        return Everywhere(words[text.lower()], option)
    if not text.startswith("{"):
        raise ConfigError(f"option {option} = {text!r}: must be earliest, latest or JSON")
    offsets = parse_offsets(option, text)
    for tp, offset in offsets.items():
        if offset < EARLIEST:
            raise ConfigError(
                f"option {option} of {tp} = {offset}: must be an offset, or -2 for the earliest, -1 for the latest"
            )
    return AtOffsets(option, offsets)


def refuse(bound: Bound, offset: int, reason: str) -> None:
    """ConfigError where a bound is, for any partition, the end that makes no sense there."""
    word = {EARLIEST: "earliest", LATEST: "latest"}[offset]
    if isinstance(bound, Everywhere):
        if bound.offset == offset:
            raise ConfigError(f"option {bound.option} = {word!r}: {reason}")
        return
    for tp, asked in ((bound.timestamps or {}) if isinstance(bound, AtTime) else bound.offsets).items():
        if asked == offset:
            raise ConfigError(f"option {bound.option} asks for the {word} of {tp} ({offset}): {reason}")


UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def delay_ms(text: str, option: str = "maxTriggerDelay") -> int:
    """A span as Spark writes it, `15m` or `30s`; a bare number is milliseconds."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if match is None or (match[2] or "ms") not in UNITS_MS:
        raise ConfigError(f"option {option} = {text!r}: must be a number with a unit, such as 30s or 15m")
    return round(int(match[1]) * UNITS_MS[match[2] or "ms"])
