"""Topics as an admin sees them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from ottla.model import PartitionInfo


@dataclass(frozen=True)
class NewTopic:
    """A topic to create."""

    name: str
    num_partitions: int = -1
    """-1 for the broker's `num.partitions`."""
    replication_factor: int = -1
    """-1 for the broker's `default.replication.factor`."""
    configs: Mapping[str, str] = field(default_factory=dict)
    """Configs of the topic, such as `{"retention.ms": "3600000"}`."""
    replica_assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Brokers by partition, instead of the two numbers."""


class TopicListing(NamedTuple):
    """A topic's name and id."""

    name: str
    topic_id: UUID
    internal: bool


class TopicDescription(NamedTuple):
    """A topic with its partitions."""

    name: str
    topic_id: UUID
    internal: bool
    partitions: tuple[PartitionInfo, ...]
    authorized_operations: frozenset[str] | None = None
    """The operations that the client's user may perform on the topic, such as `read` and `write`; None if not
    requested.
    """
