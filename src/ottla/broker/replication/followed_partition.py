"""A partition that this broker copies: its log, and the machine that says from where to fetch and where to cut."""

from __future__ import annotations

import logging

from ottla.broker.fetching.waiting import Waiting
from ottla.broker.partitions.flusher import Flusher
from ottla.broker.partitions.partition import Partition
from ottla.clock import Clock
from ottla.coordination.replication.fetch_session import Place
from ottla.coordination.replication.fetched import LATER_SECONDS, Append, BeginAnew, Cut, CutAt, RangeOutcome, Wait
from ottla.coordination.replication.follower import FetchFrom, Follower
from ottla.errors import CorruptRecordError, KafkaError, name_of
from ottla.storage.log import Log

logger = logging.getLogger(__name__)


class FollowedPartition:
    """Under one leader, in one epoch."""

    def __init__(self, partition: Partition, leader: int, clock: Clock, flusher: Flusher, waiting: Waiting) -> None:
        """The partition's log is open, and knows of copies elsewhere."""
        self.partition = partition
        self.place = Place(partition.topic_id, partition.topic_partition.partition)
        self.leader = leader
        self.log: Log = partition.log
        self.machine = Follower(partition.leader_epoch, self.log.high_watermark)
        self.not_before = 0.0
        """When to ask next; a reading of the monotonic clock."""
        self.lags = True
        """Whether the leader has more that is committed, as far as is known."""
        self.out_of_range = False
        """Whether it has to be found out where the leader's log begins."""
        self._clock = clock
        self._flusher = flusher
        self._waiting = waiting
        self._failing = ""

    def next_fetch(self) -> FetchFrom:
        return self.machine.next_fetch(self.log.epochs.entries, self.log.end_offset)

    def take(self, outcome: Append | Cut | Wait | RangeOutcome) -> None:
        """Do what an answer means; what cannot be done now is tried again."""
        try:
            self._do(outcome)
        except (CorruptRecordError, KafkaError) as error:
            self.wait(LATER_SECONDS, str(error))
            self._flusher.suspect(error, self.partition)
        except Exception as error:  # of one partition: the others of this leader are copied on
            logger.exception("%s cannot be copied from broker %d", self.partition, self.leader)
            self.wait(LATER_SECONDS, repr(error))

    def wait(self, seconds: float, why: str) -> None:
        """Ask no more for a while; the reason is told once."""
        self.not_before = self._clock.monotonic() + seconds
        if why != self._failing and seconds >= LATER_SECONDS:
            logger.warning("%s is not copied from broker %d at present: %s", self.partition, self.leader, why)
        self._failing = why

    def _do(self, outcome: Append | Cut | Wait | RangeOutcome) -> None:
        match outcome:
            case Append():
                self._append(outcome)
            case Cut():
                self._cut(self.machine.cut(self.log.epochs.entries, self.log.end_offset, outcome.parting))
            case CutAt():
                self._cut(outcome.offset)
            case BeginAnew():
                logger.warning("%s begins anew at offset %d, as its leader's log does", self.partition, outcome.offset)
                self.log.truncate_fully_and_start_at(outcome.offset, now_ms=self._clock.wall_ms())
                self.machine.high_watermark = outcome.offset
            case Wait():
                self.wait(outcome.seconds, name_of(outcome.code))

    def _append(self, outcome: Append) -> None:
        log = self.log
        if outcome.records:
            log.append_as_is(outcome.records, leader_epoch=self.machine.leader_epoch, now_ms=self._clock.wall_ms())
            self._flusher.appended(self.partition, log)
        self.machine.append(log.end_offset, outcome.high_watermark)
        self.lags = outcome.high_watermark > log.end_offset
        if self.machine.high_watermark > log.high_watermark:
            log.advance_high_watermark(self.machine.high_watermark)
            self._waiting.look_again([self.partition])  # consumers read from copies, too
        if log.start_offset < outcome.log_start_offset <= log.high_watermark:
            log.advance_start(outcome.log_start_offset)
        self._failing = ""

    def _cut(self, offset: int) -> None:
        logger.warning(
            "%s parts from its leader's log and is cut: it ended at offset %d, and ends at %d now",
            self.partition,
            self.log.end_offset,
            end := self.log.truncate_to(offset, now_ms=self._clock.wall_ms()),
        )
        self.machine.high_watermark = min(self.machine.high_watermark, end)


def begin_to_follow(partition: Partition, leader_epoch: int, waiting: Waiting, clock: Clock) -> None:
    """Lead no more, if it was led: who waits is told. KafkaError where the log cannot be opened."""
    partition.leads = False
    partition.replicated = True
    partition.leader_epoch = leader_epoch
    log = partition.log
    log.replicate(True)
    if log.torn_at is not None:
        logger.warning(
            "%s was torn by a crash: it is cut at offset %d, and copied from its leader", partition, log.torn_at
        )
    log.truncate_torn(now_ms=clock.wall_ms())
    leadership, partition.leadership = partition.leadership, None
    if leadership is not None:
        leadership.end()
    waiting.look_again([partition])
