"""Topics and partitions as methods of `Admin`."""

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
    """The methods of `Admin` for topics, partitions and records."""

    _calls: AdminCalls

    def create_topics(
        self, topics: Iterable[NewTopic], timeout: float | None = None, *, validate_only: bool = False
    ) -> None:
        """Create topics; with `validate_only` only check whether that would succeed."""
        self._calls.topics.create_topics(topics, timeout, validate_only=validate_only)

    def delete_topics(self, names: Iterable[str], timeout: float | None = None) -> None:
        """Delete topics and all their records."""
        self._calls.topics.delete_topics(names, timeout)

    def list_topics(self, timeout: float | None = None, *, internal: bool = False) -> dict[str, TopicListing]:
        """Return all topics by name; internal topics only with `internal`."""
        return self._calls.topics.list_topics(timeout, internal=internal)

    def describe_topics(
        self,
        names: Iterable[str] | None = None,
        timeout: float | None = None,
        *,
        include_authorized_operations: bool = False,
    ) -> dict[str, TopicDescription]:
        """Return the topics with their partitions; None returns all, including internal ones.

        An unknown topic is an error.

        `include_authorized_operations` requests the operations that the client's user may perform on each (KIP-430).
        """
        checked_flag("include_authorized_operations", include_authorized_operations)
        described = self._calls.topics.describe_topics(names, timeout)
        if not include_authorized_operations:
            return described
        operations = self._calls.authorized.topic_operations(described, timeout)
        return {name: each._replace(authorized_operations=operations[name]) for name, each in described.items()}

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Return the offset of each partition at a time in ms, or at EARLIEST, LATEST or MAX_TIMESTAMP of `ottla.model`.

        The offset is -1 if there is no record at or after the time.
        """
        return self._calls.topics.list_offsets(timestamps, timeout)

    def create_partitions(
        self,
        new_partitions: Mapping[str, int | NewPartitions],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Increase the number of partitions of topics to these totals; with `validate_only` only check whether that would succeed."""
        self._calls.partitions.create_partitions(new_partitions, timeout, validate_only=validate_only)

    def delete_records(
        self, before_offsets: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete all records before an offset of each partition; -1 deletes all up to the high watermark.

        Return the new start offsets.
        """
        return self._calls.partitions.delete_records(before_offsets, timeout)

    def elect_leaders(
        self,
        election_type: str = "PREFERRED",
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> set[TopicPartition]:
        """Elect the preferred replicas as leaders, or with UNCLEAN any online replica, which may lose records.

        Applies to these partitions, or to all. Return the partitions with a new leader.
        """
        return self._calls.partitions.elect_leaders(election_type, partitions, timeout)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        timeout: float | None = None,
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """Start to move partitions to other brokers, the preferred leader first.

        None cancels a reassignment in progress (KIP-455).
        """
        self._calls.partitions.alter_partition_reassignments(
            reassignments, timeout, allow_replication_factor_change=allow_replication_factor_change
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return the reassignments in progress, of these partitions or of all."""
        return self._calls.partitions.list_partition_reassignments(partitions, timeout)

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, timeout: float | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """Return the log directories of these brokers, or of all, by path, with the replicas in them and their sizes."""
        return self._calls.log_dirs.describe_log_dirs(broker_ids, timeout)

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], timeout: float | None = None
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Return the log directory of each replica, and the one it is moving to (KIP-113)."""
        return self._calls.log_dirs.describe_replica_log_dirs(replicas, timeout)

    def alter_replica_log_dirs(
        self, replica_assignment: Mapping[TopicPartitionReplica, str], timeout: float | None = None
    ) -> None:
        """Move replicas to another log directory of their broker. The move continues after this returns (KIP-113)."""
        self._calls.log_dirs.alter_replica_log_dirs(replica_assignment, timeout)
