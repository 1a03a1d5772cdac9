"""A partition that this broker follows: its log, and the state machine that decides on fetches and truncation."""

from __future__ import annotations

import logging

from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.log_flusher import LogFlusher
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.replica_healing import ReplicaRepair
from ottla.clock import Clock
from ottla.coordination.replication.fetch_session import ReplicaPlace
from ottla.coordination.replication.fetched import (
    LATER_SECONDS,
    AppendBatches,
    RangeOutcome,
    RestartAt,
    RetryLater,
    TruncateDiverged,
    TruncateTo,
)
from ottla.coordination.replication.follower import FetchFrom, Follower
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, name_of
from ottla.records.batch import iter_headers, verify
from ottla.storage.batches.damage import Damage
from ottla.storage.log import Log

logger = logging.getLogger(__name__)


class FollowedPartition:
    """A follower's partition under one leader, in one leader epoch."""

    def __init__(
        self,
        partition: Partition,
        leader: int,
        clock: Clock,
        flusher: LogFlusher,
        waiting: FetchPurgatory,
        healing: ReplicaRepair | None = None,
        *,
        in_sync: bool = False,
    ) -> None:
        """Follow a partition whose log is open, and which has other replicas."""
        self.partition = partition
        self.place = ReplicaPlace(partition.topic_id, partition.topic_partition.partition)
        self.leader = leader
        self.log: Log = partition.log
        self.machine = Follower(partition.leader_epoch, self.log.high_watermark)
        self.not_before = 0.0
        """The time of the next fetch, by the monotonic clock."""
        self.lags = True
        """True if the leader has more committed records, as far as is known."""
        self.out_of_range = False
        """True if the range of the leader's log must be requested."""
        self._healing = healing or ReplicaRepair()
        self.in_sync = in_sync
        """True if the replica is in the ISR."""
        self._damage = self._healing.find_damage(self.log, leader)
        self._requested_repair: Damage | None = None
        """The damage at which the fetch under way starts."""
        self._clock = clock
        self._flusher = flusher
        self._waiting = waiting
        self._failing = ""

    @property
    def repaired_damage(self) -> Damage | None:
        """The damage from which the replica is to be fetched again; None while it is in the ISR."""
        return None if self.in_sync else self._damage

    @property
    def fetch_offset(self) -> int:
        """The offset from which to fetch."""
        return self.log.end_offset if self.repaired_damage is None else self.repaired_damage.offset

    def next_fetch(self) -> FetchFrom:
        self._requested_repair = self.repaired_damage
        return self.machine.next_fetch(self.log.epochs.entries, self.fetch_offset)

    def update_isr(self, *, in_sync: bool) -> bool:
        """Record whether the replica is in the ISR. True if that changes the next fetch."""
        before = self.repaired_damage
        self.in_sync = in_sync
        if in_sync:
            self.log.fallen_short = None
        self._find_damage()
        return self.repaired_damage != before

    def reset_to(self, leaders_start: int) -> None:
        """Delete committed records below the start of the leader's log."""
        if self.log.start_offset < leaders_start <= self.log.high_watermark:
            self.log.advance_start(leaders_start)
            self._find_damage()

    def _find_damage(self) -> None:
        self._damage = self._healing.find_damage(self.log, self.leader)

    def handle_outcome(self, outcome: AppendBatches | TruncateDiverged | RetryLater | RangeOutcome) -> None:
        """Apply the outcome of a fetch. A failure is retried later."""
        try:
            self._execute(outcome)
        except (CorruptRecordError, KafkaError) as error:
            self.wait(LATER_SECONDS, str(error))
            self._flusher.suspect(error, self.partition)
        except Exception as error:  # of one partition: the others of this leader are fetched
            logger.exception("%s cannot be fetched from broker %d", self.partition, self.leader)
            self.wait(LATER_SECONDS, repr(error))

    def wait(self, seconds: float, why: str) -> None:
        """Fetch nothing for a while. Each reason is logged once."""
        self.not_before = self._clock.monotonic() + seconds
        if why != self._failing and seconds >= LATER_SECONDS:
            logger.warning("%s cannot be fetched from broker %d, and is retried: %s", self.partition, self.leader, why)
        self._failing = why

    def _execute(self, outcome: AppendBatches | TruncateDiverged | RetryLater | RangeOutcome) -> None:
        match outcome:
            case AppendBatches() if self._requested_repair is not None:
                self._repair(self._requested_repair, outcome)
            case AppendBatches():
                self._append(outcome)
            case TruncateDiverged():
                self._ensure_possible(outcome.parting.offset)
                self._truncate(
                    self.machine.truncation_end(self.log.epochs.entries, self.log.end_offset, outcome.parting)
                )
            case TruncateTo():
                self._ensure_possible(outcome.offset)
                self._truncate(outcome.offset)
            case RestartAt():
                self._ensure_possible(outcome.offset)
                logger.warning(
                    "%s is deleted and starts again at offset %d, where its leader's log starts",
                    self.partition,
                    outcome.offset,
                )
                self.log.truncate_fully_and_start_at(outcome.offset, now_ms=self._clock.wall_ms())
                self.machine.high_watermark = outcome.offset
                self._find_damage()
            case RetryLater(code=ErrorCode.CORRUPT_MESSAGE) if self._requested_repair is not None:
                self._keep_damage(self._requested_repair)
            case RetryLater():
                self.wait(outcome.seconds, name_of(outcome.code))

    def _repair(self, damage: Damage, outcome: AppendBatches) -> None:
        """Truncate at the damage, now that the leader has sent intact records that follow the records before it."""
        if damage != self.repaired_damage:
            return  # The replica has joined the ISR meanwhile.
        if not outcome.records:
            self.out_of_range = True  # or it has no records to send at present, which a request for its range shows
            return
        check_batches(self.partition, outcome.records)
        before, end = self.log.end_offset, self.log.truncate_to(damage.offset, now_ms=self._clock.wall_ms())
        logger.warning(
            "%s is truncated from its end at %d to offset %d, and the damaged records are fetched from broker %d: %s",
            self.partition,
            before,
            end,
            self.leader,
            damage,
        )
        self.machine.high_watermark = min(self.machine.high_watermark, end)
        self._healing.complete()
        self._find_damage()
        self.lags = True

    def _keep_damage(self, damage: Damage) -> None:
        logger.error(
            "%s is not repaired: its leader, broker %d, cannot read offset %d either; %s",
            self.partition,
            self.leader,
            damage.offset,
            damage,
        )
        self._healing.keep_damage(damage, self.leader)
        self._find_damage()

    def _append(self, outcome: AppendBatches) -> None:
        log = self.log
        if outcome.records:
            log.append_as_is(outcome.records, leader_epoch=self.machine.leader_epoch, now_ms=self._clock.wall_ms())
            self._flusher.handle_append(self.partition, log)
        self.machine.append(log.end_offset, outcome.high_watermark)
        self.lags = outcome.high_watermark > log.end_offset
        if self.machine.high_watermark > log.high_watermark:
            log.advance_high_watermark(self.machine.high_watermark)
            self._waiting.recheck([self.partition])  # consumers read from followers, too
        if log.start_offset < outcome.log_start_offset <= log.high_watermark:
            log.advance_start(outcome.log_start_offset)
        self._failing = ""

    def _ensure_possible(self, offset: int) -> None:
        """Raise CorruptRecordError for an offset that no log can have: the whole log would be deleted."""
        if offset < 0:
            raise CorruptRecordError(
                f"{self.partition}: the leader returned the invalid offset {offset}; the log is not truncated, and the fetch is retried"
            )

    def _truncate(self, offset: int) -> None:
        """Truncate the log.

        After a change of leaders a follower may lose unacknowledged records; losing committed ones is logged as a
        warning.
        """
        log = self.log
        committed, ended = log.high_watermark, log.end_offset
        if offset >= ended:
            self.wait(LATER_SECONDS, f"it returned a diverging offset beyond {ended}, the end of this log")
            return
        end = log.truncate_to(offset, now_ms=self._clock.wall_ms())
        text = (
            f"{self.partition} diverged from its leader's log and is truncated from its end at {ended} to offset {end}"
        )
        if end < committed:
            logger.warning("%s; records below %d were committed", text, committed)
        else:
            logger.info("%s; none of the deleted records was committed", text)
        self.machine.high_watermark = min(self.machine.high_watermark, end)
        self._find_damage()


def check_batches(partition: Partition, records: memoryview) -> None:
    """Raise CorruptRecordError unless the leader's response consists of one or more intact batches."""
    found = list(iter_headers(records))
    if not found:
        raise CorruptRecordError(f"{partition}: the leader sent {len(records)} bytes without a complete batch")
    for position, header in found:
        verify(records, position, header)


def become_follower(partition: Partition, leader_epoch: int, waiting: FetchPurgatory, clock: Clock) -> None:
    """Stop leading a partition, if it was led, and notify waiting requests.

    Raise KafkaError if the log cannot be opened.
    """
    partition.leads = False
    partition.replicated = True
    partition.leader_epoch = leader_epoch
    log = partition.log
    log.set_replicated(True)
    if log.torn_at is not None:
        logger.warning(
            "%s is truncated to offset %d, where a crash left an incomplete write, and fetched from its leader",
            partition,
            log.torn_at,
        )
    log.truncate_torn(now_ms=clock.wall_ms())
    leadership, partition.leadership = partition.leadership, None
    if leadership is not None:
        leadership.end()
    waiting.recheck([partition])
