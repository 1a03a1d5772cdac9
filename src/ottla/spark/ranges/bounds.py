"""The bounds of a query from its options, and checks of options that only a batch or only a stream supports.

Pure. `offset_reader.py` resolves a bound to offsets of the cluster.
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
    """The same bound for every partition: EARLIEST or LATEST."""

    offset: int
    option: str = field(default="", compare=False)
    """The option that sets the bound."""


@dataclass(frozen=True)
class AtOffsets:
    """An offset for each partition, which may be EARLIEST or LATEST."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class AtTime:
    """The first record with that timestamp or a later one; one timestamp for all partitions, or one for each.

    A partition's timestamp may be EARLIEST or LATEST, like an offset.
    """

    option: str
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None


Bound = Everywhere | AtOffsets | AtTime


def start_of_batch(options: SourceOptions) -> Bound:
    """Return the start of a batch query."""
    bound = choose_start(options, EARLIEST)
    reject_offset(bound, LATEST, "a batch query would have nothing to read")
    return bound


def start_of_stream(options: SourceOptions) -> Bound:
    """Return the start of a new stream; ConfigError for options of batch queries."""
    for name, value in {
        "endingOffsets": options.ending_offsets,
        "endingTimestamp": options.ending_timestamp,
        "endingOffsetsByTimestamp": options.ending_offsets_by_timestamp,
    }.items():
        if value is not None:
            raise ConfigError(f"option {name} is only for batch queries; a stream runs until it is stopped")
    delay_ms(options.max_trigger_delay)
    delay_ms(options.idle_wait, "idleWait")
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least and most and least > most:
        raise ConfigError(f"option minOffsetsPerTrigger = {least} is more than maxOffsetsPerTrigger = {most}; lower it")
    return choose_start(options, LATEST)


def end_of_batch(options: SourceOptions) -> Bound:
    """Return the end of a batch query."""
    bound = at_times("ending", options.ending_timestamp, options.ending_offsets_by_timestamp) or at_offsets(
        "endingOffsets", options.ending_offsets, LATEST
    )
    reject_offset(bound, EARLIEST, "a batch query would have nothing to read")
    return bound


def choose_start(options: SourceOptions, default: int) -> Bound:
    """Return the start, from the given option with the highest precedence."""
    timed = at_times("starting", options.starting_timestamp, options.starting_offsets_by_timestamp)
    return timed or at_offsets("startingOffsets", options.starting_offsets, default)


def at_times(edge: str, timestamp: int | None, by_partition: str | None) -> Everywhere | AtTime | None:
    """Return the bound of the options `<edge>Timestamp` and `<edge>OffsetsByTimestamp`; the first takes precedence."""
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
    """Return `timestamp`; ConfigError if it is negative."""
    if timestamp < 0:
        raise ConfigError(
            f"option {what} = {timestamp}: must be milliseconds since 1970, or -2 for the earliest, -1 for the latest"
        )
    return timestamp


def at_offsets(option: str, text: str | None, default: int) -> Everywhere | AtOffsets:
    """Return the bound of `earliest`, `latest`, or JSON."""
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


def reject_offset(bound: Bound, offset: int, reason: str) -> None:
    """Raise ConfigError if the bound of any partition is `offset`, which is not valid for this bound."""
    word = {EARLIEST: "earliest", LATEST: "latest"}[offset]
    if isinstance(bound, Everywhere):
        if bound.offset == offset:
            raise ConfigError(f"option {bound.option} = {word!r}: {reason}")
        return
    for tp, given in ((bound.timestamps or {}) if isinstance(bound, AtTime) else bound.offsets).items():
        if given == offset:
            raise ConfigError(f"option {bound.option} is the {word} of {tp} ({offset}): {reason}")


UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def delay_ms(text: str, option: str = "maxTriggerDelay") -> int:
    """Return a duration in Spark's notation, `15m` or `30s`, in milliseconds; a plain number is milliseconds."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if match is None or (match[2] or "ms") not in UNITS_MS:
        raise ConfigError(f"option {option} = {text!r}: must be a number with a unit, for example 30s or 15m")
    return round(int(match[1]) * UNITS_MS[match[2] or "ms"])
