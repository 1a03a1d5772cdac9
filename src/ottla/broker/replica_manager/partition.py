"""A partition of this broker: the configs of its topic, its log, and the fetches that wait for it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.coordination.replication.epochs import EpochEnd, Starts, end_of, find_divergence
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.storage.batches.damage import Damage, OfflineError, OutOfServiceError
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.replica_manager.fetch_session import FetchedPartition
    from ottla.broker.replica_manager.leadership import Leadership
    from ottla.broker.replica_manager.waiting_fetch import WaitingFetch

logger = logging.getLogger(__name__)


class Partition:
    """A partition. Its log is opened at its first use."""

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
        "validates_schemas",
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
        """True if only the broker itself appends."""
        self.waiting: dict[WaitingFetch, None] = {}
        """Fetches that wait for records of this partition, in the order of their arrival."""
        self.watchers: dict[FetchedPartition, None] = {}
        """Fetch sessions that read this partition, each by what it knows of it."""
        self.validates_schemas = False
        """True if produced records need a registered schema."""
        self.flushing = False
        """True while a disk thread forces the log to the disk."""
        self.flush_is_set = False
        """True while a flush by `flush.ms` is scheduled."""
        self.replicated = False
        """True if there are other replicas, so that not all of the log is committed."""
        self.leads = True
        """True on the leader, false on a follower."""
        self.leadership: Leadership | None = None
        """The state of the leader, None on a follower and without other replicas."""
        self.failing = False
        """True if the last append failed because of the disk."""
        self.awaiting_flush: list[Callable[[BaseException | None], None]] = []
        """Called after the next flush."""
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
        """The log, opened at first use.

        KafkaError(KAFKA_STORAGE_ERROR) if it cannot be opened, OutOfServiceError if the partition is out of service.
        """
        log = self._log
        if log is None:
            log = self._log = self._opened()
        return log

    @property
    def is_unused(self) -> bool:
        """True if its log was not opened yet, and it has no leadership."""
        return self._log is None and self.leadership is None and self._fault is None

    def lead_alone(self, leader_epoch: int, min_insync_replicas: int) -> None:
        """Lead without other replicas, and without opening the log, which may be one of thousands."""
        self.leads = True
        self.leader_epoch, self.min_insync_replicas = leader_epoch, min_insync_replicas

    @property
    def fault(self) -> OutOfServiceError | None:
        """The reason why the partition is out of service, or None."""
        return self._fault

    def damage_at(self, offset: int) -> Damage | None:
        """Return the damage that readers cannot pass at `offset`, searched for once, or None."""
        for damage in self._damages:
            if damage.offset <= offset < damage.next_offset:
                return damage
        found = self.log.find_damage(offset)
        if found is not None:
            self._damages.append(found)
        return found

    def take_out_of_service(self, error: OutOfServiceError) -> OutOfServiceError:
        """Take the partition out of service until the broker restarts, and log that once."""
        if self._fault is None:
            self._fault = error
            logger.error("%s is out of service: %s", self.topic_partition, error.message)
        return self._fault

    def take_offline(self, error: OfflineError) -> None:
        """Take the partition out of service until its directory is online. The caller notifies waiting requests."""
        self._fault, self._log = error, None
        leadership, self.leadership = self.leadership, None
        if leadership is not None:
            leadership.end()

    def record_fetch(self, follower: int, moment: float) -> None:
        """Record a fetch, at that moment, of a follower that had everything and did not name the partition."""
        if self.leadership is not None:
            self.leadership.machine.record_idle_fetch(follower, moment)

    def has_fetched(self, follower: int) -> bool:
        """Return True if a follower has reported, since the last change of directories, that it has everything."""
        return self.leadership is not None and self.leadership.machine.is_level(follower)

    def relocate(self, log: Log) -> None:
        """Replace the log by one with the same records in another directory."""
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
        """The log if it has been opened, else None."""
        return self._log

    def epoch_error(self, current_leader_epoch: int) -> int:
        """Return the error code for a client's leader epoch, NONE if it is current (KIP-320)."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE if self.leads else ErrorCode.NOT_LEADER_OR_FOLLOWER
        older = current_leader_epoch < self.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH

    def copy_error(self, current_leader_epoch: int) -> int:
        """Return the same for clients that may read from a follower (KIP-392)."""
        error = self.epoch_error(current_leader_epoch)
        return ErrorCode.NONE if error == ErrorCode.NOT_LEADER_OR_FOLLOWER and self.replicated else error

    def end_of_epoch(self, wanted: int) -> tuple[int, int]:
        """Return the last epoch up to `wanted` and its end offset; -1, -1 if it is unknown."""
        return end_of(self._epochs(), wanted, self.log.end_offset)

    def find_divergence(self, offset: int, last_epoch: int) -> EpochEnd | None:
        """Return the end of the common part of this log and that of a follower at `offset`, after a batch of `last_epoch` (KIP-595)."""
        return find_divergence(self._epochs(), self.log.end_offset, offset, last_epoch)

    def _epochs(self) -> Starts:
        """Return epochs and their start offsets, including the present one before its first record."""
        entries = self.log.epochs.entries
        if entries and entries[-1][0] >= self.leader_epoch:
            return entries
        return [*entries, (self.leader_epoch, self.log.end_offset)]
