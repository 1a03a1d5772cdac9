"""The leader of a partition: the positions of its followers, the high watermark, and the in-sync set.

**The high watermark** is the minimum of the end offsets of all replicas that could become leader. These are more than the in-sync set that the controller
knows: while a proposed set is not confirmed, either of the two may be valid, so the leader waits for the members of both, the
*maximal* set (KIP-497). It also waits for a follower that is caught up and may join at any time; otherwise the watermark would always
be ahead of it. While fewer than `min.insync.replicas` are in sync nothing is committed: the last replica may lose its disk
(KIP-966).

**A follower joins** if it has everything up to the watermark *and* up to the leader's end offset at the start of its epoch: the watermark alone may be
far behind the acknowledged records, since a new leader knows it from its last fetch. The follower must be the present registration of its
broker: one that restarted without its data may have fetched before it registered again (KIP-903). A follower that was removed has
to fetch again before it joins: the controller may know of a failed disk while the leader sees a broker that lacks nothing.

**A follower is removed** if it was not at the leader's end offset at any time in the last `replica.lag.time.max.ms`. A follower that is at the
end is in sync, however long ago it fetched.

One proposal is in flight at a time. One that was rejected because of its members is dropped; one that was rejected because of its epochs
waits for newer metadata.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment

UNKNOWN = -1


class ProposalRejection(Enum):
    """The meaning of a rejected proposal."""

    OF_MEMBERS = "of members"
    """INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED: the set that was is the set that is."""
    OF_EPOCHS = "of epochs"
    """FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION and similar: the metadata will have the present state."""


class RemoteReplica(Struct):
    """The leader's knowledge of a follower. Times are monotonic, in seconds."""

    end: int = UNKNOWN
    start: int = 0
    """From where on it has anything."""
    broker_epoch: int = UNKNOWN
    caught_up_at: float = float("-inf")
    """When it last had all that the leader had."""
    fetched_at: float = float("-inf")
    leader_end: int = UNKNOWN
    """The leader's end at that fetch."""

    def fetch(self, offset: int, broker_epoch: int, leader_end: int, now: float, start: int) -> None:
        """Handle a fetch from `offset`.

        The follower has everything before it. If it has reached the end offset of the previous fetch, it was caught up at that
        time.
        """
        self.start = start
        if offset >= leader_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end, self.broker_epoch = offset, broker_epoch
        self.fetched_at, self.leader_end = now, leader_end

    def is_caught_up(self, leader_end: int, now: float, max_lag: float) -> bool:
        return self.lag(leader_end, now) <= max_lag

    def lag(self, leader_end: int, now: float) -> float:
        """For how long it has lacked something, in seconds."""
        return 0.0 if self.end == leader_end else now - self.caught_up_at


class Proposal(Struct, frozen=True):
    """The in-sync set that the leader requests from the controller (AlterPartition), with the epoch of each broker."""

    leader_epoch: int
    partition_epoch: int
    in_sync: frozenset[int]
    broker_epochs: dict[int, int]


class Leader:
    """One partition, as the broker that leads it sees it."""

    def __init__(
        self,
        me: int,
        assignment: ReplicaAssignment,
        log_end: int,
        high_watermark: int,
        now: float,
        max_lag: float = 30.0,
    ) -> None:
        self.me = me
        self._max_lag = max_lag
        """`replica.lag.time.max.ms`, in seconds."""
        self.log_end = log_end
        self.high_watermark = high_watermark
        self.epoch_start = log_end
        """The end offset at the start of the epoch; batches of this epoch have this offset or a greater one."""
        self.assignment = assignment
        self.proposal: Proposal | None = None
        self.followers: dict[int, RemoteReplica] = {}
        self._keep_replicas(assignment, now)

    def assign(self, assignment: ReplicaAssignment, log_end: int, now: float) -> None:
        """Apply the metadata; older metadata, which may arrive late, is ignored."""
        if assignment.partition_epoch == self.assignment.partition_epoch:
            self.assignment = assignment  # `min.insync.replicas` may be another
        if assignment.partition_epoch <= self.assignment.partition_epoch:
            return
        if assignment.leader_epoch > self.assignment.leader_epoch:
            self.epoch_start = log_end
            self.followers = {}
        self._require_fetches(self.assignment.in_sync - assignment.in_sync)
        self.proposal = None
        self.assignment = assignment
        self._keep_replicas(assignment, now)

    def _require_fetches(self, left: frozenset[int]) -> None:
        """Require a new fetch of replicas that were removed from the in-sync set: they may have lost their data, as with a disk."""
        for other in left & self.followers.keys():
            self.followers[other] = RemoteReplica(start=self.followers[other].start)

    def _keep_replicas(self, assignment: ReplicaAssignment, now: float) -> None:
        """Keep the present replicas; those in sync have the full lag time to prove it."""
        others = [replica for replica in assignment.replicas if replica != self.me]
        self.followers = {other: self.followers.get(other) or RemoteReplica() for other in others}
        for other, follower in self.followers.items():
            if follower.end == UNKNOWN and other in assignment.in_sync:
                follower.caught_up_at = now

    @property
    def maximal(self) -> frozenset[int]:
        """The replicas that are in sync by the metadata or by a pending proposal."""
        return self.assignment.in_sync | (self.proposal.in_sync if self.proposal else frozenset())

    @property
    def has_quorum(self) -> bool:
        """True if at least `min.insync.replicas` are in sync."""
        return len(self.assignment.in_sync) >= self.assignment.quorum

    def append(self, log_end: int) -> None:
        """Record the new end of the log."""
        assert log_end >= self.log_end
        self.log_end = log_end

    def fetch(self, follower: int, offset: int, broker_epoch: int, now: float, start: int = 0) -> bool:
        """Record that a follower has a copy from `start` to `offset`. True if its log does not diverge from this one."""
        known = self.followers.get(follower)
        if known is None:
            return False
        known.fetch(offset, broker_epoch, self.log_end, now, start)
        return True

    def is_level(self, follower: int) -> bool:
        """Return True if the follower is known to have everything."""
        known = self.followers.get(follower)
        return known is not None and known.end == self.log_end

    def record_idle_fetch(self, follower: int, moment: float) -> None:
        """Record that a follower without missing records sent a request for new ones at that time."""
        if self.is_level(follower):
            known = self.followers[follower]
            known.caught_up_at = max(known.caught_up_at, moment)
            known.fetched_at = max(known.fetched_at, moment)
            known.leader_end = self.log_end

    def advance(self, brokers: LiveBrokers, now: float) -> bool:
        """Advance the high watermark as far as possible; return True if it advanced."""
        if not self.has_quorum:
            return False
        awaited = [one.end for id_, one in self.followers.items() if self._is_awaited(id_, one, brokers, now)]
        reached = min([self.log_end, *awaited])
        moves = reached > self.high_watermark
        self.high_watermark = max(self.high_watermark, reached)
        return moves

    def _is_awaited(self, id_: int, follower: RemoteReplica, brokers: LiveBrokers, now: float) -> bool:
        joins_soon = follower.is_caught_up(self.log_end, now, self._max_lag) and brokers.can_join(
            id_, follower.broker_epoch
        )
        return id_ in self.maximal or joins_soon

    def low_watermark(self, log_start: int, brokers: LiveBrokers) -> int:
        """Return the least log start offset of all live replicas: every one of them has deleted what is below it (KIP-107)."""
        starts = [one.start for id_, one in self.followers.items() if id_ in brokers.epochs]
        return min([log_start, *starts])

    def propose(self, brokers: LiveBrokers, now: float) -> Proposal | None:
        """Return the in-sync set to propose if it should change and no proposal is in flight."""
        if self.proposal is not None:
            return None
        wanted = (self.assignment.in_sync - self.find_lagging(now)) | self.find_joining(brokers)
        if wanted == self.assignment.in_sync:
            return None
        epochs = {id_: self.followers[id_].broker_epoch for id_ in wanted if id_ != self.me}
        epochs[self.me] = brokers.epochs.get(self.me, UNKNOWN)
        self.proposal = Proposal(self.assignment.leader_epoch, self.assignment.partition_epoch, wanted, epochs)
        return self.proposal

    def find_lagging(self, now: float) -> set[int]:
        """Return the in-sync replicas that lag."""
        return {
            id_
            for id_, one in self.followers.items()
            if id_ in self.assignment.in_sync and not one.is_caught_up(self.log_end, now, self._max_lag)
        }

    def find_joining(self, brokers: LiveBrokers) -> set[int]:
        """Return the replicas that may join the in-sync set."""
        return {
            id_
            for id_, one in self.followers.items()
            if id_ not in self.maximal and self._is_level(one) and brokers.can_join(id_, one.broker_epoch)
        }

    def _is_level(self, follower: RemoteReplica) -> bool:
        return follower.end >= self.high_watermark and follower.end >= self.epoch_start

    def handle_rejection(self, proposal: Proposal, refusal: ProposalRejection) -> None:
        """Handle an ISR that the controller rejected, and decide about the next one."""
        if self.proposal is proposal and refusal is ProposalRejection.OF_MEMBERS:
            self.proposal = None

    def check(self) -> None:
        """Assert what must hold between any two steps."""
        assert 0 <= self.high_watermark <= self.log_end, (self.high_watermark, self.log_end)
        assert self.epoch_start <= self.log_end
        assert self.me in self.assignment.replicas
        assert self.assignment.in_sync <= self.maximal
