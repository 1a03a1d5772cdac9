"""A partition that this broker copies: its log, and the machine that says from where to fetch and where to cut."""

from __future__ import annotations

import logging

from ottla.broker.fetching.waiting import Waiting
from ottla.broker.partitions.flusher import Flusher
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.healing import Healing
from ottla.clock import Clock
from ottla.coordination.replication.fetch_session import Place
from ottla.coordination.replication.fetched import LATER_SECONDS, Append, BeginAnew, Cut, CutAt, RangeOutcome, Wait
from ottla.coordination.replication.follower import FetchFrom, Follower
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, name_of
from ottla.records.batch import iter_headers, verify
from ottla.storage.batches.damage import Damage
from ottla.storage.log import Log

logger = logging.getLogger(__name__)


class FollowedPartition:
    """Under one leader, in one epoch."""

    def __init__(
        self,
        partition: Partition,
        leader: int,
        clock: Clock,
        flusher: Flusher,
        waiting: Waiting,
        healing: Healing | None = None,
        *,
        in_sync: bool = False,
    ) -> None:
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
        self._healing = healing or Healing()
        self.in_sync = in_sync
        """Whether the controllers count on it."""
        self._damage = self._healing.damage(self.log, leader)
        self._asked_for: Damage | None = None
        """The damage at which the present question begins."""
        self._clock = clock
        self._flusher = flusher
        self._waiting = waiting
        self._failing = ""

    @property
    def heals(self) -> Damage | None:
        """The damage from which on it is to be copied anew; not before nobody counts on what lies behind."""
        return None if self.in_sync else self._damage

    @property
    def fetch_offset(self) -> int:
        """From where on it lacks something."""
        return self.log.end_offset if self.heals is None else self.heals.offset

    def next_fetch(self) -> FetchFrom:
        self._asked_for = self.heals
        return self.machine.next_fetch(self.log.epochs.entries, self.fetch_offset)

    def see(self, *, in_sync: bool) -> bool:
        """Hear whether the controllers count on it; whether something else is to be asked for than before."""
        before = self.heals
        self.in_sync = in_sync
        if in_sync:
            self.log.fallen_short = None
        self._look_for_damage()
        return self.heals != before

    def begin_at(self, leaders_start: int) -> None:
        """Let go what the leader has not any more, as far as it is known to be committed."""
        if self.log.start_offset < leaders_start <= self.log.high_watermark:
            self.log.advance_start(leaders_start)
            self._look_for_damage()

    def _look_for_damage(self) -> None:
        self._damage = self._healing.damage(self.log, self.leader)

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
            case Append() if self._asked_for is not None:
                self._heal(self._asked_for, outcome)
            case Append():
                self._append(outcome)
            case Cut():
                self._ensure_possible(outcome.parting.offset)
                self._cut(self.machine.cut(self.log.epochs.entries, self.log.end_offset, outcome.parting))
            case CutAt():
                self._ensure_possible(outcome.offset)
                self._cut(outcome.offset)
            case BeginAnew():
                self._ensure_possible(outcome.offset)
                logger.warning("%s begins anew at offset %d, as its leader's log does", self.partition, outcome.offset)
                self.log.truncate_fully_and_start_at(outcome.offset, now_ms=self._clock.wall_ms())
                self.machine.high_watermark = outcome.offset
                self._look_for_damage()
            case Wait(code=ErrorCode.CORRUPT_MESSAGE) if self._asked_for is not None:
                self._despair(self._asked_for)
            case Wait():
                self.wait(outcome.seconds, name_of(outcome.code))

    def _heal(self, damage: Damage, outcome: Append) -> None:
        """Give up what is damaged and all behind it, now that the leader has sent what follows on what is whole."""
        if damage != self.heals:
            return  # It has come to be counted on meanwhile.
        if not outcome.records:
            self.out_of_range = True  # or it may send nothing at present: its range tells
            return
        ensure_whole(self.partition, outcome.records)
        before, end = self.log.end_offset, self.log.truncate_to(damage.offset, now_ms=self._clock.wall_ms())
        logger.warning(
            "%s is cut at offset %d, where it ended at %d, and copied from there on from broker %d, which has what is damaged here: %s",
            self.partition,
            end,
            before,
            self.leader,
            damage,
        )
        self.machine.high_watermark = min(self.machine.high_watermark, end)
        self._healing.healed()
        self._look_for_damage()
        self.lags = True

    def _despair(self, damage: Damage) -> None:
        logger.error(
            "%s stays as it is: broker %d, which leads, cannot read offset %d either; %s",
            self.partition,
            self.leader,
            damage.offset,
            damage,
        )
        self._healing.despair(damage, self.leader)
        self._look_for_damage()

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

    def _ensure_possible(self, offset: int) -> None:
        """CorruptRecordError where no log begins or ends there: all that is here would go."""
        if offset < 0:
            raise CorruptRecordError(
                f"{self.partition}: the leader speaks of offset {offset}, which no log has; nothing is cut, and it is asked again"
            )

    def _cut(self, offset: int) -> None:
        """Each change of leaders may leave a copy with records that nobody was told of as written; that committed ones go is not ordinary."""
        log = self.log
        committed, ended = log.high_watermark, log.end_offset
        if offset >= ended:
            self.wait(LATER_SECONDS, f"it says that the logs part behind offset {ended}, where this one ends")
            return
        end = log.truncate_to(offset, now_ms=self._clock.wall_ms())
        told = f"{self.partition} parts from its leader's log and is cut: it ended at offset {ended}, and ends at {end} now"
        if end < committed:
            logger.warning("%s, though all below %d was committed", told, committed)
        else:
            logger.info("%s; nothing of that was committed", told)
        self.machine.high_watermark = min(self.machine.high_watermark, end)
        self._look_for_damage()


def ensure_whole(partition: Partition, records: memoryview) -> None:
    """CorruptRecordError unless what a leader sent are batches as they were written, one or more."""
    found = list(iter_headers(records))
    if not found:
        raise CorruptRecordError(f"{partition}: the leader sent {len(records)} bytes without a whole batch")
    for position, header in found:
        verify(records, position, header)


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
