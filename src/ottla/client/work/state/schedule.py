"""Decide which record may start now, what is finished, which offset to commit, and when a failed record is due again. Pure.

A record becomes a job. Jobs that must keep their order share a lane: the records of a key, or of a partition. Only the
first job of a lane may run, and it stays first until it is finished, also while it waits for a retry:

    WAITING ──first of its lane──► READY ──take──► RUNNING ──succeed──► (finished)
                                     ▲               │ fail
                                     │               ├──► RETRYING ──due──► READY
                                     │               └──► GIVEN_UP ──finish──► (finished)     its dead letter is sent
                                     └──release──────┘

A partition remembers its unfinished offsets in ascending order. Everything below the lowest one is finished and may be
committed; finished offsets above it are written into the metadata of the commit (`finished_offsets`), and skipped by the
next owner of the partition. The offset of an unfinished record is never committed, and neither is one above it.

Memory is bounded by pausing: a partition with `buffer_records` divided by the number of partitions unfinished records, or
all of them if `buffer_bytes` are unfinished, until half of that is left.

Time and randomness are arguments. One thread at a time may use a schedule.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import Enum
from heapq import heappop, heappush
from itertools import count
from typing import Any, Literal, Protocol

from ottla.client.work.state.backoff import Backoff
from ottla.client.work.state.finished_offsets import METADATA_BYTES, Run, encode_finished
from ottla.client.work.state.work_status import WorkStatus, add_status, decode_status, encode_status, without_status
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition

Order = Literal["key", "partition", "none"]
ORDERS: tuple[Order, ...] = ("key", "partition", "none")
STATUS_LEAST_BYTES = 512
"""If a commit's metadata may have less, it has no status: finished offsets need the space."""
STATUS_SECONDS = 1.0
"""The minimum time between commits of a partition of which only the status has changed."""


class JobState(Enum):
    """The state of a job; see above."""

    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    RETRYING = "retrying"
    GIVEN_UP = "given up"
    FINISHED = "finished"


class WorkRecord(Protocol):
    """The parts of a record that the schedule needs."""

    @property
    def offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def raw_key(self) -> bytes | None: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def serialized_key_size(self) -> int: ...
    @property
    def serialized_value_size(self) -> int: ...


class Job:
    """One record and the state of its processing. Only the schedule changes it."""

    __slots__ = ("attempts", "error", "is_dropped", "is_readable", "lane", "record", "size_bytes", "state", "tp")

    def __init__(self, tp: TopicPartition, record: Any, lane: Hashable | None, attempts: int) -> None:
        self.tp = tp
        self.record = record
        self.lane = lane
        """The records that keep their order with this one; None if it has no order."""
        self.attempts = attempts
        """The number of calls so far, the running one included."""
        self.error: BaseException | None = None
        """The last error."""
        self.is_readable = True
        """False if the record could not be deserialized: it is given up without a call."""
        self.state = JobState.WAITING
        self.is_dropped = False
        """True if the partition was revoked: the result has no effect."""
        self.size_bytes = max(record.serialized_key_size, 0) + max(record.serialized_value_size, 0)

    @property
    def is_running(self) -> bool:
        """True while the job occupies a call: its function runs, or its dead letter is sent."""
        return self.state in (JobState.RUNNING, JobState.GIVEN_UP)

    def __repr__(self) -> str:
        return f"Job({self.tp}@{self.record.offset}, {self.state.value}, attempts={self.attempts})"


class PartitionProgress:
    """The unfinished and the finished offsets of one partition."""

    __slots__ = (
        "_leader_epoch",
        "committed",
        "committed_at",
        "dead_letters",
        "finished",
        "is_held",
        "is_paused",
        "jobs",
        "position",
    )

    def __init__(self, committed: OffsetAndMetadata | None, finished: list[Run]) -> None:
        self.jobs: dict[int, Job] = {}
        """The unfinished jobs by offset, in ascending order."""
        self.position: int | None = None
        """The offset after the last record that was added; None before the first."""
        self._leader_epoch = -1
        self.finished = finished
        """Runs of offsets that an earlier owner has finished and that are not read again yet, in ascending order."""
        self.committed = committed
        self.committed_at = 0.0
        """The time of the last commit."""
        earlier = None if committed is None else decode_status(committed.metadata)
        self.dead_letters = 0 if earlier is None else earlier.dead
        """The number of records that were given up since the group began."""
        self.is_paused = False
        self.is_held = False
        """True while the partition is being revoked: no job starts."""

    def is_finished(self, offset: int) -> bool:
        """Return True if an earlier owner has finished this offset."""
        index = bisect_right(self.finished, offset, key=lambda run: run[0]) - 1
        return index >= 0 and offset < self.finished[index][1]

    def advance(self, position: int, leader_epoch: int | None = None) -> None:
        """Move the position up, and forget what an earlier owner has finished below it."""
        self.position = position
        if leader_epoch is not None:
            self._leader_epoch = leader_epoch
        while self.finished and self.finished[0][1] <= position:
            del self.finished[0]

    def runs(self) -> Iterator[Run]:
        """Yield the runs of finished offsets above the lowest unfinished one, in ascending order."""
        assert self.position is not None
        start = None
        for offset in self.jobs:
            if start is not None and start < offset:
                yield start, offset
            start = offset + 1
        # A run of an earlier owner that the position has split continues the last one.
        for first, stop in self.finished:
            first = max(first, self.position)
            if start is not None and start < self.position:
                if first == self.position:
                    first = start
                else:
                    yield start, self.position
            start = None
            yield first, stop
        if start is not None and start < self.position:
            yield start, self.position

    def status(self) -> WorkStatus:
        """Return the numbers of unfinished jobs by state."""
        running = retrying = 0
        calls, retry = (JobState.RUNNING, JobState.GIVEN_UP), JobState.RETRYING
        for job in self.jobs.values():
            state = job.state
            if state in calls:
                running += 1
            elif state is retry:
                retrying += 1
        first = next(iter(self.jobs.values()), None)
        oldest = 0 if first is None else max(first.record.timestamp, 0)
        return WorkStatus(running, len(self.jobs) - running - retrying, retrying, self.dead_letters, oldest)

    def next_commit(self, max_metadata_bytes: int) -> OffsetAndMetadata | None:
        """Return what may be committed now; None before the first record."""
        if self.position is None:
            return None
        first = next(iter(self.jobs.values()), None)
        base, leader_epoch = self.position, self._leader_epoch
        if first is not None:
            base, leader_epoch = first.record.offset, first.record.leader_epoch
        if first is None and self.finished and self.finished[0][0] <= base:
            base = self.finished[0][1]
            runs: Iterable[Run] = self.finished[1:]
        else:
            runs = self.runs()
        metadata = encode_finished(base, runs, max_metadata_bytes) if max_metadata_bytes else ""
        return OffsetAndMetadata(base, metadata, leader_epoch)


class Schedule:
    """The jobs of one worker."""

    def __init__(
        self,
        order: Order,
        concurrency: int,
        backoff: Backoff,
        *,
        buffer_records: int = 1000,
        buffer_bytes: int = 2**26,
        max_metadata_bytes: int = METADATA_BYTES,
    ) -> None:
        self._order = order
        self._concurrency = concurrency
        self._backoff = backoff
        self._buffer_records = buffer_records
        self._buffer_bytes = buffer_bytes
        self.max_metadata_bytes = max_metadata_bytes
        """The maximum size of the metadata of a commit; 0 for none."""
        self._partitions: dict[TopicPartition, PartitionProgress] = {}
        self._lanes: dict[Hashable, deque[Job]] = {}
        self._ready: deque[Job] = deque()
        self._retries: list[tuple[float, int, Job]] = []
        self._numbers = count()
        self._running: dict[Job, None] = {}
        """The jobs that are running or given up, dropped ones included: each occupies one of `concurrency` calls."""
        self._unfinished_bytes = 0
        self._is_full = False

    @property
    def partitions(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return set(self._partitions)

    @property
    def unfinished_count(self) -> int:
        """The number of unfinished records."""
        return sum(len(each.jobs) for each in self._partitions.values())

    @property
    def room(self) -> int:
        """The number of jobs that may start now if there are records."""
        return self._concurrency - len(self._running)

    @property
    def ready_count(self) -> int:
        """The number of jobs that wait only for a call to end. May include dropped ones."""
        return len(self._ready)

    def running(self, partitions: Iterable[TopicPartition] | None = None) -> list[Job]:
        """Return the running and given up jobs, of these partitions or of all, without the dropped ones."""
        wanted = self._partitions.keys() if partitions is None else set(partitions)
        return [job for job in self._running if job.tp in wanted and not job.is_dropped]

    def advance(self, tp: TopicPartition, position: int) -> None:
        """Handle the consumer's position in a partition, which may be behind offsets without records.

        Such are the ends of transactions, and the records of aborted ones.
        """
        progress = self._partitions.get(tp)
        if progress is None:
            return
        reached = progress.position
        if reached is None:
            reached = 0 if progress.committed is None else progress.committed.offset
        if position > reached:
            progress.advance(position)

    def assign(
        self, tp: TopicPartition, committed: OffsetAndMetadata | None = None, finished: Sequence[Run] = ()
    ) -> None:
        """Add a partition, with its committed offset and the finished runs above it."""
        self.remove([tp])
        self._partitions[tp] = PartitionProgress(committed, list(finished))

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Start no more jobs of these partitions."""
        for tp in partitions:
            if tp in self._partitions:
                self._partitions[tp].is_held = True

    def remove(self, partitions: Iterable[TopicPartition]) -> list[Job]:
        """Forget these partitions. Return their running jobs, the results of which have no effect any more."""
        removed = [found for tp in partitions if (found := self._partitions.pop(tp, None)) is not None]
        dropped = [job for progress in removed for job in progress.jobs.values()]
        for job in dropped:
            self._drop(job)
        return [job for job in dropped if job in self._running]

    def add(
        self,
        tp: TopicPartition,
        records: Iterable[WorkRecord],
        next_offset: int,
        *,
        error: BaseException | None = None,
    ) -> None:
        """Add the records that were read from a partition, up to `next_offset`.

        Records that an earlier owner has finished are skipped. With `error` the records could not be deserialized: they
        are given up at their turn. If the offsets are below those read before, the partition was truncated or recreated, and
        its earlier jobs are dropped.
        """
        progress = self._partitions.get(tp)
        if progress is None:
            return  # revoked meanwhile
        for record in records:
            offset = record.offset
            if progress.position is not None and offset < progress.position:
                self._partitions[tp] = fresh = PartitionProgress(None, [])
                fresh.is_held, fresh.is_paused = progress.is_held, progress.is_paused
                for job in progress.jobs.values():
                    self._drop(job)
                progress = fresh
            if not progress.is_finished(offset):
                self._add_job(progress, self._make_job(tp, record, error))
            progress.advance(offset + 1, record.leader_epoch)
        if progress.position is None or next_offset > progress.position:
            progress.advance(next_offset)

    def add_acquired(
        self, tp: TopicPartition, records: Iterable[WorkRecord], *, error: BaseException | None = None
    ) -> list[Job]:
        """Add records that a share group has delivered, in any order, and return their jobs.

        A record that is delivered again while its job is unfinished keeps that job: its lock had expired.
        """
        progress = self._partitions.get(tp)
        if progress is None:
            progress = self._partitions[tp] = PartitionProgress(None, [])
        jobs = []
        for record in records:
            job = progress.jobs.get(record.offset)
            if job is None:
                job = self._make_job(tp, record, error)
                self._add_job(progress, job)
            jobs.append(job)
        return jobs

    def take(self, now: float) -> Job | None:
        """Return the next job to run, which is running from now on; None if none may start."""
        self._promote_retries(now)
        if len(self._running) >= self._concurrency:
            return None
        for _ in range(len(self._ready)):
            job = self._ready.popleft()
            if job.is_dropped:
                continue
            if self._partitions[job.tp].is_held:
                self._ready.append(job)
                continue
            job.state = JobState.RUNNING
            job.attempts += 1
            self._running[job] = None
            return job
        return None

    def finish(self, job: Job) -> None:
        """Finish a running job: its function has returned, or its dead letter is stored."""
        assert job.is_running, job
        del self._running[job]
        is_given_up = job.state is JobState.GIVEN_UP
        job.state = JobState.FINISHED
        if job.is_dropped:
            return
        progress = self._partitions[job.tp]
        del progress.jobs[job.record.offset]
        progress.dead_letters += is_given_up
        self._unfinished_bytes -= job.size_bytes
        if job.lane is not None:
            lane = self._lanes[job.lane]
            assert lane[0] is job, job
            lane.popleft()
            if lane:
                self._make_ready(lane[0])
            else:
                del self._lanes[job.lane]

    def fail(self, job: Job, error: BaseException, now: float, chance: float) -> float | None:
        """Handle an exception of the function. Return the delay of the retry in seconds.

        None means that the record is given up: send its dead letter, then call `finish`. `chance` is a random number from
        0 to 1.
        """
        assert job.state is JobState.RUNNING, job
        job.error = error
        can_retry = job.is_readable and not job.is_dropped
        if not can_retry or not self._backoff.should_retry(job.attempts, error):
            job.state = JobState.GIVEN_UP
            return None
        delay = self._backoff.delay(job.attempts, chance)
        del self._running[job]
        job.state = JobState.RETRYING
        heappush(self._retries, (now + delay, next(self._numbers), job))
        return delay

    def release(self, job: Job) -> None:
        """Handle a cancelled call: the job is not finished and does not start again, because the worker stops."""
        assert job.is_running, job
        del self._running[job]
        job.state = JobState.READY
        job.attempts -= 1
        if not job.is_dropped:
            self._ready.appendleft(job)

    def next_retry(self) -> float:
        """Return the time of the next retry; FOREVER if there is none."""
        while self._retries and self._retries[0][2].is_dropped:
            heappop(self._retries)
        return self._retries[0][0] if self._retries else FOREVER

    def commits(self, now: float | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what may be committed and differs from the last commit.

        With the time, the metadata includes the status. A change of the status alone is committed after `STATUS_SECONDS`.
        """
        found = {}
        for tp, progress in self._partitions.items():
            status = WorkStatus()
            if now is not None and self.max_metadata_bytes >= STATUS_LEAST_BYTES:
                status = progress.status()
            commit = progress.next_commit(self.max_metadata_bytes - len(encode_status(status)))
            if commit is None:
                continue
            earlier = progress.committed
            if is_same_commit(commit, earlier) and (
                now is None
                or now - progress.committed_at < STATUS_SECONDS
                or (earlier is not None and (decode_status(earlier.metadata) or WorkStatus()) == status)
            ):
                continue
            metadata = add_status(commit.metadata, status)
            found[tp] = OffsetAndMetadata(commit.offset, metadata, commit.leader_epoch)
        return found

    def mark_committed(self, offsets: dict[TopicPartition, OffsetAndMetadata], now: float = 0.0) -> None:
        """Remember what was committed, and when."""
        for tp, commit in offsets.items():
            if tp in self._partitions:
                self._partitions[tp].committed = commit
                self._partitions[tp].committed_at = now

    def mark_uncommitted(self, offsets: Iterable[TopicPartition]) -> None:
        """Forget the last commit of these partitions, because it has failed."""
        for tp in offsets:
            if tp in self._partitions:
                self._partitions[tp].committed = None

    def update_pauses(self) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Return the partitions to pause and those to resume, to bound the memory of unfinished records."""
        self._is_full = self._should_pause_all()
        to_pause: list[TopicPartition] = []
        to_resume: list[TopicPartition] = []
        for tp, progress in self._partitions.items():
            if self._should_pause(progress) != progress.is_paused:
                progress.is_paused = not progress.is_paused
                (to_pause if progress.is_paused else to_resume).append(tp)
        return to_pause, to_resume

    @property
    def has_resumable(self) -> bool:
        """True if `update_pauses` would resume a partition."""
        return any(each.is_paused and not self._should_pause(each) for each in self._partitions.values())

    def check(self) -> None:
        """Assert the invariants."""
        for tp, progress in self._partitions.items():
            assert progress.position is None or list(progress.jobs) == sorted(progress.jobs), progress.jobs
            assert all(job.tp == tp and job.state is not JobState.FINISHED for job in progress.jobs.values())
            commit = progress.next_commit(self.max_metadata_bytes)
            if commit is not None:
                assert all(commit.offset <= offset for offset in progress.jobs), (commit, progress.jobs)
        for lane in self._lanes.values():
            assert lane
            assert all(job.state is JobState.WAITING for job in list(lane)[1:]), lane
            assert lane[0].state is not JobState.WAITING, lane
        jobs = [job for progress in self._partitions.values() for job in progress.jobs.values()]
        assert self._unfinished_bytes == sum(job.size_bytes for job in jobs)
        assert len(self._running) <= self._concurrency
        assert {job for job in jobs if job.is_running} <= self._running.keys()
        assert {job for job in jobs if job.state is JobState.READY} <= set(self._ready)

    def _make_job(self, tp: TopicPartition, record: WorkRecord, error: BaseException | None) -> Job:
        lane: Hashable | None = None
        if self._order == "partition":
            lane = tp
        elif self._order == "key" and (key := record.raw_key) is not None:
            lane = (tp, bytes(key))
        # Earlier deliveries of a share group count as calls.
        job = Job(tp, record, lane, max((getattr(record, "delivery_count", None) or 1) - 1, 0))
        job.error = error
        job.is_readable = error is None
        return job

    def _add_job(self, progress: PartitionProgress, job: Job) -> None:
        progress.jobs[job.record.offset] = job
        self._unfinished_bytes += job.size_bytes
        if job.lane is None:
            self._make_ready(job)
            return
        lane = self._lanes.setdefault(job.lane, deque())
        lane.append(job)
        if len(lane) == 1:
            self._make_ready(job)

    def _make_ready(self, job: Job) -> None:
        job.state = JobState.READY
        self._ready.append(job)

    def _promote_retries(self, now: float) -> None:
        while self._retries and self._retries[0][0] <= now:
            _, _, job = heappop(self._retries)
            if not job.is_dropped:
                self._make_ready(job)

    def _drop(self, job: Job) -> None:
        """Forget an unfinished job. The whole partition is dropped, so its lanes are, too."""
        job.is_dropped = True
        self._unfinished_bytes -= job.size_bytes
        if job.lane is not None:
            self._lanes.pop(job.lane, None)

    def _should_pause(self, progress: PartitionProgress) -> bool:
        if self._should_pause_all():
            return True
        limit = max(self._buffer_records // len(self._partitions), self._concurrency)
        return len(progress.jobs) >= (max(limit // 2, 1) if progress.is_paused else limit)

    def _should_pause_all(self) -> bool:
        limit = self._buffer_bytes // 2 if self._is_full else self._buffer_bytes
        return self._unfinished_bytes >= max(limit, 1)


def is_same_commit(commit: OffsetAndMetadata, earlier: OffsetAndMetadata | None) -> bool:
    """Return True if both have the same offset, and the same finished offsets above it."""
    return earlier is not None and (
        (commit.offset, commit.metadata) == (earlier.offset, without_status(earlier.metadata))
    )
