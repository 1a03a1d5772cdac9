"""Topics and partitions, as an admin's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.client.interface.arguments import checked_flag

if TYPE_CHECKING:
    from ottla.client.admin.admin_calls import AdminCalls
    from ottla.client.admin.partition import (
        LogDirDescription,
        NewPartitions,
        PartitionReassignment,
        ReplicaLogDirInfo,
        TopicPartitionReplica,
    )
    from ottla.client.admin.topic import NewTopic, TopicDescription, TopicListing
    from ottla.model import OffsetAndTimestamp, TopicPartition


class TopicAdmin:
    """What `Admin` does with topics, their partitions and their records."""

    _calls: AdminCalls

    def create_topics(
        self, topics: Iterable[NewTopic], timeout: float | None = None, *, validate_only: bool = False
    ) -> None:
        """Create topics, or only check whether that would succeed."""
        self._calls.topics.create_topics(topics, timeout, validate_only=validate_only)

    def delete_topics(self, names: Iterable[str], timeout: float | None = None) -> None:
        """Delete topics and all their records."""
        self._calls.topics.delete_topics(names, timeout)

    def list_topics(self, timeout: float | None = None, *, internal: bool = False) -> dict[str, TopicListing]:
        """All topics by name; Kafka's own only if `internal`."""
        return self._calls.topics.list_topics(timeout, internal=internal)

    def describe_topics(
        self,
        names: Iterable[str] | None = None,
        timeout: float | None = None,
        *,
        include_authorized_operations: bool = False,
    ) -> dict[str, TopicDescription]:
        """The named topics with their partitions, or all, Kafka's own too; an unknown one is an error.

        What this client's user may do with each is asked for with `include_authorized_operations` (KIP-430).
        """
        checked_flag("include_authorized_operations", include_authorized_operations)
        described = self._calls.topics.describe_topics(names, timeout)
        if not include_authorized_operations:
            return described
        operations = self._calls.authorized.of_topics(described, timeout)
        return {name: each._replace(authorized_operations=operations[name]) for name, each in described.items()}

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The offset of each partition at a time in ms, or at EARLIEST, LATEST, MAX_TIMESTAMP of `ottla.model`.

        Offset -1 where there is no record at or after the time.
        """
        return self._calls.topics.list_offsets(timestamps, timeout)

    def create_partitions(
        self,
        new_partitions: Mapping[str, int | NewPartitions],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Give topics more partitions, by how many each shall have in all; or only check whether that would succeed."""
        self._calls.partitions.create_partitions(new_partitions, timeout, validate_only=validate_only)

    def delete_records(
        self, before_offsets: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete all records before an offset of each partition, -1 for all that is committed; the first offset there is now."""
        return self._calls.partitions.delete_records(before_offsets, timeout)

    def elect_leaders(
        self,
        election_type: str = "PREFERRED",
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> set[TopicPartition]:
        """Have the preferred replica lead again, or with UNCLEAN any that lives, which may lose records; of these partitions or of all.

        Those that have another leader now.
        """
        return self._calls.partitions.elect_leaders(election_type, partitions, timeout)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        timeout: float | None = None,
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """Begin to move partitions to other brokers, the preferred leader first; None stops a move that is under way (KIP-455)."""
        self._calls.partitions.alter_partition_reassignments(
            reassignments, timeout, allow_replication_factor_change=allow_replication_factor_change
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The moves that are under way, of these partitions or of all."""
        return self._calls.partitions.list_partition_reassignments(partitions, timeout)

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, timeout: float | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """The directories of these brokers, or of all, by path: which copies are in them, and how large each is."""
        return self._calls.log_dirs.describe_log_dirs(broker_ids, timeout)

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], timeout: float | None = None
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """In which directory of its broker each copy is, and in which it is to be (KIP-113)."""
        return self._calls.log_dirs.describe_replica_log_dirs(replicas, timeout)

    def alter_replica_log_dirs(
        self, replica_assignment: Mapping[TopicPartitionReplica, str], timeout: float | None = None
    ) -> None:
        """Move copies from one directory of their brokers to another. The move goes on when this returns (KIP-113)."""
        self._calls.log_dirs.alter_replica_log_dirs(replica_assignment, timeout)
