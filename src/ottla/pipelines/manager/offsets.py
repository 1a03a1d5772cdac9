"""The position of a pipeline in Spark's own logs, and resets of it.

The files are those of Spark's `OffsetSeqLog` and `CommitLog`: `offsets/N` is written before batch N runs and has a line
for each source; `commits/N` is written after batch N is in the sink. So the position of a pipeline is the offsets of
its last commit, and a batch with offsets and without a commit runs again with the same offsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.client.admin import Admin
from ottla.errors import ConfigError
from ottla.model import EARLIEST, LATEST, TopicPartition
from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.manager.build import context_of
from ottla.pipelines.manager.fingerprint import Fingerprint
from ottla.pipelines.manager.reachability import ensure_reachable
from ottla.pipelines.manager.state_directory import StateDirectory, read_json
from ottla.pipelines.sources.topic import TopicBase
from ottla.spark.ranges.offsets import Offsets, StreamOffset, by_topic, parse_offsets

HEADER_LINES = 2
"""The lines before the offsets: the version, and the metadata of the batch."""
NOTHING = "-"
"""The line of a source without an offset."""


class Position(NamedTuple):
    """The position after a batch."""

    batch: int
    offsets: list[Any]
    """The offsets of each source, in the source's format."""


def position_of(checkpoint: Path) -> Position | None:
    """Return the position after the last committed batch; None before the first."""
    batch = last_number(checkpoint / "commits")
    if batch is None:
        return None
    try:
        lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[HEADER_LINES:]
        return Position(batch, [None if line == NOTHING else json.loads(line) for line in lines])
    except (OSError, ValueError) as error:
        raise ConfigError(f"{checkpoint}: batch {batch} is done, and its offsets cannot be read: {error}") from None


def last_number(folder: Path) -> int | None:
    """Return the highest file name that is a number."""
    return max((int(one.name) for one in folder.glob("*") if one.name.isdigit()), default=None)


def topic_offsets(position: Position | None) -> dict[TopicPartition, int]:
    """Return the offsets of all sources that are topics; the lowest for a partition that is read twice."""
    found: dict[TopicPartition, int] = {}
    for one in position.offsets if position is not None else ():
        try:
            offsets = StreamOffset.from_dict(one).offsets
        except (ValueError, TypeError, AttributeError):
            continue
        for tp, offset in offsets.items():
            found[tp] = min(offset, found.get(tp, offset))
    return found


class ResetTarget(NamedTuple):
    """The target of a reset: `earliest`, `latest`, or offsets as JSON."""

    to: str
    offsets: str | None = None


def find_start_offsets(read: PipelineDefinition, home: StateDirectory, way: ResetTarget) -> dict[TopicPartition, int]:
    """Return the start offset of each partition of the source, if it is topics; ConfigError for offsets that do not exist."""
    source = read.model.source
    if not isinstance(source, TopicBase):
        if way.to != "earliest":
            raise ConfigError(
                f"{source.describe()} has no offsets to choose from; it can only start again: use earliest"
            )
        return {}
    if source.topic is None and way.to == "earliest":
        return {}
    wanted = None if way.offsets is None else parse_offsets("offsets", way.offsets)
    now = topic_offsets(position_of(home.checkpoint))
    clients = context_of(read).any_client("admin", source)
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
    return choose_offsets(wanted, now, first, end)


def choose_offsets(wanted: Offsets, now: Offsets, first: Offsets, end: Offsets) -> dict[TopicPartition, int]:
    """Return the wanted offsets, and the current ones of other partitions; ConfigError for offsets out of range."""
    for tp, offset in wanted.items():
        if tp not in first:
            raise ConfigError(f"the source has no partition {tp}; it has {', '.join(map(str, sorted(first)))}")
        if not first[tp] <= offset <= end[tp]:
            raise ConfigError(f"offset {offset} of {tp}: it has {first[tp]} to {end[tp]}; choose one of these")
    return {tp: wanted.get(tp, now.get(tp, first[tp])) for tp in first}


def reset(
    read: PipelineDefinition, home: StateDirectory, way: ResetTarget, *, discard_state: bool = False
) -> dict[TopicPartition, int]:
    """Set the start of the next run. The caller must have locked the state directory, so the pipeline cannot be running."""
    state = kept_state(home)
    if state and not discard_state:
        raise ConfigError(
            f"pipeline {home.name!r} keeps state ({'; '.join(state)}), which a reset discards; confirm with --discard-state"
        )
    if (reason := read.model.sink.explain_lost_rows(context_of(read))) is not None:
        raise ConfigError(f"pipeline {home.name!r} cannot be reset: {reason}")
    offsets = find_start_offsets(read, home, way)
    home.reset(by_topic(offsets) if offsets else None)
    return offsets


def kept_state(home: StateDirectory) -> Sequence[str]:
    """Return the stateful operators of its query; none if it has no checkpoint."""
    known: Mapping[str, Any] | None = read_json(home.folder / "pipeline.json")
    return () if known is None or home.is_new else Fingerprint.from_json(known).state
