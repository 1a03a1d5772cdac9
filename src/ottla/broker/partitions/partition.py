"""One partition as the broker holds it: what its topic says of it, its log, and who waits for it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.coordination.replication.epochs import EpochEnd, Starts, end_of, parting
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.storage.batches.damage import Damage, OfflineError, OutOfServiceError
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.fetching.fetch_session import FetchedPartition
    from ottla.broker.fetching.waiting import WaitingFetch
    from ottla.broker.partitions.leadership import Leadership

logger = logging.getLogger(__name__)


class Partition:
    """What a broker knows of one partition. The log is opened when it is first used."""

    __slots__ = (
        "_damages",
        "_fault",
        "_log",
        "_open",
        "awaiting_flush",
        "failing",
        "flush_is_set",
        "flushing",
        "internal",
        "leader_epoch",
        "leadership",
        "leads",
        "min_insync_replicas",
        "replicas_in_sync",
        "replicated",
        "topic_id",
        "topic_partition",
        "waiting",
        "watchers",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
        open_log: Callable[[TopicPartition, uuid.UUID], Log],
        *,
        leader_epoch: int,
        replicas_in_sync: int = 1,
        min_insync_replicas: int = 1,
        internal: bool = False,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.replicas_in_sync = replicas_in_sync
        self.min_insync_replicas = min_insync_replicas
        self.internal = internal
        """Whether only the broker itself appends."""
        self.waiting: dict[WaitingFetch, None] = {}
        """Fetches that wait for records of this partition, in the order they came."""
        self.watchers: dict[FetchedPartition, None] = {}
        """Fetch sessions that read this partition, each by what it knows of it."""
        self.flushing = False
        """Whether a disk thread is forcing the log to the disk."""
        self.flush_is_set = False
        """Whether a flush by `flush.ms` is to come."""
        self.replicated = False
        """Whether other brokers have copies, so that not all that is in the log is committed."""
        self.leads = True
        """Whether this broker leads it, rather than copies it from another."""
        self.leadership: Leadership | None = None
        """What is decided of them where this broker leads."""
        self.failing = False
        """Whether the last append failed by the fault of the disk."""
        self.awaiting_flush: list[Callable[[BaseException | None], None]] = []
        """Who is told when the next flush is done."""
        self._open = open_log
        self._log: Log | None = None
        self._damages: list[Damage] = []
        self._fault: OutOfServiceError | None = None

    def __repr__(self) -> str:
        return f"Partition({self.topic_partition})"

    def __str__(self) -> str:
        return str(self.topic_partition)

    @property
    def log(self) -> Log:
        """The log; KafkaError(KAFKA_STORAGE_ERROR) where it cannot be opened, OutOfServiceError where it must not be."""
        log = self._log
        if log is None:
            log = self._log = self._opened()
        return log

    @property
    def fault(self) -> OutOfServiceError | None:
        """Why nobody may use the partition."""
        return self._fault

    def damage_at(self, offset: int) -> Damage | None:
        """What keeps readers from going on at `offset`; it is looked for once."""
        for damage in self._damages:
            if damage.offset <= offset < damage.next_offset:
                return damage
        found = self.log.find_damage(offset)
        if found is not None:
            self._damages.append(found)
        return found

    def take_out_of_service(self, error: OutOfServiceError) -> OutOfServiceError:
        """Let nobody use the partition until the broker starts again, and say so once."""
        if self._fault is None:
            self._fault = error
            logger.error("%s is out of service: %s", self.topic_partition, error.message)
        return self._fault

    def take_offline(self, error: OfflineError) -> None:
        """Let nobody use the partition until its directory is there again, as has been said of that. Who waits is told by the caller."""
        self._fault, self._log = error, None
        leadership, self.leadership = self.leadership, None
        if leadership is not None:
            leadership.end()

    def heard(self, follower: int, moment: float) -> None:
        """A follower that had everything asked at that moment, and did not name the partition."""
        if self.leadership is not None:
            self.leadership.machine.hear(follower, moment)

    def has_heard(self, follower: int) -> bool:
        """Whether a follower has said, since the metadata last said who has a copy, that it has everything."""
        return self.leadership is not None and self.leadership.machine.is_level(follower)

    def relocate(self, log: Log) -> None:
        """Have another log, with the same records, in another directory."""
        self._log = log
        if self.leadership is not None:
            self.leadership.log = log

    def _opened(self) -> Log:
        if self._fault is not None:
            raise self._fault
        try:
            return self._open(self.topic_partition, self.topic_id)
        except OfflineError as error:
            self._fault = error
            raise
        except OutOfServiceError as error:
            raise self.take_out_of_service(error) from None

    @property
    def opened_log(self) -> Log | None:
        """The log, if anybody has used it."""
        return self._log

    def epoch_error(self, current_leader_epoch: int) -> int:
        """What is wrong with the leader that a client believes in; NONE where nothing is (KIP-320)."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE if self.leads else ErrorCode.NOT_LEADER_OR_FOLLOWER
        older = current_leader_epoch < self.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH

    def copy_error(self, current_leader_epoch: int) -> int:
        """The same for who may read from a copy that this broker has of another's partition (KIP-392)."""
        error = self.epoch_error(current_leader_epoch)
        return ErrorCode.NONE if error == ErrorCode.NOT_LEADER_OR_FOLLOWER and self.replicated else error

    def end_of_epoch(self, wanted: int) -> tuple[int, int]:
        """The last epoch that is not after `wanted` and the offset at which it ended; -1, -1 where it is unknown."""
        return end_of(self._epochs(), wanted, self.log.end_offset)

    def parting(self, offset: int, last_epoch: int) -> EpochEnd | None:
        """Where the log of who fetches from `offset`, after a batch of `last_epoch`, parts from this one (KIP-595)."""
        return parting(self._epochs(), self.log.end_offset, offset, last_epoch)

    def _epochs(self) -> Starts:
        """Epochs and their first offsets; the present one counts before its first record is written."""
        entries = self.log.epochs.entries
        if entries and entries[-1][0] >= self.leader_epoch:
            return entries
        return [*entries, (self.leader_epoch, self.log.end_offset)]
