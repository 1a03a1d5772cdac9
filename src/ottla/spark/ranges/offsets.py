"""Offsets as the official connector writes them, `{"topic": {"0": 23}}`, and as this one pins them.

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
# No topic's name may hold a `#`, so these never meet one.


@dataclass(frozen=True)
class Plan:
    """How a range was split into tasks; pinned, so that a replayed batch has the same tasks."""

    min_partitions: int | None = None
    max_records_per_partition: int | None = None


@dataclass(frozen=True)
class StreamOffset:
    """A position of a query, as Spark keeps it in its own log.

    `start` is where the batch that ends here begins, for partitions of which the batch before says nothing:
    all of them in the first batch. Spark asks a source for its initial offset again whenever it replays the
    first batch, and "latest" is not what it was by then; what is written here is.
    """

    offsets: Offsets
    start: Offsets = field(default_factory=dict)
    plan: Plan = Plan()
    initial: bool = False
    """Whether this is where a new query starts, and no batch ended here."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Of each topic, what tells it from another of its name that was made when it was deleted."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON for Spark's log; the same offset always gives the same text, which is what Spark compares."""
        pins: dict[str, Any] = {}
        if self.start:
            pins[START] = by_topic(self.start)
        if self.plan != Plan():
            pins[PLAN] = [self.plan.min_partitions, self.plan.max_records_per_partition]
        if self.initial:
            pins[INITIAL] = True
        if self.ids:
            pins[IDS] = dict(sorted(self.ids.items()))
        return {**by_topic(self.offsets), **pins}

    @classmethod
    def from_dict(cls, offset: Mapping[str, Any]) -> StreamOffset:
        """The inverse of `to_dict`."""
        topics = {topic: partitions for topic, partitions in offset.items() if not topic.startswith("#")}
        return cls(
            by_partition(topics),
            by_partition(offset.get(START, {})),
            Plan(*offset.get(PLAN, ())),
            bool(offset.get(INITIAL)),
            dict(offset.get(IDS, {})),
        )

    def begin(self, before: StreamOffset) -> dict[TopicPartition, int]:
        """Where the batch from `before` to here begins."""
        return {**before.offsets, **self.start}


def read_checkpointed(offset: Any) -> StreamOffset:
    """What Spark has found in a checkpoint; ConfigError where another kind of source has left it there."""
    try:
        return StreamOffset.from_dict(offset)
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f"the checkpoint is that of another query: {json.dumps(offset)[:100]} is no offset of topics; give this query "
            "a checkpointLocation of its own"
        ) from None


def by_topic(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Nested and sorted, as the official connector writes them."""
    topics: dict[str, dict[str, int]] = {}
    for tp in sorted(offsets):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return topics


def by_partition(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The inverse of `by_topic`."""
    return {TopicPartition(t, int(p)): offset for t, partitions in topics.items() for p, offset in partitions.items()}


def parse_offsets(option: str, text: str) -> dict[TopicPartition, int]:
    """Offsets, or timestamps, from an option; what Spark keeps in a checkpoint is welcome too."""
    try:
        offsets = StreamOffset.from_dict(json.loads(text)).offsets
        if not all(isinstance(offset, int) and not isinstance(offset, bool) for offset in offsets.values()):
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"option {option} = {text!r}: must be JSON such as {example()}") from None
    return dict(offsets)


def parse_assignment(text: str) -> list[TopicPartition]:
    """The partitions of the option `assign`."""
    try:
        return sorted(TopicPartition(t, int(p)) for t, partitions in json.loads(text).items() for p in partitions)
    except (ValueError, TypeError, AttributeError):
        example_text = '{"topic": [0, 1]}'
        raise ConfigError(f"option assign = {text!r}: must be JSON such as {example_text}") from None


def example() -> str:
    return json.dumps({"topic": {"0": 23, "1": 0}})
