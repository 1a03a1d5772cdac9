"""What leading a partition takes that other brokers copy: the machine that decides, the log that it moves, and who waits for it.

    append ──► the log's end ──┐
                               ├──► high watermark ──► consumers see more, producers with acks=all are answered
    a follower's fetch ────────┘

A partition without copies has none of this: its high watermark is its log's end. Here a produce with acks=all waits until the watermark
has reached the end of its batch, in `waiting`, as fetches wait at partitions; where that happens in the append itself nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.fetching.waiting import Waiting, WaitingFetch
from ottla.broker.partitions.partition import Partition
from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.coordination.replication.leader import Leader
from ottla.errors import ErrorCode
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.requests.call import Call


class Copies:
    """Where those wait who want to hear of every fetch of a copy."""

    __slots__ = ("partition", "waiting")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.waiting: dict[WaitingFetch, None] = {}

    def __str__(self) -> str:
        return f"the copies of {self.partition}"


class Leadership:
    """Of one partition and one leader epoch, on the broker that leads."""

    __slots__ = ("_waiting", "brokers", "copies", "ended", "log", "machine", "on_change", "partition", "waiting")

    def __init__(self, machine: Leader, brokers: LiveBrokers, partition: Partition, waiting: Waiting) -> None:
        self.machine = machine
        self.brokers = brokers
        """Who is there, as the metadata say."""
        self.partition = partition
        self.log: Log = partition.log
        self.waiting: dict[WaitingFetch, None] = {}
        """Produces that wait for the high watermark."""
        self.copies = Copies(partition)
        self.ended = False
        """Whether another leads now."""
        self.on_change: Callable[[Leadership], None] = ignore
        """Told when there may be another in-sync set to ask for."""
        self._waiting = waiting

    def __str__(self) -> str:
        return str(self.partition)

    def appended(self, now: float) -> None:
        """Take the end that the log has now."""
        self.machine.append(self.log.end_offset)
        self.advance(now)

    def fetched(self, follower: int, offset: int, broker_epoch: int, now: float, start: int = 0) -> bool:
        """A follower, whose log does not part from this one, has all before `offset`; whether it has a copy at all."""
        if not self.machine.fetch(follower, offset, broker_epoch, now, start):
            return False
        self.advance(now)
        self._look_at_copies()
        if follower not in self.machine.maximal:
            self.on_change(self)
        return True

    def assign(self, assignment: Assignment, brokers: LiveBrokers, now: float) -> None:
        """The metadata say this of who is in sync; followers are to tell how far they are by that."""
        self._waiting.changed(self.partition)
        self.brokers = brokers
        if assignment.leader_epoch > self.machine.assignment.leader_epoch:
            begin_epoch(self.partition, assignment.leader_epoch)
        self.machine.assign(assignment, self.log.end_offset, now)
        self.advance(now)
        self.on_change(self)
        self._look_at_copies()

    def see(self, brokers: LiveBrokers) -> None:
        """Brokers came or went; who deletes records may not have to wait for one of them any more."""
        self.brokers = brokers
        self._look_at_copies()

    def _look_at_copies(self) -> None:
        for waiting in self.copies.waiting:
            self._waiting.look_soon(waiting)

    def advance(self, now: float) -> None:
        """Move the high watermark as far as it may go, and tell those who wait for it."""
        if self.machine.advance(self.brokers, now):
            self.log.advance_high_watermark(self.machine.high_watermark)
            self._waiting.look_again([self.partition])
            for produce in self.waiting:  # in the order of their batches
                assert isinstance(produce, WaitingProduce)
                if produce.required[self] > self.log.high_watermark:
                    break
                if produce.is_reached:  # else it would wait anew, behind those with later batches
                    self._waiting.look_soon(produce)

    def end(self) -> None:
        """Lead no more; who waits is told."""
        self.ended = True
        for waiting in (*self.waiting, *self.copies.waiting):
            self._waiting.look_soon(waiting)

    @property
    def low_watermark(self) -> int:
        """From where on every copy has anything."""
        return self.machine.low_watermark(self.log.start_offset, self.brokers)

    def outcome(self, end_offset: int) -> int | None:
        """What has become of batches that end there: NONE, an error, or None while it is open."""
        if self.ended:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark < end_offset:
            return None
        enough = len(self.machine.maximal) >= self.machine.assignment.quorum
        return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    @property
    def is_settled(self) -> bool:
        """Whether the watermark is beyond what was there when this broker began to lead: before it is not known to be true (KIP-207)."""
        return self.log.high_watermark >= self.machine.epoch_start


def ignore(leadership: Leadership) -> None:
    """Nobody can be asked for another in-sync set."""


def begin_epoch(partition: Partition, leader_epoch: int) -> None:
    """Lead in this epoch, from the log's end on. Before any record: an epoch without a batch is an epoch, too (KIP-279)."""
    partition.leader_epoch = leader_epoch
    partition.log.epochs.assign(leader_epoch, partition.log.end_offset)


class WaitingProduce(WaitingFetch):
    """A produce with acks=all, of which some partitions are not committed."""

    __slots__ = ("required",)

    def __init__(self, required: dict[Leadership, int], complete: Callable[[], None], call: Call | None = None) -> None:
        awaited: Sequence[Leadership] = list(required)
        super().__init__(awaited, 0, complete, call)
        self.required = required
        """How far the high watermark of each must come."""

    @property
    def is_reached(self) -> bool:
        """Whether it misses nothing any more."""
        return all(each.log.high_watermark >= offset for each, offset in self.required.items())


def lead(
    partition: Partition,
    me: int,
    assignment: Assignment,
    brokers: LiveBrokers,
    waiting: Waiting,
    now: float,
    max_lag: float,
) -> None:
    """Have a partition led by this broker as the metadata say; with no other copy nothing has to be waited for.

    In a later epoch it leads on: nobody else has written meanwhile, or it would have followed.
    """
    partition.leads = True
    if partition.leadership is not None:
        partition.leadership.assign(assignment, brokers, now)
        return
    partition.replicated = len(assignment.replicas) > 1
    partition.min_insync_replicas = assignment.quorum
    partition.log.replicate(partition.replicated)
    begin_epoch(partition, assignment.leader_epoch)
    if partition.replicated:
        log = partition.log
        machine = Leader(me, assignment, log.end_offset, log.high_watermark, now, max_lag)
        partition.leadership = Leadership(machine, brokers, partition, waiting)
        waiting.changed(partition)
        partition.leadership.advance(now)
