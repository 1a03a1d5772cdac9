"""What can happen to committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ottla.model import OffsetAndMetadata, TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """A group wants these offsets kept."""

    ticket: int
    group: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    wall_ms: int
    """The commit's timestamp."""


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Topics are no more: what groups committed for them is forgotten. The reply is the count of offsets forgotten.

    Without it a new topic of the same name would be read from where its predecessor was left.
    """

    ticket: int
    topics: Collection[str]


Event = OffsetsCommitted | TopicsDeleted
