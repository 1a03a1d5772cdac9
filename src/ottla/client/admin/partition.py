"""Partitions as an admin changes them, and the directories they lie in.

Values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.errors import KafkaError
from ottla.model import TopicPartition


@dataclass(frozen=True)
class NewPartitions:
    """How many partitions a topic shall have in all."""

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None
    """The brokers of each partition that is new, the preferred leader first; None leaves it to the cluster."""


class PartitionReassignment(NamedTuple):
    """A partition on its way to other brokers (KIP-455)."""

    replicas: tuple[int, ...]
    """All that have it at present, those that are to get it included."""
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ReplicaInfo(NamedTuple):
    """One copy of a partition on a disk."""

    size: int
    """Bytes of its log."""
    offset_lag: int
    """How far its end is behind the high watermark, or behind the copy that it will replace."""
    is_future: bool
    """Whether it is still on its way here from another directory (KIP-113)."""


class LogDirDescription(NamedTuple):
    """A broker's directory, and what is in it."""

    replica_infos: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    """Of the volume that it is on; None where the broker does not say."""
    usable_bytes: int | None
    is_cordoned: bool
    """Whether it takes no new partitions (KIP-1066)."""
    error: KafkaError | None = None
    """Why nothing can be said of it: it is offline."""


class TopicPartitionReplica(NamedTuple):
    """One broker's copy of a partition."""

    topic: str
    partition: int
    broker_id: int


class ReplicaLogDirInfo(NamedTuple):
    """Where a copy is on its broker's disks."""

    current_replica_log_dir: str | None
    """None where the broker has no such copy."""
    current_replica_offset_lag: int
    """How far its end is behind the high watermark; -1 where nobody knows."""
    future_replica_log_dir: str | None
    """Where it is on its way to; None where it stays."""
    future_replica_offset_lag: int
