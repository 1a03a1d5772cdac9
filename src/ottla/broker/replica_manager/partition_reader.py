"""Read partitions for a fetch, within the limits of its response."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.broker.metadata.topics import Topics
from ottla.broker.replica_manager.fetch_session import FetchedPartition
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.coordination.replication.epochs import UNKNOWN_END
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, FetchPartition, PartitionData
from ottla.records.compression import Codec
from ottla.storage.batches.damage import DamagedLogError, OfflineError, OutOfServiceError, repair_remedy

Near = Callable[[Leadership, int], int | None]
"""Returns the replica that a consumer should rather read from, from an offset on; None for the leader."""


class FetchingFollower(NamedTuple):
    """A follower that fetches records for its replica."""

    broker: int
    broker_epoch: int
    now: float | None
    """The time of the request; None for a repeated read, which reports no new position."""


class ReadFailures(Protocol):
    """What the broker does about logs that cannot be read."""

    def suspect(self, error: BaseException | None, partition: Partition | None) -> None:
        """Check after an error whether the directory has failed."""

    def is_served_elsewhere(self, partition: Partition) -> bool:
        """Return True if another broker leads a partition that is damaged here, or is about to, so that clients should retry."""


class PartitionReader:
    """One read of the logs. Readers of committed records receive them up to the last stable offset."""

    __slots__ = (
        "_failures",
        "_follower",
        "_held_back",
        "_near",
        "_topics",
        "committed",
        "failed",
        "left",
        "partitions",
        "read_from",
        "size",
        "takes_zstd",
    )

    def __init__(
        self,
        partitions: Partitions,
        topics: Topics,
        failures: ReadFailures,
        max_bytes: int,
        *,
        committed: bool = False,
        takes_zstd: bool = True,
        follower: FetchingFollower | None = None,
        near: Near | None = None,
        held_back: Callable[[TopicPartition], float] | None = None,
    ) -> None:
        self.partitions = partitions
        self._topics = topics
        self._failures = failures
        self._held_back = held_back
        """Returns the time for which a throttled follower that lags receives no records."""
        self._follower = follower
        """The follower that fetches, None for a consumer. A follower receives uncommitted records as well."""
        self._near = near
        """The choice of a replica for consumers that may read from followers."""
        self.committed = committed
        self.takes_zstd = takes_zstd
        """True if the client can read zstd, which a topic may have."""
        self.read_from: list[Partition] = []
        """The partitions that were found, for which the fetch may wait."""
        self.size = 0
        """Bytes of records found."""
        self.left = max_bytes
        self.failed = False
        """True if some partition has a result other than records."""

    def read(self, fetched: FetchedPartition) -> PartitionData:
        """Return the records of one partition, or an error."""
        wanted = fetched.wanted
        partition, error = self._find(fetched)
        error = error or (self._leader_error(partition, wanted.current_leader_epoch) if partition else 0)
        if partition is None or error:
            return self._build_error(wanted, error)
        self.read_from.append(partition)
        fetched.watch(partition)
        try:
            parted = self._find_divergence(partition, wanted)
            found = parted or self._read_and_count(partition, wanted)
            if self._follower is not None:
                fetched.lacks = parted is not None or not partition.has_fetched(self._follower.broker)
            return found
        except OfflineError:
            return self._build_error(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
        except OutOfServiceError:
            return self._build_error(wanted, ErrorCode.CORRUPT_MESSAGE)  # a code that is not retried silently
        except KafkaError as failure:
            if failure.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                self.partitions.complaints.log(f"cannot read {partition.topic_partition}: {failure}")
                self._failures.suspect(failure, partition)
            return self._build_error(wanted, failure.code)
        except CorruptRecordError as failure:
            return self._handle_damage(partition, wanted, failure)

    def _leader_error(self, partition: Partition, epoch: int) -> int:
        return partition.epoch_error(epoch) if self._near is None else partition.copy_error(epoch)

    def build_error(self, fetched: FetchedPartition, code: int) -> PartitionData:
        """Return an error that is not about the partition itself."""
        return self._build_error(fetched.wanted, code)

    def _handle_damage(
        self, partition: Partition, wanted: FetchPartition, failure: CorruptRecordError
    ) -> PartitionData:
        """Return an error with the offset after the damage, at the log start, where clients look for it.

        CORRUPT_MESSAGE is reported to users. KAFKA_STORAGE_ERROR is retried silently, with the leader of that time: it
        is for a replica that is intact on other brokers.
        """
        if self._failures.is_served_elsewhere(partition):
            return self._build_error(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
        known = failure.damage if isinstance(failure, DamagedLogError) else None
        damage = known or partition.damage_at(wanted.fetch_offset)
        sentence = (
            f"{damage or failure}; readers stop there, and continue at offset {damage.next_offset if damage else '?'}"
        )
        self.partitions.complaints.log(
            f"cannot read {partition.topic_partition}: {sentence}; {repair_remedy(partition.log.directory)}"
        )
        found = self._build_error(wanted, ErrorCode.CORRUPT_MESSAGE)
        if damage is not None:
            found.high_watermark, found.log_start_offset = partition.log.high_watermark, damage.next_offset
        return found

    def _find(self, fetched: FetchedPartition) -> tuple[Partition | None, int]:
        """Return the partition, or an error for an id that is unknown or was deleted."""
        by_id = bool(fetched.topic_id.int)
        if fetched.name is None:
            fetched.name = self._topics.name_of(fetched.topic_id)
        if fetched.name is None:
            return None, ErrorCode.UNKNOWN_TOPIC_ID
        partition = self.partitions.find(fetched.name, fetched.wanted.partition)
        if partition is None:
            return None, self._topics.absent_code(fetched.name, fetched.wanted.partition)
        if by_id and partition.topic_id != fetched.topic_id:
            return None, ErrorCode.INCONSISTENT_TOPIC_ID
        return partition, ErrorCode.NONE

    def _read_and_count(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        """Return records, once the leader has recorded the follower's position.

        A follower that has to truncate gets none (KAFKA-13141).
        """
        follower, leadership = self._follower, partition.leadership
        if leadership is None:
            return self._read_records(partition, wanted)
        if follower is None:
            return self._sent_elsewhere(leadership, wanted) or self._read_records(partition, wanted)
        within = partition.log.start_offset <= wanted.fetch_offset <= partition.log.end_offset
        if follower.now is not None and within:
            known = leadership.handle_fetch(
                follower.broker, wanted.fetch_offset, follower.broker_epoch, follower.now, wanted.log_start_offset
            )
            if not known:
                return self._build_error(wanted, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        behind = follower.broker not in leadership.machine.assignment.in_sync
        held_back = behind and self._held_back is not None and self._held_back(partition.topic_partition) > 0
        return self._read_records(partition, wanted, held_back=held_back)

    def _sent_elsewhere(self, leadership: Leadership, wanted: FetchPartition) -> PartitionData | None:
        """Return the replica that a consumer should rather read from, or None. It is returned at once."""
        replica = self._near(leadership, wanted.fetch_offset) if self._near is not None else None
        if replica is None:
            return None
        self.failed = True
        log = leadership.log
        return PartitionData(
            wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start_offset,
            aborted_transactions=[] if self.committed else None,
            preferred_read_replica=replica,
            records=b"",
        )

    def _read_records(self, partition: Partition, wanted: FetchPartition, *, held_back: bool = False) -> PartitionData:
        log = partition.log
        if not self.takes_zstd and log.config.codec is Codec.ZSTD:
            return self._build_error(wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        stable = log.last_stable_offset
        end = stable if self.committed else log.high_watermark if self._follower is None else log.end_offset
        records = None
        aborted: list[AbortedTransaction] | None = [] if self.committed else None
        offset = wanted.fetch_offset
        # A consumer is usually at the end of the log.
        if offset != end and not held_back and (self.left > 0 or not self.size):
            limit = max(0, min(wanted.partition_max_bytes, self.left))
            if self.committed:
                records, found = log.read_committed(offset, limit, min_one=not self.size)
                aborted = [AbortedTransaction(each.producer_id, each.first_offset) for each in found]
            else:
                records = log.read(offset, limit, min_one=not self.size, up_to=end)
        if records is not None:
            size = len(records)
            self.size += size
            self.left -= size
        return PartitionData(
            wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=stable,
            log_start_offset=log.start_offset,
            aborted_transactions=aborted,
            records=b"" if records is None else records,
        )

    def _find_divergence(self, partition: Partition, wanted: FetchPartition) -> PartitionData | None:
        """Return where the log of a follower diverges from this one, if it does (KIP-595)."""
        if wanted.last_fetched_epoch < 0:
            return None
        parting = partition.find_divergence(wanted.fetch_offset, wanted.last_fetched_epoch)
        if parting is None:
            return None
        if parting == UNKNOWN_END:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"leader epoch {wanted.last_fetched_epoch} is not in this log"
            )
        self.failed = True
        log = partition.log
        return PartitionData(
            wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start_offset,
            diverging_epoch=EpochEndOffset(*parting),
            records=b"",
        )

    def _build_error(self, wanted: FetchPartition, code: int) -> PartitionData:
        """Return an error code without offsets, as Kafka does, also outside of the log."""
        self.failed = True
        return PartitionData(wanted.partition, code, high_watermark=-1, records=b"")
