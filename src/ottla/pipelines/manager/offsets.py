"""How far a pipeline is by Spark's own logs, and where it is to begin instead.

What is read here are files of Spark's: `offsets/N` has a line for each source, `commits/N` is there once the batch is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.client.admin import Admin
from ottla.errors import ConfigError
from ottla.model import EARLIEST, LATEST, TopicPartition
from ottla.pipelines.file.reading import Read
from ottla.pipelines.manager.build import surroundings_of
from ottla.pipelines.manager.fingerprint import Fingerprint
from ottla.pipelines.manager.home import Home, read_json
from ottla.pipelines.manager.reachability import ensure_reachable
from ottla.pipelines.sources.topic import TopicBase
from ottla.spark.ranges.offsets import Offsets, StreamOffset, by_topic, parse_offsets

HEADER_LINES = 2
"""Of a file of offsets: its version, and what holds for the batch."""
NOTHING = "-"
"""What stands for a source that had no offset yet."""


class Position(NamedTuple):
    """After a batch."""

    batch: int
    offsets: list[Any]
    """Of each source, as it wrote them."""


def position_of(checkpoint: Path) -> Position | None:
    """After the last batch that is done; None before the first."""
    batch = last_number(checkpoint / "commits")
    if batch is None:
        return None
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[HEADER_LINES:]
        return Position(batch, [None if line == NOTHING else json.loads(line) for line in lines])
    except (OSError, ValueError) as error:
        raise ConfigError(f"{checkpoint}: batch {batch} is done, and its offsets cannot be read: {error}") from None


def last_number(folder: Path) -> int | None:
    """The highest of the files that are numbers."""
    return max((int(one.name) for one in folder.glob("*") if one.name.isdigit()), default=None)


def topic_offsets(position: Position | None) -> dict[TopicPartition, int]:
    """Of all sources that are topics; the lowest of one that is read twice."""
    found: dict[TopicPartition, int] = {}
    for one in position.offsets if position is not None else ():
        try:
            offsets = StreamOffset.from_dict(one).offsets
        except (ValueError, TypeError, AttributeError):
            continue
        for tp, offset in offsets.items():
            found[tp] = min(offset, found.get(tp, offset))
    return found


class Way(NamedTuple):
    """Where to: `earliest`, `latest`, or the offsets of a text of JSON."""

    to: str
    offsets: str | None = None


def begin_at(read: Read, home: Home, way: Way) -> dict[TopicPartition, int]:
    """Where each partition of a source that is topics would begin; ConfigError where there is no such place."""
    source = read.model.source
    if not isinstance(source, TopicBase):
        if way.to != "earliest":
            raise ConfigError(f"{source.describe()} has no offsets to choose from; it can begin anew: use earliest")
        return {}
    if source.topic is None and way.to == "earliest":
        return {}
    wanted = None if way.offsets is None else parse_offsets("offsets", way.offsets)
    now = topic_offsets(position_of(home.checkpoint))
    clients = surroundings_of(read).any_client("admin", source)
    ensure_reachable(clients)
    with Admin(clients) as admin:
        topics = source.names() or sorted({tp.topic for tp in now})
        there = admin.describe_topics(topics)
        partitions = [TopicPartition(name, one.partition) for name in topics for one in there[name].partitions]
        first, end = (
            {tp: at.offset for tp, at in admin.list_offsets(dict.fromkeys(partitions, when)).items()}
            for when in (EARLIEST, LATEST)
        )
    if wanted is None:
        return first if way.to == "earliest" else end
    return chosen(wanted, now, first, end)


def chosen(wanted: Offsets, now: Offsets, first: Offsets, end: Offsets) -> dict[TopicPartition, int]:
    """What was asked for, and where the others are; nothing that is not there."""
    for tp, offset in wanted.items():
        if tp not in first:
            raise ConfigError(f"the source has no partition {tp}; it has {', '.join(map(str, sorted(first)))}")
        if not first[tp] <= offset <= end[tp]:
            raise ConfigError(f"offset {offset} of {tp}: it has {first[tp]} to {end[tp]}; choose one of these")
    return {tp: wanted.get(tp, now.get(tp, first[tp])) for tp in first}


def reset(read: Read, home: Home, way: Way, *, discard_state: bool = False) -> dict[TopicPartition, int]:
    """Have the next run begin there. The home must be held, which it can only be while nobody runs the pipeline."""
    state = kept_state(home)
    if state and not discard_state:
        raise ConfigError(
            f"pipeline {home.name!r} keeps state ({'; '.join(state)}), which a reset begins anew as well; say so with --discard-state"
        )
    if (reason := read.model.sink.cannot_begin_anew(surroundings_of(read))) is not None:
        raise ConfigError(f"pipeline {home.name!r} cannot be reset: {reason}")
    offsets = begin_at(read, home, way)
    home.reset(by_topic(offsets) if offsets else None)
    return offsets


def kept_state(home: Home) -> Sequence[str]:
    """The operators of its query that keep state; none where it was not begun."""
    known: Mapping[str, Any] | None = read_json(home.folder / "pipeline.json")
    return () if known is None or home.is_new else Fingerprint.from_json(known).state
