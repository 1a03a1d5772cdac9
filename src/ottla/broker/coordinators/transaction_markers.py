"""Transaction markers: control batches that end a producer's transaction in a partition (KIP-98).

`EndMarkers` appends a marker to a partition that this broker leads. `MarkerWriter` serves the transaction coordinator: it appends the
marker here, or has the leader of the partition append it (WriteTxnMarkers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.coordinators.commitment import Commitment, ensure_may_append
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.clock import Clock
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker

if TYPE_CHECKING:
    from ottla.broker.coordinators.remote_markers import RemoteMarkers

NOT_LED_HERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
MarkerCallback = Callable[[int], None]
"""Called with NONE once a marker is committed in its partition, or with the error code that prevented that."""


class TransactionEnd(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int = 0
    version: int = 0
    """The `transaction.version`, which decides how the epoch is checked."""


class AppendedMarker(NamedTuple):
    """The result of appending a marker."""

    code: int
    uncommitted: tuple[Leadership, int] | None = None
    """The leadership and the end offset that must be committed before the marker counts; None if nothing is waited for."""


class EndMarkers:
    """Appends markers to partitions that this broker leads."""

    def __init__(
        self,
        partitions: Partitions,
        find_absent_code: Callable[[str, int], int],
        clock: Clock,
        append: Callable[[Partition, bytes, TransactionEnd], None],
        on_append: Callable[[Partition, TransactionEnd], None],
    ) -> None:
        """Keep the parts of the broker that append a marker.

        `find_absent_code` returns the error code for a partition without a replica here. While a broker starts, a coordinator may be
        loaded before the partitions of its transactions are opened. Such a partition is retried; only one that the metadata do not
        have counts as deleted.
        """
        self._partitions = partitions
        self._find_absent_code = find_absent_code
        self._clock = clock
        self._append = append
        self._on_append = on_append

    def write_led(self, topic_partition: TopicPartition, end: TransactionEnd) -> AppendedMarker:
        """Append the marker if this broker leads the partition and enough replicas are in sync."""
        partition = self._partitions.find(*topic_partition)
        if partition is None:
            return AppendedMarker(self._find_absent_code(*topic_partition))
        if not partition.leads:
            return AppendedMarker(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            ensure_may_append(partition)
        except KafkaError as error:
            return AppendedMarker(error.code)
        code = self.write(topic_partition, end)
        leadership = partition.leadership
        return AppendedMarker(code, None if code or leadership is None else (leadership, partition.log.end_offset))

    def write(self, topic_partition: TopicPartition, end: TransactionEnd) -> int:
        """Append the marker and return an error code."""
        partition = self._partitions.find(*topic_partition)
        if partition is None:
            return self._find_absent_code(*topic_partition)
        if end.producer_id < 0 or end.epoch < 0:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        marker = EndMarker(ControlType.COMMIT if end.commit else ControlType.ABORT, end.coordinator_epoch)
        data = encode_end_marker(end.producer_id, end.epoch, marker, self._clock.wall_ms())
        try:
            self._append(partition, data, end)
            self._on_append(partition, end)
        except KafkaError as error:
            self._partitions.complaints.log(f"{topic_partition}: a transaction marker was rejected: {error}")
            return error.code
        except CorruptRecordError as error:
            self._partitions.complaints.log(f"{topic_partition}: a transaction marker could not be written: {error}")
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE


class MarkerWriter:
    """Writes markers on the leaders of their partitions, and reports each once it is committed."""

    def __init__(self, local: EndMarkers, commitment: Commitment, remote: RemoteMarkers | None) -> None:
        """`remote` writes markers on the other brokers; None if this is the only one."""
        self._local = local
        self._commitment = commitment
        self._remote = remote

    def write(self, topic_partition: TopicPartition, end: TransactionEnd, on_done: MarkerCallback) -> None:
        """Write a marker. `on_done` is called within this call if there is nothing to wait for."""
        appended = self._local.write_led(topic_partition, end)
        if appended.code in NOT_LED_HERE and self._remote is not None:
            self._remote.send(topic_partition, end, on_done)
        elif appended.uncommitted is None:
            on_done(appended.code)
        else:
            leadership, end_offset = appended.uncommitted
            self._commitment.wait([appended.uncommitted], lambda: on_done(commit_code(leadership, end_offset)))


def commit_code(leadership: Leadership, end_offset: int) -> int:
    code = leadership.find_outcome(end_offset)
    return ErrorCode.REQUEST_TIMED_OUT if code is None else code
