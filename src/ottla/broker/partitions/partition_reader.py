"""Reading partitions for a fetch: what one look at the logs finds, within the limits of its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.fetching.fetch_session import FetchedPartition
from ottla.broker.partitions.leadership import Leadership
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.coordination.replication.epochs import UNKNOWN_END
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, FetchPartition, PartitionData
from ottla.records.compression import Codec
from ottla.storage.batches.damage import DamagedLogError, OfflineError, OutOfServiceError, remedy

Near = Callable[[Leadership, int], int | None]
"""Which copy somebody had better read from an offset on, if it is not the leader's."""


class Follower(NamedTuple):
    """Another broker that fetches, for its copies."""

    broker: int
    broker_epoch: int
    now: float | None
    """When it asked; None where this is a second look for the same request, which tells nothing new of it."""


class PartitionReader:
    """One look at the logs; who reads committed records gets them up to the last stable offset."""

    __slots__ = (
        "_follower",
        "_held_back",
        "_near",
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
        max_bytes: int,
        *,
        committed: bool = False,
        takes_zstd: bool = True,
        follower: Follower | None = None,
        near: Near | None = None,
        held_back: Callable[[TopicPartition], float] | None = None,
    ) -> None:
        self.partitions = partitions
        self._held_back = held_back
        """For how long copies of a partition that are behind get nothing, where they are throttled."""
        self._follower = follower
        """Who asks, where that is another broker: it gets what is not committed, too."""
        self._near = near
        """For who may read from copies: which of them it had better read from."""
        self.committed = committed
        self.takes_zstd = takes_zstd
        """Whether who asks can read what a topic of that codec holds."""
        self.read_from: list[Partition] = []
        """Those that were found, for whose records the fetch could wait."""
        self.size = 0
        """Bytes of records found."""
        self.left = max_bytes
        self.failed = False
        """Whether some partition has something to tell that is no record."""

    def read(self, fetched: FetchedPartition) -> PartitionData:
        """What there is of one partition: records, or why there are none."""
        wanted = fetched.wanted
        partition, error = self._find(fetched)
        error = error or (self._leader_error(partition, wanted.current_leader_epoch) if partition else 0)
        if partition is None or error:
            return self._error(wanted, error)
        self.read_from.append(partition)
        fetched.watch(partition)
        try:
            parted = self._diverged(partition, wanted)
            found = parted or self._counted(partition, wanted)
            if self._follower is not None:
                fetched.lacks = parted is not None or not partition.has_heard(self._follower.broker)
            return found
        except OfflineError:
            return self._error(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
        except OutOfServiceError:
            return self._error(wanted, ErrorCode.CORRUPT_MESSAGE)  # which clients tell, and do not try again in silence
        except KafkaError as failure:
            if failure.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                self.partitions.complaints.tell(f"cannot read {partition.topic_partition}: {failure}")
                self.partitions.suspect(failure, partition)
            return self._error(wanted, failure.code)
        except CorruptRecordError as failure:
            return self._damaged(partition, wanted, failure)

    def _leader_error(self, partition: Partition, epoch: int) -> int:
        return partition.epoch_error(epoch) if self._near is None else partition.copy_error(epoch)

    def refused(self, fetched: FetchedPartition, code: int) -> PartitionData:
        """Nothing of a partition, for a reason that is not the partition's."""
        return self._error(fetched.wanted, code)

    def _damaged(self, partition: Partition, wanted: FetchPartition, failure: CorruptRecordError) -> PartitionData:
        """An answer that says where the log goes on, where a client would look for its beginning.

        CORRUPT_MESSAGE is the code that clients tell their users; KAFKA_STORAGE_ERROR they try again in silence, and with whoever leads
        by then: that is for a copy which others have whole.
        """
        if self.partitions.relieves(partition):
            return self._error(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
        known = failure.damage if isinstance(failure, DamagedLogError) else None
        damage = known or partition.damage_at(wanted.fetch_offset)
        sentence = (
            f"{damage or failure}; readers stop there, and go on at offset {damage.next_offset if damage else '?'}"
        )
        self.partitions.complaints.tell(
            f"cannot read {partition.topic_partition}: {sentence}; {remedy(partition.log.directory)}"
        )
        found = self._error(wanted, ErrorCode.CORRUPT_MESSAGE)
        if damage is not None:
            found.high_watermark, found.log_start_offset = partition.log.high_watermark, damage.next_offset
        return found

    def _find(self, fetched: FetchedPartition) -> tuple[Partition | None, int]:
        """The partition, or what is wrong: an id that was never known, or one that is known no more."""
        by_id = bool(fetched.topic_id.int)
        if fetched.name is None:
            fetched.name = self.partitions.topic_name(fetched.topic_id)
        if fetched.name is None:
            return None, ErrorCode.UNKNOWN_TOPIC_ID
        partition = self.partitions.find(fetched.name, fetched.wanted.partition)
        if partition is None:
            return None, self.partitions.absent_code(fetched.name, fetched.wanted.partition)
        if by_id and partition.topic_id != fetched.topic_id:
            return None, ErrorCode.INCONSISTENT_TOPIC_ID
        return partition, ErrorCode.NONE

    def _counted(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        """Records, once the leader knows how far a follower has come; one that was told to cut its log has not (KAFKA-13141)."""
        follower, leadership = self._follower, partition.leadership
        if leadership is None:
            return self._records(partition, wanted)
        if follower is None:
            return self._sent_elsewhere(leadership, wanted) or self._records(partition, wanted)
        within = partition.log.start_offset <= wanted.fetch_offset <= partition.log.end_offset
        if follower.now is not None and within:
            known = leadership.fetched(
                follower.broker, wanted.fetch_offset, follower.broker_epoch, follower.now, wanted.log_start_offset
            )
            if not known:
                return self._error(wanted, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        behind = follower.broker not in leadership.machine.assignment.in_sync
        held_back = behind and self._held_back is not None and self._held_back(partition.topic_partition) > 0
        return self._records(partition, wanted, held_back=held_back)

    def _sent_elsewhere(self, leadership: Leadership, wanted: FetchPartition) -> PartitionData | None:
        """Where a consumer had better read, if that is not here; it is told at once."""
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

    def _records(self, partition: Partition, wanted: FetchPartition, *, held_back: bool = False) -> PartitionData:
        log = partition.log
        if not self.takes_zstd and log.config.codec is Codec.ZSTD:
            return self._error(wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        stable = log.last_stable_offset
        end = stable if self.committed else log.high_watermark if self._follower is None else log.end_offset
        records = None
        aborted: list[AbortedTransaction] | None = [] if self.committed else None
        offset = wanted.fetch_offset
        # At the end is where a consumer usually is.
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

    def _diverged(self, partition: Partition, wanted: FetchPartition) -> PartitionData | None:
        """Where the log of a follower and ours part, if it says what it has and they do (KIP-595)."""
        if wanted.last_fetched_epoch < 0:
            return None
        parting = partition.parting(wanted.fetch_offset, wanted.last_fetched_epoch)
        if parting is None:
            return None
        if parting == UNKNOWN_END:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"leader epoch {wanted.last_fetched_epoch} is not known here"
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

    def _error(self, wanted: FetchPartition, code: int) -> PartitionData:
        """Why there is nothing, and no more: Kafka tells of no offsets then, also outside of the log."""
        self.failed = True
        return PartitionData(wanted.partition, code, high_watermark=-1, records=b"")
