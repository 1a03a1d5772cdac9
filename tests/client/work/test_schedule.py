"""The schedule of a worker: random histories, and transcripts of single rules."""

from __future__ import annotations

from collections import defaultdict
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.work.state.backoff import Backoff
from ottla.client.work.state.finished_offsets import decode_finished, encode_finished
from ottla.client.work.state.schedule import ORDERS, Job, JobState, Order, Schedule
from ottla.client.work.state.work_status import WorkStatus, add_status, decode_status, without_status
from ottla.errors import ConfigError
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOOM = ValueError("boom")


class Record(msgspec.Struct, frozen=True):
    """A record as the schedule sees it."""

    offset: int
    raw_key: bytes | None = None
    size: int = 1
    leader_epoch: int = 0
    timestamp: int = 0

    @property
    def serialized_key_size(self) -> int:
        return -1 if self.raw_key is None else len(self.raw_key)

    @property
    def serialized_value_size(self) -> int:
        return self.size


def records(*keys: bytes | None, start: int = 0) -> list[Record]:
    return [Record(start + index, key) for index, key in enumerate(keys)]


def schedule_of(
    *keys: bytes | None, order: Order = "key", concurrency: int = 10, retries: int = 1, **settings: Any
) -> Schedule:
    """A schedule with the records of one partition."""
    backoff = Backoff(retries, base=1.0, cap=60.0, jitter=0.0)
    schedule = Schedule(order, concurrency, backoff, **settings)
    schedule.assign(P0)
    schedule.add(P0, records(*keys), len(keys))
    return schedule


def take_all(schedule: Schedule, now: float = 0.0) -> list[Job]:
    found = []
    while (job := schedule.take(now)) is not None:
        found.append(job)
    return found


def offsets(jobs: list[Job]) -> list[int]:
    return [job.record.offset for job in jobs]


def test_only_the_first_record_of_each_key_starts() -> None:
    schedule = schedule_of(b"a", b"a", b"b", b"a", None, None)
    assert offsets(take_all(schedule)) == [0, 2, 4, 5]


def test_with_the_order_of_partitions_one_record_of_each_starts() -> None:
    schedule = schedule_of(b"a", b"b", order="partition")
    schedule.assign(P1)
    schedule.add(P1, records(b"a", b"b"), 2)
    assert [(job.tp, job.record.offset) for job in take_all(schedule)] == [(P0, 0), (P1, 0)]


def test_without_order_all_start_up_to_the_concurrency() -> None:
    schedule = schedule_of(*[b"a"] * 9, order="none", concurrency=4)
    assert offsets(take_all(schedule)) == [0, 1, 2, 3]


def test_the_next_record_of_a_key_starts_when_the_first_is_finished() -> None:
    schedule = schedule_of(b"a", b"a")
    [first] = take_all(schedule)
    schedule.finish(first)
    assert offsets(take_all(schedule)) == [1]


def test_the_same_key_in_another_partition_is_another_key() -> None:
    schedule = schedule_of(b"a")
    schedule.assign(P1)
    schedule.add(P1, records(b"a"), 1)
    assert len(take_all(schedule)) == 2


def test_a_failed_record_is_due_after_its_delay_and_blocks_only_its_key() -> None:
    schedule = schedule_of(b"a", b"a", b"b", b"b")
    a, b = take_all(schedule)
    assert schedule.fail(a, BOOM, 10.0, 0.5) == 1.0
    schedule.finish(b)
    assert offsets(take_all(schedule, 10.9)) == [3]
    assert schedule.next_retry() == 11.0
    assert offsets(take_all(schedule, 11.0)) == [0]
    assert schedule.next_retry() == FOREVER


def test_a_record_is_given_up_after_its_retries_and_blocks_its_key_until_it_is_finished() -> None:
    schedule = schedule_of(b"a", b"a", retries=1)
    [job] = take_all(schedule)
    schedule.fail(job, BOOM, 0.0, 0.0)
    [job] = take_all(schedule, 1.0)
    assert schedule.fail(job, BOOM, 1.0, 0.0) is None
    assert (job.attempts, job.state) == (2, JobState.GIVEN_UP)
    assert take_all(schedule, 99.0) == []
    schedule.finish(job)
    assert offsets(take_all(schedule)) == [1]


def test_some_exceptions_are_not_retried() -> None:
    schedule = Schedule("key", 1, Backoff(5, give_up_on=(ValueError,)))
    schedule.assign(P0)
    schedule.add(P0, records(b"a"), 1)
    [job] = take_all(schedule)
    assert schedule.fail(job, BOOM, 0.0, 0.0) is None


def test_an_unreadable_record_keeps_its_place_and_is_given_up_at_once() -> None:
    schedule = schedule_of(b"a")
    schedule.add(P0, [Record(1, b"a")], 2, error=BOOM)
    [first] = take_all(schedule)
    schedule.finish(first)
    [bad] = take_all(schedule)
    assert not bad.is_readable
    assert schedule.fail(bad, BOOM, 0.0, 0.0) is None


def test_the_lowest_unfinished_offset_is_committed_with_the_finished_ones_above_it() -> None:
    schedule = schedule_of(*[None] * 6)
    jobs = take_all(schedule)
    for index in (0, 2, 3, 5):
        schedule.finish(jobs[index])
    [commit] = schedule.commits().values()
    assert commit.offset == 1
    assert decode_finished(1, commit.metadata) == [(2, 4), (5, 6)]


def test_a_commit_is_due_only_after_a_change() -> None:
    schedule = schedule_of(None, None)
    first, second = take_all(schedule)
    schedule.finish(first)
    schedule.mark_committed(schedule.commits())
    assert schedule.commits() == {}
    schedule.mark_uncommitted([P0])
    assert schedule.commits()[P0].offset == 1
    schedule.finish(second)
    assert schedule.commits()[P0].offset == 2


def test_the_next_owner_skips_what_was_finished() -> None:
    schedule = schedule_of(*[None] * 6)
    jobs = take_all(schedule)
    for index in (1, 2, 4):
        schedule.finish(jobs[index])
    [commit] = schedule.commits().values()

    heir = Schedule("key", 10, Backoff())
    heir.assign(P0, commit, decode_finished(commit.offset, commit.metadata))
    heir.add(P0, records(*[None] * 2), 2)

    assert heir.commits() == {}  # nothing has changed, although only two records were read again
    heir.add(P0, records(*[None] * 4, start=2), 6)
    assert offsets(take_all(heir)) == [0, 3, 5]


def test_offsets_without_records_count_as_finished() -> None:
    schedule = Schedule("key", 10, Backoff())
    schedule.assign(P0)
    schedule.add(P0, [Record(5), Record(9)], 12)
    first, second = take_all(schedule)
    schedule.finish(first)
    assert schedule.commits()[P0].offset == 9
    schedule.finish(second)
    assert schedule.commits()[P0].offset == 12


def test_jobs_of_a_removed_partition_do_not_start_and_their_results_have_no_effect() -> None:
    schedule = schedule_of(None, None, None, concurrency=2)
    running = take_all(schedule)
    assert schedule.remove([P0]) == running
    schedule.assign(P0)
    schedule.add(P0, records(None, None, None), 3)
    for job in running:
        schedule.finish(job)
    schedule.check()
    assert schedule.commits()[P0].offset == 0
    assert offsets(take_all(schedule)) == [0, 1]


def test_a_held_partition_starts_nothing_and_others_do() -> None:
    schedule = schedule_of(None, None)
    schedule.assign(P1)
    schedule.add(P1, records(None), 1)
    schedule.hold([P0])
    assert [job.tp for job in take_all(schedule)] == [P1]


def test_a_recreated_partition_starts_again_without_its_earlier_jobs() -> None:
    schedule = schedule_of(b"a", b"a", b"a")
    [job] = take_all(schedule)
    schedule.add(P0, records(b"a"), 1)
    schedule.check()
    schedule.finish(job)
    assert schedule.commits()[P0].offset == 0
    assert offsets(take_all(schedule)) == [0]


def test_a_released_job_is_not_finished() -> None:
    schedule = schedule_of(None)
    [job] = take_all(schedule)
    schedule.release(job)
    schedule.check()
    assert (schedule.commits()[P0].offset, job.attempts) == (0, 0)


def test_a_partition_with_many_unfinished_records_is_paused_until_half_of_them_are_finished() -> None:
    schedule = schedule_of(*[None] * 8, concurrency=4, buffer_records=8)
    assert schedule.update_pauses() == ([P0], [])
    could_resume = []
    for _ in range(5):
        schedule.finish(take_all(schedule)[0])
        for job in schedule.running():
            schedule.release(job)
        could_resume.append(schedule.has_resumable)
    assert could_resume == [False, False, False, False, True]
    assert schedule.update_pauses() == ([], [P0])


def test_large_records_pause_all_partitions() -> None:
    schedule = schedule_of(None, buffer_bytes=100)
    schedule.assign(P1)
    schedule.add(P1, [Record(0, size=100)], 1)
    assert set(schedule.update_pauses()[0]) == {P0, P1}
    _, large = take_all(schedule)
    schedule.finish(large)
    assert set(schedule.update_pauses()[1]) == {P0, P1}


def test_delays_double_up_to_the_cap_and_vary_by_the_jitter() -> None:
    backoff = Backoff(5, base=1.0, cap=5.0, jitter=0.5)
    assert [backoff.delay(attempts, 0.0) for attempts in (1, 2, 3, 4, 5000)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.delay(2, 1.0) == 1.0


@pytest.mark.parametrize(
    "wrong", [{"retries": -1}, {"retries": True}, {"base": 9.0, "cap": 1.0}, {"jitter": 2}, {"base": -1}]
)
def test_an_invalid_backoff_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        Backoff(**wrong)


# Random histories: any order of completion, failures, revocations and restarts.


class Model:
    """Plays a history, and checks the promises against what it has seen."""

    def __init__(self, seed: int, order: Order) -> None:
        self.random = Random(seed)
        self.order: Order = order
        self.now = 0.0
        self.retries = self.random.randrange(3)
        self.logs = {tp: self.make_log() for tp in (P0, P1)}
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.finished: dict[TopicPartition, set[int]] = defaultdict(set)
        """Offsets that were finished at least once."""
        self.running: list[Job] = []
        self.start()

    def make_log(self) -> list[Record]:
        offset, log = 0, []
        for _ in range(self.random.randrange(60)):
            offset += self.random.choice([1, 1, 1, 5])  # gaps are as compaction leaves them
            log.append(Record(offset, self.random.choice([None, b"a", b"b", b"c"]), self.random.randrange(50)))
        return log

    def start(self) -> None:
        """A process starts, possibly after another one was killed."""
        self.running.clear()
        self.calls: dict[tuple[TopicPartition, int], int] = defaultdict(int)
        self.done: set[tuple[TopicPartition, int]] = set()
        limit = self.random.choice([0, 20, 4096])
        self.schedule = Schedule(
            self.order,
            self.random.randrange(1, 6),
            Backoff(self.retries, base=1.0, cap=4.0),
            buffer_records=self.random.choice([5, 1000]),
            buffer_bytes=self.random.choice([50, 2**20]),
            max_metadata_bytes=limit,
        )
        self.position: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        for tp in self.logs:
            self.assign(tp)

    def assign(self, tp: TopicPartition) -> None:
        commit = self.committed.get(tp)
        runs = [] if commit is None else decode_finished(commit.offset, commit.metadata)
        skipped = {offset for start, stop in runs for offset in range(start, stop)}
        assert skipped & {each.offset for each in self.logs[tp]} <= self.finished[tp]
        self.schedule.assign(tp, commit, runs)
        self.position[tp] = 0 if commit is None else commit.offset
        self.paused.discard(tp)

    def step(self) -> None:
        moves = [self.poll, self.poll, self.take, self.take, self.take, self.end_call, self.end_call, self.end_call]
        moves += [self.commit, self.update_pauses, self.pass_time]
        if self.random.random() < 0.02:
            moves = [self.start, self.revoke]
        self.random.choice(moves)()
        self.schedule.check()
        self.check_lanes()

    def poll(self) -> None:
        tp = self.random.choice(list(self.logs))
        if tp in self.paused:
            return
        ahead = [each for each in self.logs[tp] if each.offset >= self.position[tp]][: self.random.randrange(12)]
        if ahead:
            self.position[tp] = ahead[-1].offset + 1
            self.schedule.add(tp, ahead, self.position[tp])

    def take(self) -> None:
        job = self.schedule.take(self.now)
        if job is None:
            return
        place = (job.tp, job.record.offset)
        assert place not in self.done, "started again after it was finished"
        self.calls[place] += 1
        assert self.calls[place] <= 1 + self.retries
        self.running.append(job)

    def end_call(self) -> None:
        if not self.running:
            return
        job = self.running.pop(self.random.randrange(len(self.running)))
        if job.state is JobState.GIVEN_UP or self.random.random() < 0.7:
            self.finish(job)
        elif self.schedule.fail(job, BOOM, self.now, self.random.random()) is None:
            self.running.append(job)  # its dead letter is sent

    def finish(self, job: Job) -> None:
        if not job.is_dropped:
            self.finished[job.tp].add(job.record.offset)
            self.done.add((job.tp, job.record.offset))
        self.schedule.finish(job)

    def commit(self) -> None:
        commits = self.schedule.commits()
        for tp, commit in commits.items():
            below = {each.offset for each in self.logs[tp] if each.offset < commit.offset}
            assert below <= self.finished[tp], "committed beyond an unfinished record"
        if self.random.random() < 0.9:
            self.committed |= commits
            self.schedule.mark_committed(commits)

    def update_pauses(self) -> None:
        to_pause, to_resume = self.schedule.update_pauses()
        assert not set(to_pause) & self.paused
        assert set(to_resume) <= self.paused
        self.paused = (self.paused | set(to_pause)) - set(to_resume)

    def pass_time(self) -> None:
        self.now += self.random.choice([0.1, 1.0, 5.0])

    def revoke(self) -> None:
        tp = self.random.choice(list(self.logs))
        self.schedule.hold([tp])
        self.commit()
        self.schedule.remove([tp])
        self.calls = defaultdict(int, {place: n for place, n in self.calls.items() if place[0] != tp})
        self.done = {place for place in self.done if place[0] != tp}
        self.assign(tp)

    def check_lanes(self) -> None:
        """No two records that keep their order are in progress together."""
        lanes = [job.lane for job in self.schedule.running() if job.lane is not None]
        assert len(lanes) == len(set(lanes))

    def finish_all(self) -> None:
        """Go on without failures until all is finished."""
        for _ in range(5000):
            self.pass_time()
            self.update_pauses()
            self.poll()
            self.take()
            for job in list(self.running):
                self.running.remove(job)
                self.finish(job)
            if not self.schedule.unfinished_count and all(
                self.position[tp] > log[-1].offset for tp, log in self.logs.items() if log
            ):
                return
        raise AssertionError("records are left over")


@pytest.mark.parametrize("order", ORDERS)
@given(seed=st.integers(0, 2**32))
def test_histories_keep_order_lose_nothing_and_never_commit_beyond_an_unfinished_record(
    order: Order, seed: int
) -> None:
    model = Model(seed, order)
    for _ in range(400):
        model.step()
    model.finish_all()
    for tp, log in model.logs.items():
        assert {each.offset for each in log} == model.finished[tp]
        if log:
            commit = model.schedule.commits().get(tp) or model.committed[tp]
            assert commit.offset == log[-1].offset + 1
    model.schedule.check()


@given(seed=st.integers(0, 2**32))
def test_records_of_a_key_are_finished_in_the_order_of_their_offsets(seed: int) -> None:
    random = Random(seed)
    keys = [random.choice([b"a", b"b", b"c"]) for _ in range(50)]
    schedule = schedule_of(*keys, concurrency=random.randrange(1, 8), retries=100)
    finished: dict[bytes, list[int]] = defaultdict(list)
    running: list[Job] = []
    now = 0.0
    while schedule.unfinished_count:
        now += 1.0
        running += take_all(schedule, now)
        if not running:
            continue
        job = running.pop(random.randrange(len(running)))
        if random.random() < 0.3:
            schedule.fail(job, BOOM, now, random.random())
        else:
            finished[job.record.raw_key].append(job.record.offset)
            schedule.finish(job)
    assert all(found == sorted(found) for found in finished.values())
    assert sum(map(len, finished.values())) == 50


def test_a_record_that_a_share_group_delivers_again_keeps_its_job() -> None:
    schedule = Schedule("none", 10, Backoff())
    [job] = schedule.add_acquired(P0, [Record(7)])
    [running] = take_all(schedule)
    assert schedule.add_acquired(P0, [Record(5), Record(7)])[1] is job is running
    schedule.check()
    assert offsets(take_all(schedule)) == [5]


def status_of(schedule: Schedule, now: float) -> WorkStatus | None:
    """Commit, and return the status of the commit; None if there is none to send."""
    commits = schedule.commits(now)
    schedule.mark_committed(commits, now)
    return decode_status(commits[P0].metadata) if commits else None


def test_a_commit_has_the_status_of_the_partition() -> None:
    schedule = schedule_of(concurrency=3)
    schedule.add(
        P0, [Record(offset, key, timestamp=1000 + offset) for offset, key in enumerate([b"a", b"b", b"a", b"c"])], 4
    )
    first, second, _ = take_all(schedule)
    assert status_of(schedule, 10.0) == WorkStatus(running=3, waiting=1, oldest=1000)
    schedule.fail(first, BOOM, 10.0, 0.5)
    schedule.finish(second)
    assert status_of(schedule, 10.1) == WorkStatus(running=1, waiting=1, retrying=1, oldest=1000)


def test_a_change_of_the_status_alone_is_committed_once_a_second() -> None:
    schedule = schedule_of(b"a", b"b", retries=1)
    first, _ = take_all(schedule)
    assert status_of(schedule, 10.0) == WorkStatus(running=2)
    schedule.fail(first, BOOM, 10.0, 0.5)
    assert schedule.commits(10.9) == {}
    assert status_of(schedule, 11.0) == WorkStatus(running=1, retrying=1)
    assert schedule.commits(99.0) == {}  # nothing has changed


def test_dead_letters_are_counted_from_owner_to_owner() -> None:
    schedule = schedule_of(b"a", b"b", retries=0)
    for job in take_all(schedule):
        schedule.fail(job, BOOM, 0.0, 0.5)
        schedule.finish(job)
    [commit] = schedule.commits(10.0).values()
    assert decode_status(commit.metadata) == WorkStatus(dead=2)
    heir = schedule_of(retries=0)
    heir.assign(P0, commit)
    heir.add(P0, [Record(2)], 3)
    [job] = take_all(heir)
    heir.fail(job, BOOM, 0.0, 0.5)
    heir.finish(job)
    assert status_of(heir, 20.0) == WorkStatus(dead=3)


def test_without_room_for_the_status_the_finished_offsets_are_committed() -> None:
    schedule = schedule_of(None, None, None, max_metadata_bytes=100)
    job = take_all(schedule)[1]
    schedule.finish(job)
    [commit] = schedule.commits(10.0).values()
    assert decode_finished(0, commit.metadata) == [(1, 2)]
    assert decode_status(commit.metadata) is None


def test_offsets_without_records_are_committed_when_the_consumer_is_past_them() -> None:
    schedule = schedule_of(b"a")
    schedule.advance(P0, 5)
    assert schedule.commits()[P0].offset == 0  # the first record is unfinished
    schedule.finish(take_all(schedule)[0])
    assert schedule.commits()[P0].offset == 5
    schedule.advance(P0, 3)
    assert schedule.commits()[P0].offset == 5
    schedule.assign(P1, OffsetAndMetadata(7))
    schedule.advance(P1, 7)
    assert P1 not in schedule.commits()
    schedule.advance(P1, 9)
    assert schedule.commits()[P1].offset == 9


@given(st.builds(WorkStatus, *[st.integers(0, 2**63 - 1)] * 5), st.booleans())
def test_a_status_is_read_from_the_metadata_next_to_finished_offsets(status: WorkStatus, has_finished: bool) -> None:
    finished = encode_finished(5, [(7, 9)]) if has_finished else ""
    metadata = add_status(finished, status)
    assert decode_finished(5, metadata) == ([(7, 9)] if has_finished else [])
    assert (decode_status(metadata) or WorkStatus()) == status
    assert without_status(metadata) == finished


@pytest.mark.parametrize("text", ["", "by hand", "other;running=1", "ottla.work/1:", "ottla.work/1:;running", "ottla.work/1:;running=-1",
                                  "ottla.work/1:;running=99999999999999999999", "ottla.work/1:;later=1"])  # fmt: skip
def test_other_metadata_has_no_status(text: str) -> None:
    assert decode_status(text) is None
