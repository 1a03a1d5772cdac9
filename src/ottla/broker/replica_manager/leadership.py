"""Leadership of a partition with followers: the state machine that decides, the log, and the requests that wait for it.

    append ──► log end ────────┐
                               ├──► high watermark ──► consumers read more, producers with acks=all receive responses
    a follower's fetch ────────┘

A partition without followers has no `Leadership`: its high watermark is its log end. A produce with acks=all waits in
`waiting` until the high watermark reaches the end of its batch, as fetches wait for partitions. If the append itself
advances it that far, nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.waiting_fetch import WaitingFetch
from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.coordination.replication.leader import Leader
from ottla.errors import ErrorCode
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.network_server.call import Call


class ReplicaProgress:
    """The place where requests wait for every fetch of a follower."""

    __slots__ = ("partition", "waiting")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.waiting: dict[WaitingFetch, None] = {}

    def __str__(self) -> str:
        return f"the copies of {self.partition}"


class Leadership:
    """One partition in one leader epoch, on its leader."""

    __slots__ = ("_on_change", "_waiting", "brokers", "copies", "ended", "log", "machine", "partition", "waiting")

    def __init__(
        self,
        machine: Leader,
        brokers: LiveBrokers,
        partition: Partition,
        waiting: FetchPurgatory,
        on_change: Callable[[Leadership], None],
    ) -> None:
        self.machine = machine
        self.brokers = brokers
        """The live brokers in the metadata."""
        self.partition = partition
        self.log: Log = partition.log
        self.waiting: dict[WaitingFetch, None] = {}
        """Produces that wait for the high watermark."""
        self.copies = ReplicaProgress(partition)
        self.ended = False
        """True once another broker leads."""
        self._on_change = on_change
        """Called when a change of the ISR may be due."""
        self._waiting = waiting

    def __str__(self) -> str:
        return str(self.partition)

    def handle_append(self, now: float) -> None:
        """Record the new end of the log after an append."""
        self.machine.append(self.log.end_offset)
        self.advance(now)

    def handle_fetch(self, follower: int, offset: int, broker_epoch: int, now: float, start: int = 0) -> bool:
        """Record that a follower, with a log that does not diverge, has all records below `offset`.

        False if it is not a replica.
        """
        if not self.machine.fetch(follower, offset, broker_epoch, now, start):
            return False
        self.advance(now)
        self._check_replicas()
        if follower not in self.machine.maximal:
            self._on_change(self)
        return True

    def assign(self, assignment: ReplicaAssignment, brokers: LiveBrokers, now: float) -> None:
        """Apply the ISR in the metadata. Followers have to report their positions against it."""
        self._waiting.handle_change(self.partition)
        self.brokers = brokers
        if assignment.leader_epoch > self.machine.assignment.leader_epoch:
            start_epoch(self.partition, assignment.leader_epoch)
        self.machine.assign(assignment, self.log.end_offset, now)
        self.advance(now)
        self._on_change(self)
        self._check_replicas()

    def update_brokers(self, brokers: LiveBrokers) -> None:
        """Apply a change of live brokers: deletions of records do not wait for brokers that are away."""
        self.brokers = brokers
        self._check_replicas()

    def _check_replicas(self) -> None:
        for waiting in self.copies.waiting:
            self._waiting.recheck_soon(waiting)

    def advance(self, now: float) -> None:
        """Advance the high watermark as far as possible, and complete the requests that wait for it."""
        if self.machine.advance(self.brokers, now):
            self.log.advance_high_watermark(self.machine.high_watermark)
            self._waiting.recheck([self.partition])
            for produce in self.waiting:  # in the order of their batches
                assert isinstance(produce, WaitingProduce)
                if produce.required[self] > self.log.high_watermark:
                    break
                if produce.is_reached:  # otherwise it would be queued again, behind those with later batches
                    self._waiting.recheck_soon(produce)

    def end(self) -> None:
        """Stop leading, and complete all waiting requests."""
        self.ended = True
        for waiting in (*self.waiting, *self.copies.waiting):
            self._waiting.recheck_soon(waiting)

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all live replicas."""
        return self.machine.low_watermark(self.log.start_offset, self.brokers)

    def find_outcome(self, end_offset: int) -> int | None:
        """Return the result of batches that end at `end_offset`: NONE, an error code, or None if it is not known yet."""
        if self.ended:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark < end_offset:
            return None
        enough = len(self.machine.maximal) >= self.machine.assignment.quorum
        return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    @property
    def is_settled(self) -> bool:
        """True if the high watermark is beyond the log end at the start of this epoch: before, it may be too low (KIP-207)."""
        return self.log.high_watermark >= self.machine.epoch_start


def ignore(leadership: Leadership) -> None:
    """Ignore a change of the ISR, which cannot be proposed."""


def start_epoch(partition: Partition, leader_epoch: int) -> None:
    """Start an epoch at the end of the log, before its first record: an epoch may stay without a batch (KIP-279)."""
    partition.leader_epoch = leader_epoch
    partition.log.epochs.assign(leader_epoch, partition.log.end_offset)


class WaitingProduce(WaitingFetch):
    """A produce with acks=all, of which some partitions are not committed."""

    __slots__ = ("required",)

    def __init__(self, required: dict[Leadership, int], complete: Callable[[], None], call: Call | None = None) -> None:
        awaited: Sequence[Leadership] = list(required)
        super().__init__(awaited, 0, complete, call)
        self.required = required
        """The offset that the high watermark of each partition must reach."""

    @property
    def is_reached(self) -> bool:
        """True if every required offset is committed."""
        return all(each.log.high_watermark >= offset for each, offset in self.required.items())


def become_leader(
    partition: Partition,
    me: int,
    assignment: ReplicaAssignment,
    brokers: LiveBrokers,
    waiting: FetchPurgatory,
    now: float,
    max_lag: float,
    on_change: Callable[[Leadership], None] = ignore,
) -> None:
    """Lead a partition as the metadata assigns it. Without other replicas nothing is waited for.

    `on_change` is called when the ISR may have to change.

    A later epoch of the same leader resets nothing: no other broker has appended meanwhile, or this one would have
    followed it.
    """
    partition.leads = True
    if partition.leadership is not None:
        partition.leadership.assign(assignment, brokers, now)
        return
    partition.replicated = len(assignment.replicas) > 1
    partition.min_insync_replicas = assignment.quorum
    partition.log.set_replicated(partition.replicated)
    start_epoch(partition, assignment.leader_epoch)
    if partition.replicated:
        log = partition.log
        machine = Leader(me, assignment, log.end_offset, log.high_watermark, now, max_lag)
        partition.leadership = Leadership(machine, brokers, partition, waiting, on_change)
        waiting.handle_change(partition)
        partition.leadership.advance(now)
