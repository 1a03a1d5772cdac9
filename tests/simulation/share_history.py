"""A history of a share group: members that are slow or die, leaders that move or do not know it yet, writes that fail or come late.

The partition's leaders and the share coordinator are real, the log and the network are not. The judge is `ShareModel`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from ottla.coordination.share.events import (
    AcquiredRange,
    AcquireMode,
    ClosedOffsetRange,
    Effects,
    FetchedRecords,
    PersistedState,
    ShareAcknowledgementBatch,
    ShareLimits,
    StateWrite,
)
from ottla.coordination.share.record_state import AcknowledgeType
from ottla.coordination.share.records import ShareStateRecord, decode_record, encode_record
from ottla.coordination.share.share_partition import SharePartition
from ottla.coordination.share.share_state import (
    ColdSnapshotsDue,
    Event,
    InitializeRequested,
    KeyState,
    ReadRequested,
    SharePartitionKey,
    ShareState,
    WriteRequested,
)
from ottla.errors import ErrorCode
from tests.simulation.share_model import SETTLING, LeaderModel, ShareModel
from tests.simulation.world import World

KEY = SharePartitionKey("g", UUID(int=1), 0)
LOCK_DURATION = 5.0
PATIENCE = 400.0
SLACK = 14
"""The last batch, and the offsets without a record before it, may exceed the limit of records in flight."""


class Coordinator:
    """The share coordinator, its log, and the requests to it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_up = True
        self.lost = self.late = 0.0
        """The probability that a request gets no response, and that it is nevertheless handled later."""
        self.log: list[tuple[int, tuple[bytes, bytes | None]]] = []
        self.updates_per_snapshot = world.chance.choice((1, 3, 500))
        self.machine = ShareState(self.updates_per_snapshot)
        self.ask(InitializeRequested(1, KEY, 1, 0, 0))

    def ask(self, event: Event) -> ErrorCode | KeyState:
        decision = self.machine.decide(event, self.world.now)
        for record in decision.records:
            offset = self.log[-1][0] + 1 if self.log else 0
            self.log.append((offset, encode_record(record)))
            self.machine.replay(record)
            self.machine.note_offset(record, offset)
        self.machine.check()
        answer: ErrorCode | KeyState = decision.replies[0].message
        return answer

    def send(self, event: Event, answer: Callable[[ErrorCode | KeyState], None]) -> None:
        """Handle a request after a while, or not, or without an answer."""
        world = self.world
        world.after(world.chance.random() * 0.2, lambda: self._arrive(event, answer))

    def _arrive(self, event: Event, answer: Callable[[ErrorCode | KeyState], None]) -> None:
        world = self.world
        if not self.is_up:
            answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif world.likely(self.lost):
            if world.likely(0.4):
                self.ask(event)
            elif world.likely(self.late):
                world.after(world.chance.random() * 12, partial(self._handle_late, event))
            answer(ErrorCode.REQUEST_TIMED_OUT)
        else:
            result = self.ask(event)
            world.after(world.chance.random() * 0.1, lambda: answer(result))

    def _handle_late(self, event: Event) -> None:
        self.ask(event)

    def restart(self) -> None:
        """Prune the log, and read the state from it."""
        lowest = self.machine.lowest_needed_offset
        assert lowest is not None
        if self.world.likely(0.5):
            self.log = [entry for entry in self.log if entry[0] >= lowest]
        machine = ShareState(self.updates_per_snapshot)
        for offset, pair in self.log:
            record = decode_record(*pair)
            assert isinstance(record, ShareStateRecord)
            machine.replay(record)
            machine.note_offset(record, offset)
        self.machine, self.is_up = machine, True


class Leader:
    """A broker that leads the partition, or believes so."""

    def __init__(self, history: ShareHistory, epoch: int) -> None:
        self.history = history
        self.epoch = epoch
        self.model = LeaderModel(epoch)
        self.partition: SharePartition | None = None
        self.alive = True
        self._tickets: dict[int, Callable[[ErrorCode], None]] = {}
        self._ticket = 0
        self._load()

    @property
    def serves(self) -> bool:
        return self.alive and self.partition is not None and not self.partition.is_fenced

    def _load(self) -> None:
        event = ReadRequested(1, KEY, self.epoch, self.history.world.wall_ms())
        self.history.coordinator.send(event, self._loaded)

    def _loaded(self, answer: ErrorCode | KeyState) -> None:
        if not self.alive:
            return
        if not isinstance(answer, KeyState):
            if answer != ErrorCode.FENCED_LEADER_EPOCH:
                self.history.world.after(0.5, self._load)
            return
        persisted = PersistedState(answer.state_epoch, answer.start_offset, answer.batches)
        self.partition = SharePartition(persisted, self.epoch, self.history.limits)
        self.partition.move_log_start(self.history.log_start)
        self.say("leads from", self.partition.start_offset, *answer.batches)
        self.do(Effects(dead_letters=self.partition.resume_dead_letters()))

    def say(self, *what: object) -> None:
        self.history.world.say(f"leader {self.epoch}", *what)

    def fetch(self, member: str, limit: int, mode: AcquireMode) -> tuple[AcquiredRange, ...]:
        partition = self.partition
        assert partition is not None
        offset = partition.next_fetch_offset
        fetched = self.history.read(offset)
        if not partition.can_acquire or fetched is None:
            return ()
        acquired = partition.acquire(member, fetched, limit, self.history.world.now, mode, batch_size=4)
        partition.check()
        self.say(member, "fetches", fetched.batches, "and gets", acquired)
        self.history.model.acquired(self.model, member, acquired, self.history.world.now)
        assert partition.in_flight_count <= self.history.limits.max_in_flight_records + SLACK, "the window grows"
        self._arm()
        return acquired

    def acknowledge(
        self, member: str, batches: list[ShareAcknowledgementBatch], reply: Callable[[ErrorCode], None]
    ) -> None:
        assert self.partition is not None
        self._ticket += 1
        self._tickets[self._ticket] = reply
        self.say(member, "acknowledges", batches)
        now = self.history.world.now
        self.do(self.partition.acknowledge(self._ticket, member, batches, now))

    def close(self, member: str) -> None:
        assert self.partition is not None
        self._ticket += 1
        self._tickets[self._ticket] = lambda error: None if error else self.history.model.closed(self.model, member)
        self.say(member, "is closed")
        self.do(self.partition.release_member(self._ticket, member))

    def do(self, effects: Effects) -> None:
        assert self.partition is not None
        self.partition.check()
        for completion in effects.completions:
            self._tickets.pop(completion.ticket)(completion.error)
        if effects.write is not None:
            self._write(effects.write)
        for letter in effects.dead_letters:
            offsets = range(letter.first_offset, letter.last_offset + 1)
            self.history.world.after(self.history.world.chance.random(), partial(self._copy, offsets))
        self._arm()

    def _copy(self, offsets: range) -> None:
        self.history.model.copied.update(offsets)
        if self.serves:
            assert self.partition is not None
            self.say("copied", offsets)
            self.do(self.partition.complete_dead_letters(offsets[0], offsets[-1]))

    def _write(self, write: StateWrite) -> None:
        world = self.history.world
        self.say("writes", write.start_offset, *write.batches)
        event = WriteRequested(
            1,
            KEY,
            write.state_epoch,
            write.leader_epoch,
            write.start_offset,
            write.delivery_complete_count,
            write.batches,
            world.wall_ms(),
        )
        self.history.coordinator.send(event, lambda answer: self._written(write, answer))

    def _written(self, write: StateWrite, answer: ErrorCode | KeyState) -> None:
        if not self.serves:
            return
        assert isinstance(answer, ErrorCode)
        assert self.partition is not None
        self.say("has written", answer.name)
        if not answer:
            self.history.model.stored(write)
        self.do(self.partition.complete_write(answer, self.history.world.now))

    def _arm(self) -> None:
        assert self.partition is not None
        deadline = self.partition.next_deadline
        if deadline is not None:
            self.history.world.at(deadline, self._expire)

    def _expire(self) -> None:
        if self.serves:
            assert self.partition is not None
            self.do(self.partition.expire_locks(self.history.world.now))


class Member:
    """A consumer of the group."""

    def __init__(self, history: ShareHistory, name: str, *, is_diligent: bool = False) -> None:
        self.history = history
        self.name = name
        self.alive = True
        self.is_diligent = is_diligent
        """True if it accepts everything at once."""
        self.leader = history.leaders[-1]
        history.world.after(0.01, self._poll)

    def _poll(self) -> None:
        world, chance = self.history.world, self.history.world.chance
        if not self.alive:
            return
        if not self.leader.serves or world.likely(0.1):
            self.leader = self.history.leaders[-1]
        if not self.leader.serves:
            world.after(0.5, self._poll)
            return
        mode = chance.choice(tuple(AcquireMode))
        acquired = self.leader.fetch(self.name, chance.choice((1, 3, 10)), mode)
        if not acquired:
            world.after(0.3, self._poll)
            return
        span = 0.05 if self.is_diligent else chance.choice((0.01, 0.2, 1.0, 4.0, 7.0))
        world.after(span, lambda: self._finish(self.leader, acquired))

    def _finish(self, leader: Leader, acquired: tuple[AcquiredRange, ...], is_renewed: bool = False) -> None:
        world, chance = self.history.world, self.history.world.chance
        if not self.alive:
            return
        if not leader.serves:
            world.after(0.1, self._poll)
            return
        if not self.is_diligent and not is_renewed and chance.random() < 0.2:
            self._renew(leader, acquired)
            return
        types = {
            offset: self._draw_type() for each in acquired for offset in range(each.first_offset, each.last_offset + 1)
        }
        batches = [
            ShareAcknowledgementBatch(*each[:2], [types[offset] for offset in range(each[0], each[1] + 1)])
            for each in acquired
        ]
        if len(set(types.values())) == 1:
            batches = [ShareAcknowledgementBatch(*each[:2], [types[each[0]]]) for each in acquired]
        self.history.model.requested.update(offset for offset, kind in types.items() if kind in SETTLING)
        # An acknowledgement after the lock has expired may be ignored without an error, as in Kafka: it promises nothing.
        held = {offset: kind for offset, kind in types.items() if leader.model.has_lock(self.name, offset, world.now)}
        leader.acknowledge(self.name, batches, lambda error: self._answered(leader, held, error))

    def _draw_type(self) -> int:
        if self.is_diligent:
            return AcknowledgeType.ACCEPT
        return self.history.world.chance.choices((1, 2, 3, 0), (10, 5, 1.5, 0.5))[0]

    def _answered(self, leader: Leader, types: dict[int, int], error: ErrorCode) -> None:
        if not error:
            self.history.model.settled(leader.model, types)
            leader.model.unlock(self.name, types)
        self.history.world.after(0.01, self._poll)

    def _renew(self, leader: Leader, acquired: tuple[AcquiredRange, ...]) -> None:
        world, model = self.history.world, self.history.model
        everything = [offset for each in acquired for offset in range(each.first_offset, each.last_offset + 1)]
        offsets = [offset for offset in everything if leader.model.has_lock(self.name, offset, world.now)]

        def answered(error: ErrorCode) -> None:
            if error:
                world.after(0.01, self._poll)
                return
            model.renewed(leader.model, self.name, offsets, world.now)
            world.after(world.chance.choice((0.5, 4.0)), lambda: self._finish(leader, acquired, is_renewed=True))

        batches = [ShareAcknowledgementBatch(*each[:2], [AcknowledgeType.RENEW]) for each in acquired]
        leader.acknowledge(self.name, batches, answered)


class ShareHistory:
    """A partition that a share group reads, from its first record to the last."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        chance = world.chance
        self.limits = ShareLimits(
            chance.choice((5, 20, 1000)), chance.choice((2, 3, 5)), LOCK_DURATION, chance.random() < 0.5
        )
        self.model = ShareModel(LOCK_DURATION, self.limits.max_delivery_count)
        self.coordinator = Coordinator(world)
        self.log_start = 0
        self.batches: list[ClosedOffsetRange] = []
        self.aborted: list[ClosedOffsetRange] = []
        self.members: list[Member] = []
        self.leaders = [Leader(self, 1)]
        self.coordinator.lost = chance.choice((0.0, 0.1, 0.3))
        self.coordinator.late = chance.choice((0.0, 1.0))

    @property
    def log_end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def transcript(self) -> str:
        return self.world.transcript()

    def run(self) -> None:
        """Trouble, then quiet, in which one diligent member reads everything that is left."""
        world, chance = self.world, self.world.chance
        end = world.now + chance.choice((20.0, 60.0))
        self._produce()
        while world.now < end:
            world.run_until(world.now + chance.expovariate(1.0))
            self._befall()
        self._calm_down()
        deadline = world.now + PATIENCE
        while world.now < deadline and not self._is_drained():
            world.run_until(world.now + 5.0)
        partition = self.leaders[-1].partition
        assert partition is not None
        assert self._is_drained(), f"the window leaks: {partition.start_offset} of {self.log_end}"
        aborted = {offset for each in self.aborted for offset in range(each[0], each[1] + 1)}
        live = (offset for each in self.batches for offset in range(each[0], each[1] + 1))
        # Records that were deleted from the log may never have been delivered.
        self.model.check_end(
            (each for each in live if each >= self.log_start and each not in aborted), self.limits.has_dead_letter_queue
        )

    def read(self, offset: int) -> FetchedRecords | None:
        """Return up to four batches of the log from `offset` on."""
        offset = max(offset, self.log_start)
        found = tuple(each for each in self.batches if each.last_offset >= offset)[:4]
        aborted = tuple(each for each in self.aborted if each in found)
        return FetchedRecords(offset, found, aborted) if found else None

    def _is_drained(self) -> bool:
        partition = self.leaders[-1].partition
        return partition is not None and partition.start_offset == self.log_end

    def _calm_down(self) -> None:
        for member in self.members:
            member.alive = False
        self.coordinator.lost = 0.0
        if not self.coordinator.is_up:
            self.coordinator.restart()
        if not self.leaders[-1].alive:
            self._elect()
        self.members.append(Member(self, "diligent", is_diligent=True))

    def _befall(self) -> None:
        chance = self.world.chance
        happenings: dict[Callable[[], None], float] = {
            self._produce: 4,
            self._join: 3,
            self._leave: 1,
            self._elect: 0.7,
            self._crash_leader: 0.4,
            self._crash_coordinator: 0.5,
            self._trim: 0.3,
            self._write_cold_snapshots: 0.3,
        }
        chance.choices(list(happenings), list(happenings.values()))[0]()

    def _produce(self) -> None:
        chance = self.world.chance
        for _ in range(chance.randint(1, 4)):
            # Compaction leaves offsets without a record.
            first = self.log_end + (chance.randint(1, 5) if chance.random() < 0.1 else 0)
            self.batches.append(ClosedOffsetRange(first, first + chance.choice((0, 0, 3, 7))))
            if chance.random() < 0.1:
                self.aborted.append(self.batches[-1])

    def _join(self) -> None:
        if sum(member.alive for member in self.members) < 4:
            self.members.append(Member(self, f"m{len(self.members)}"))

    def _leave(self) -> None:
        living = [member for member in self.members if member.alive]
        if not living:
            return
        member = self.world.chance.choice(living)
        member.alive = False
        # Its session is closed, or its locks expire.
        if self.world.likely(0.5) and member.leader.serves:
            member.leader.close(member.name)

    def _elect(self) -> None:
        """Another leader, while the previous one does not know it yet."""
        before = self.leaders[-1]
        self.leaders.append(Leader(self, before.epoch + 1))
        self.world.say("controller", "elects leader", before.epoch + 1)

    def _crash_leader(self) -> None:
        self.leaders[-1].alive = False
        self._elect()

    def _crash_coordinator(self) -> None:
        if self.coordinator.is_up:
            self.coordinator.is_up = False
            self.world.after(self.world.chance.choice((0.1, 3.0, 8.0)), self.coordinator.restart)

    def _trim(self) -> None:
        partition = self.leaders[-1].partition
        if partition is None or not self.batches:
            return
        self.log_start = max(self.log_start, min(partition.start_offset + 2, self.log_end))
        partition.move_log_start(self.log_start)

    def _write_cold_snapshots(self) -> None:
        if self.coordinator.is_up:
            wall_ms = self.world.wall_ms()
            self.coordinator.ask(ColdSnapshotsDue(1, wall_ms - 5_000, wall_ms))
