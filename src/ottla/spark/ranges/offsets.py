"""Offsets in the official connector's format, `{"topic": {"0": 23}}`, and the additional fields of this connector.

Pure: text and dicts in, dicts keyed by partition out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.errors import ConfigError
from ottla.model import TopicPartition

Offsets = Mapping[TopicPartition, int]

START = "#start"
PLAN = "#plan"
INITIAL = "#initial"
IDS = "#ids"
# Names of topics cannot contain `#`, so these keys are unambiguous.


@dataclass(frozen=True)
class SplitLimits:
    """The limits by which a range is split into tasks; stored, so that a repeated batch has the same tasks."""

    min_partitions: int | None = None
    max_records_per_partition: int | None = None


@dataclass(frozen=True)
class StreamOffset:
    """A position of a query, as stored in Spark's offset log.

    `start` has the start offsets of the batch that ends here, for partitions that the previous offset does not have:
    all partitions in the first batch. Spark calls `initialOffset` again when it repeats the first batch, and "latest"
    has changed by then, so the stored start is used.
    """

    offsets: Offsets
    start: Offsets = field(default_factory=dict)
    plan: SplitLimits = SplitLimits()
    initial: bool = False
    """True for the start of a new query, before its first batch."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each topic, which differs from that of a deleted topic of the same name."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON for Spark's log. An offset always gives the same text, because Spark compares texts."""
        pins: dict[str, Any] = {}
        if self.start:
            pins[START] = by_topic(self.start)
        if self.plan != SplitLimits():
            pins[PLAN] = [self.plan.min_partitions, self.plan.max_records_per_partition]
        if self.initial:
            pins[INITIAL] = True
        if self.ids:
            pins[IDS] = dict(sorted(self.ids.items()))
        return {**by_topic(self.offsets), **pins}

    @classmethod
    def from_dict(cls, offset: Mapping[str, Any]) -> StreamOffset:
        """Return the inverse of `to_dict`."""
        topics = {topic: partitions for topic, partitions in offset.items() if not topic.startswith("#")}
        return cls(
            by_partition(topics),
            by_partition(offset.get(START, {})),
            SplitLimits(*offset.get(PLAN, ())),
            bool(offset.get(INITIAL)),
            dict(offset.get(IDS, {})),
        )

    def begin(self, before: StreamOffset) -> dict[TopicPartition, int]:
        """Return the start offsets of the batch from `before` to this offset."""
        return {**before.offsets, **self.start}


def read_checkpointed(offset: Any) -> StreamOffset:
    """Return an offset from a checkpoint; ConfigError if it is from another kind of source."""
    try:
        return StreamOffset.from_dict(offset)
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f"the checkpoint is that of another query: {json.dumps(offset)[:100]} is not an offset of topics; give this query "
            "its own checkpointLocation"
        ) from None


def by_topic(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Return offsets nested and sorted, as in the official connector."""
    topics: dict[str, dict[str, int]] = {}
    for tp in sorted(offsets):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return topics


def by_partition(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Return the inverse of `by_topic`."""
    return {TopicPartition(t, int(p)): offset for t, partitions in topics.items() for p, offset in partitions.items()}


def parse_offsets(option: str, text: str) -> dict[TopicPartition, int]:
    """Return offsets, or timestamps, from an option. Offsets copied from a checkpoint are accepted too."""
    try:
        offsets = StreamOffset.from_dict(json.loads(text)).offsets
        if not all(isinstance(offset, int) and not isinstance(offset, bool) for offset in offsets.values()):
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"option {option} = {text!r}: must be JSON, for example {example()}") from None
    return dict(offsets)


def parse_assignment(text: str) -> list[TopicPartition]:
    """Return the partitions of the option `assign`."""
    try:
        return sorted(TopicPartition(t, int(p)) for t, partitions in json.loads(text).items() for p in partitions)
    except (ValueError, TypeError, AttributeError):
        example_text = '{"topic": [0, 1]}'
        raise ConfigError(f"option assign = {text!r}: must be JSON, for example {example_text}") from None


def example() -> str:
    return json.dumps({"topic": {"0": 23, "1": 0}})
