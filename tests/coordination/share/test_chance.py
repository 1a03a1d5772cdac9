"""A SharePartition against a naive one with one entry for each offset, under random requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
from ottla.coordination.share.record_state import RecordState
from ottla.coordination.share.share_partition import SharePartition
from ottla.coordination.share.state_batches import combine_state_batches
from ottla.errors import ErrorCode

LIMITS = ShareLimits(max_in_flight_records=30, max_delivery_count=3, lock_duration=10.0, has_dead_letter_queue=True)
MEMBERS = "ab"
NAMES = st.sampled_from(MEMBERS)

fetches = st.tuples(
    st.just("fetch"), NAMES, st.integers(1, 12), st.integers(1, 6), st.sampled_from(AcquireMode), st.booleans()
)
acknowledgements = st.tuples(
    st.just("ack"), NAMES, st.integers(0, 3), st.lists(st.integers(0, 4), min_size=1, max_size=8)
)
others = st.tuples(st.sampled_from(["close", "saved", "failed", "time", "trim", "copied", "restart"]), NAMES)
steps = st.lists(st.one_of(fetches, acknowledgements, acknowledgements, others), max_size=60)


class Drawn:
    """A partition, the share coordinator's state of it, and the locks that members believe to have."""

    def __init__(self) -> None:
        self.partition = SharePartition(PersistedState(0, 0), 1, LIMITS)
        self.now = 0.0
        self.ticket = 0
        self.waiting: list[Effects] = []
        self.letters: list[tuple[int, int]] = []
        self.stored = PersistedState(0, 0)
        self.pending: dict[int, dict[int, int]] = {}
        """Ticket → the acknowledgement of each offset."""
        self.finished: dict[int, int] = {}
        """Offset → the acknowledgement that was confirmed: ACCEPT or REJECT."""
        self.outstanding: StateWrite | None = None

    def do(self, effects: Effects) -> None:
        if effects.write is not None:
            assert self.outstanding is None, "one write at a time"
            self.outstanding = effects.write
        self.letters += [(each.first_offset, each.last_offset) for each in effects.dead_letters]
        for completion in effects.completions:
            for offset, kind in self.pending.pop(completion.ticket, {}).items():
                if not completion.error and kind in (1, 3):
                    self.finished[offset] = kind

    def locks(self) -> dict[int, tuple[str, int]]:
        return {
            offset: (member, batch.delivery_count)
            for batch, member in self.partition.ranges
            if member
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }

    def fetch(self, member: str, size: int, limit: int, mode: AcquireMode, has_hole: bool) -> None:
        before = self.locks()
        fetch_offset = self.partition.next_fetch_offset
        first = fetch_offset + 2 * has_hole
        batches = tuple(ClosedOffsetRange(at, at + 2) for at in range(first, first + size, 3))
        acquired = self.partition.acquire(member, FetchedRecords(fetch_offset, batches), limit, self.now, mode)
        for each in acquired:
            self.assert_acquired(each, member, before)
        if mode == AcquireMode.RECORD_LIMIT:
            assert sum(each.last_offset - each.first_offset + 1 for each in acquired) <= limit

    def assert_acquired(self, acquired: AcquiredRange, member: str, before: dict[int, tuple[str, int]]) -> None:
        now = self.locks()
        for offset in range(acquired.first_offset, acquired.last_offset + 1):
            assert offset not in before, "a record has one member at a time"
            assert now[offset] == (member, acquired.delivery_count)
            assert offset not in self.finished, "a finished record is not delivered"
            assert 1 <= acquired.delivery_count <= LIMITS.max_delivery_count

    def acknowledge(self, member: str, skip: int, types: list[int]) -> None:
        mine = sorted(offset for offset, (who, _) in self.locks().items() if who == member)[skip : skip + len(types)]
        if not mine:
            return
        kinds = dict(zip(mine, types, strict=False))
        self.ticket += 1
        self.pending[self.ticket] = kinds
        batches = [ShareAcknowledgementBatch(offset, offset, [kind]) for offset, kind in kinds.items()]
        self.do(self.partition.acknowledge(self.ticket, member, batches, self.now))

    def act(self, verb: str, member: str) -> None:
        match verb:
            case "close":
                self.ticket += 1
                self.do(self.partition.release_member(self.ticket, member))
                assert member not in {who for who, _ in self.locks().values()}
            case "saved" | "failed" if self.outstanding is not None:
                self.complete(verb == "saved")
            case "time":
                self.now += 6.0
                self.do(self.partition.expire_locks(self.now))
            case "trim":
                self.partition.move_log_start(self.partition.start_offset + 2)
            case "copied" if self.letters:
                self.do(self.partition.complete_dead_letters(*self.letters.pop(0)))
            case "restart":
                self.restart()

    def complete(self, is_saved: bool) -> None:
        write = self.outstanding
        assert write is not None
        self.outstanding = None
        if is_saved:
            merged = combine_state_batches(self.stored.batches, write.batches, write.start_offset)
            self.stored = PersistedState(0, write.start_offset, merged)
        self.do(self.partition.complete_write(ErrorCode.NONE if is_saved else ErrorCode.NOT_COORDINATOR, self.now))

    def restart(self) -> None:
        self.pending.clear()
        self.letters.clear()
        self.outstanding = None
        self.partition = SharePartition(self.stored, 1, LIMITS)
        self.do(Effects(dead_letters=self.partition.resume_dead_letters()))

    def drain(self) -> None:
        """Let every write succeed, copy every dead letter, and let the locks expire until no record is left."""
        for _ in range(400):
            while self.outstanding is not None or self.letters:
                self.act("saved" if self.outstanding is not None else "copied", "a")
                self.partition.check()
            if self.partition.next_fetch_offset < self.partition.end_offset:
                end = self.partition.end_offset - 1
                first = self.partition.next_fetch_offset
                self.partition.acquire("a", FetchedRecords(first, (ClosedOffsetRange(first, end),)), 9, self.now)
            self.now += 20.0
            self.do(self.partition.expire_locks(self.now))
            if self.partition.in_flight_count == 0:
                return
        raise AssertionError("the window leaks")


@given(steps)
def test_no_record_is_delivered_twice_at_once_or_after_it_was_finished_and_none_stays_forever(
    drawn: list[tuple[object, ...]],
) -> None:
    story = Drawn()
    for verb, *words in drawn:
        if verb == "fetch":
            story.fetch(*words)  # type: ignore[arg-type]
        elif verb == "ack":
            story.acknowledge(*words)  # type: ignore[arg-type]
        else:
            story.act(str(verb), *words)  # type: ignore[arg-type]
        story.partition.check()
        total = sum(
            batch.last_offset - batch.first_offset + 1
            for batch, _ in story.partition.ranges
            if RecordState(batch.state).is_final
        )
        assert story.partition.delivery_complete_count == total
    story.drain()
