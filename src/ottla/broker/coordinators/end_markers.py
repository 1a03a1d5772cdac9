"""The ends of transactions, written into the partitions that took part."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.coordinators.commitment import ensure_may_append
from ottla.broker.partitions.leadership import Leadership
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.clock import Clock
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker


class TransactionEnd(NamedTuple):
    """How a producer's transaction ended."""

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int = 0
    version: int = 0
    """The `transaction.version` by which the epoch is checked."""


class Written(NamedTuple):
    """What has become of a marker."""

    code: int
    uncommitted: tuple[Leadership, int] | None = None
    """What must be committed, and up to which offset, before it counts."""


class EndMarkers:
    """Appends markers, and tells the coordinator of groups of each."""

    def __init__(
        self,
        partitions: Partitions,
        clock: Clock,
        append: Callable[[Partition, bytes, TransactionEnd], None],
        appended: Callable[[Partition, TransactionEnd], None],
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._append = append
        self._appended = appended

    def write_led(self, partition_id: TopicPartition, end: TransactionEnd) -> Written:
        """Append the marker, if this broker leads the partition and what is appended can be committed."""
        partition = self._partitions.find(*partition_id)
        if partition is None:
            return Written(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not partition.leads:
            return Written(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            ensure_may_append(partition)
        except KafkaError as error:
            return Written(error.code)
        code = self.write(partition_id, end)
        leadership = partition.leadership
        return Written(code, None if code or leadership is None else (leadership, partition.log.end_offset))

    def write(self, partition_id: TopicPartition, end: TransactionEnd) -> int:
        """Append the marker to a partition; NONE, or why it could not be."""
        partition = self._partitions.find(*partition_id)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if end.producer_id < 0 or end.epoch < 0:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        marker = EndMarker(ControlType.COMMIT if end.commit else ControlType.ABORT, end.coordinator_epoch)
        data = encode_end_marker(end.producer_id, end.epoch, marker, self._clock.wall_ms())
        try:
            self._append(partition, data, end)
            self._appended(partition, end)
        except KafkaError as error:
            self._partitions.complaints.tell(f"{partition_id}: the end of a transaction was refused: {error}")
            return error.code
        except CorruptRecordError as error:
            self._partitions.complaints.tell(f"{partition_id}: the end of a transaction could not be written: {error}")
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE
