"""Partitions as an admin changes them, and their log directories. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.errors import KafkaError
from ottla.model import TopicPartition


@dataclass(frozen=True)
class NewPartitions:
    """The number of partitions that a topic should have in total."""

    total_count: int
    new_assignments: Sequence[Sequence[int]] | None = None
    """The brokers of each new partition, the preferred leader first; None lets the cluster choose."""


class PartitionReassignment(NamedTuple):
    """A partition that is being moved to other brokers (KIP-455)."""

    replicas: tuple[int, ...]
    """All current replicas, including those being added."""
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class ReplicaInfo(NamedTuple):
    """One replica of a partition in a log directory."""

    size: int
    """The size of its log in bytes."""
    offset_lag: int
    """The offsets that it is behind the high watermark, or behind the replica that it will replace."""
    is_future: bool
    """True if it is still being moved here from another directory (KIP-113)."""


class LogDirDescription(NamedTuple):
    """A log directory of a broker and its replicas."""

    replica_infos: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    """Bytes of the volume; None if the broker does not report it."""
    usable_bytes: int | None
    is_cordoned: bool
    """True if it accepts no new partitions (KIP-1066)."""
    error: KafkaError | None = None
    """The error of an offline directory."""


class TopicPartitionReplica(NamedTuple):
    """The replica of a partition on one broker."""

    topic: str
    partition: int
    broker_id: int


class ReplicaLogDirInfo(NamedTuple):
    """The log directory of a replica."""

    current_replica_log_dir: str | None
    """None if the broker has no such replica."""
    current_replica_offset_lag: int
    """The offsets that it is behind the high watermark; -1 if unknown."""
    future_replica_log_dir: str | None
    """The directory it is moving to; None if it is not moving."""
    future_replica_offset_lag: int
