"""What can happen to committed offsets."""

from __future__ import annotations

from collections.abc import Mapping
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
