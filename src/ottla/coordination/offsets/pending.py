"""Offsets committed within transactions, which take effect when the transaction commits.

Replays and looks up. The log has them as batches of their producer, followed by the end marker.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ottla.coordination.offsets.records import OffsetRecord
from ottla.model import TopicPartition

GroupPartition = tuple[str, TopicPartition]
"""A group, and the partition that it read."""


class PendingRecord(NamedTuple):
    """A commit within a producer's transaction."""

    producer_id: int
    producer_epoch: int
    record: OffsetRecord

    @property
    def group_partition(self) -> GroupPartition:
        return self.record.key.group, self.record.partition


class TransactionEnded(NamedTuple):
    """A producer's transaction has ended; the log has it as a marker."""

    producer_id: int
    commit: bool


class PendingOffsets:
    """The offsets that open transactions would commit, by producer."""

    def __init__(self) -> None:
        self._open: dict[int, dict[GroupPartition, OffsetRecord | None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def add(self, pending: PendingRecord) -> None:
        """Keep a commit until its transaction ends."""
        self._open.setdefault(pending.producer_id, {})[pending.group_partition] = pending.record

    def drop_superseded(self, record: OffsetRecord) -> None:
        """Drop pending offsets that an ordinary commit has replaced; it wins, however the transaction ends."""
        group_partition = (record.key.group, record.partition)
        for group_partitions in self._open.values():
            if group_partition in group_partitions:
                group_partitions[group_partition] = None

    def end(self, ended: TransactionEnded) -> list[OffsetRecord]:
        """Return the offsets that take effect."""
        group_partitions = self._open.pop(ended.producer_id, {})
        return [record for record in group_partitions.values() if record is not None] if ended.commit else []

    def of_topics(self, topics: Collection[str]) -> set[GroupPartition]:
        """Return the offsets that open transactions would commit for these topics."""
        return {
            group_partition
            for group_partitions in self._open.values()
            for group_partition in group_partitions
            if group_partition[1].topic in topics
        }

    def holds(self, group: str, partition: TopicPartition) -> bool:
        """Return True if an open transaction may change this offset (KIP-447)."""
        return any((group, partition) in group_partitions for group_partitions in self._open.values())
