"""One partition as the broker holds it: what its topic says of it, its log, and who waits for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.waiting import WaitingFetch


class Partition:
    """A leader's view of one partition. The log is opened when it is first used."""

    __slots__ = (
        "_log",
        "_open",
        "awaiting_flush",
        "failing",
        "flush_is_set",
        "flushing",
        "internal",
        "leader_epoch",
        "min_insync_replicas",
        "replicas_in_sync",
        "topic_id",
        "topic_partition",
        "waiting",
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
        self.flushing = False
        """Whether a disk thread is forcing the log to the disk."""
        self.flush_is_set = False
        """Whether a flush by `flush.ms` is to come."""
        self.failing = False
        """Whether the last append failed by the fault of the disk."""
        self.awaiting_flush: list[Callable[[BaseException | None], None]] = []
        """Who is told when the next flush is done."""
        self._open = open_log
        self._log: Log | None = None

    def __repr__(self) -> str:
        return f"Partition({self.topic_partition})"

    @property
    def log(self) -> Log:
        """The log; KafkaError(KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID) where it cannot be opened."""
        log = self._log
        if log is None:
            log = self._log = self._open(self.topic_partition, self.topic_id)
        return log

    @property
    def opened_log(self) -> Log | None:
        """The log, if anybody has used it."""
        return self._log

    def epoch_error(self, current_leader_epoch: int) -> int:
        """What is wrong with the leader epoch that a client believes in; NONE where nothing is (KIP-320)."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        older = current_leader_epoch < self.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
