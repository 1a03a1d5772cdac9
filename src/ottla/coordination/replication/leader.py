"""The leader of a partition: how far each follower has come, what is committed, and who is in sync.

**The high watermark** is the end of what everybody has who might lead next. That is more than the set the controller knows of as in sync:
while the leader has proposed another set it cannot know which of the two counts, so it waits for the members of both, the *maximal* set.
It waits, too, for a follower that has caught up and may join at any moment: else the watermark would run away from it for ever.
While fewer are in sync than `min.insync.replicas` asks for, nothing is committed: the last one standing may lose its disk.

**Who joins** has everything up to the watermark *and* what the leader had when it began to lead: the watermark alone may lie
far behind what was acknowledged, for a new leader knows it from its last fetch. And it must be the broker that is registered now: one
that came back without its data fetched before it was registered again (KIP-903). Who was taken out of the set has to fetch again before
it joins: the controller may know of a disk that has failed where the leader sees a broker that is there and lacks nothing.

**Who leaves** was not at the leader's end at any time in the last `replica.lag.time.max.ms`. A follower at the end now is in sync
however long it has not fetched.

One proposal is under way at a time. One that was refused for whom it names is forgotten; one that was refused for its epochs
waits for the metadata, which say what is so.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from ottla.coordination.replication.assignment import Assignment, LiveBrokers

UNKNOWN = -1


class Refusal(Enum):
    """What a refused proposal means for the leader."""

    OF_MEMBERS = "of members"
    """INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED: the set that was is the set that is."""
    OF_EPOCHS = "of epochs"
    """FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION and the like: whatever is so now comes with the metadata."""


class RemoteReplica(Struct):
    """What the leader knows of a copy elsewhere. Moments are readings of the monotonic clock, in seconds."""

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
        """It fetched from `offset`, so it has all before. Who reached the end of the fetch before was caught up then."""
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
    """The in-sync set that the leader asks the controller for (AlterPartition), with the epoch of each broker in it."""

    leader_epoch: int
    partition_epoch: int
    in_sync: frozenset[int]
    broker_epochs: dict[int, int]


class Leader:
    """One partition, as the broker that leads it sees it."""

    def __init__(
        self, me: int, assignment: Assignment, log_end: int, high_watermark: int, now: float, max_lag: float = 30.0
    ) -> None:
        self.me = me
        self.max_lag = max_lag
        """`replica.lag.time.max.ms`, in seconds."""
        self.log_end = log_end
        self.high_watermark = high_watermark
        self.epoch_start = log_end
        """What the leader had when it began to lead; a batch of its own epoch has this offset or a later one."""
        self.assignment = assignment
        self.proposal: Proposal | None = None
        self.followers: dict[int, RemoteReplica] = {}
        self._keep(assignment, now)

    def assign(self, assignment: Assignment, log_end: int, now: float) -> None:
        """The metadata say this now; older ones, which may come late, are passed over."""
        if assignment.partition_epoch == self.assignment.partition_epoch:
            self.assignment = assignment  # `min.insync.replicas` may be another
        if assignment.partition_epoch <= self.assignment.partition_epoch:
            return
        if assignment.leader_epoch > self.assignment.leader_epoch:
            self.epoch_start = log_end
            self.followers = {}
        self._doubt(self.assignment.in_sync - assignment.in_sync)
        self.proposal = None
        self.assignment = assignment
        self._keep(assignment, now)

    def _doubt(self, left: frozenset[int]) -> None:
        """Whoever was taken out of sync may have lost its copy since its last fetch, as with a disk: let it fetch again first."""
        for other in left & self.followers.keys():
            self.followers[other] = RemoteReplica(start=self.followers[other].start)

    def _keep(self, assignment: Assignment, now: float) -> None:
        """Those who have a copy; who is in sync has a whole lag's time to show it."""
        others = [replica for replica in assignment.replicas if replica != self.me]
        self.followers = {other: self.followers.get(other) or RemoteReplica() for other in others}
        for other, follower in self.followers.items():
            if follower.end == UNKNOWN and other in assignment.in_sync:
                follower.caught_up_at = now

    @property
    def maximal(self) -> frozenset[int]:
        """Everybody who is in sync by the controller's word or by what it was asked for."""
        return self.assignment.in_sync | (self.proposal.in_sync if self.proposal else frozenset())

    @property
    def has_quorum(self) -> bool:
        """Whether as many are in sync as `min.insync.replicas` asks for."""
        return len(self.assignment.in_sync) >= self.assignment.quorum

    def append(self, log_end: int) -> None:
        """The log ends there now."""
        assert log_end >= self.log_end
        self.log_end = log_end

    def fetch(self, follower: int, offset: int, broker_epoch: int, now: float, start: int = 0) -> bool:
        """A follower has all from `start` to `offset`, of a log that does not part from this one; whether it has a copy at all."""
        known = self.followers.get(follower)
        if known is None:
            return False
        known.fetch(offset, broker_epoch, self.log_end, now, start)
        return True

    def is_level(self, follower: int) -> bool:
        """Whether it is known to have everything."""
        known = self.followers.get(follower)
        return known is not None and known.end == self.log_end

    def hear(self, follower: int, moment: float) -> None:
        """A follower that had everything, and was told so, has asked at that moment for what there might be more."""
        if self.is_level(follower):
            known = self.followers[follower]
            known.caught_up_at = max(known.caught_up_at, moment)
            known.fetched_at = max(known.fetched_at, moment)
            known.leader_end = self.log_end

    def advance(self, brokers: LiveBrokers, now: float) -> bool:
        """Move the high watermark as far as it may go; whether it moved."""
        if not self.has_quorum:
            return False
        awaited = [one.end for id_, one in self.followers.items() if self._is_awaited(id_, one, brokers, now)]
        reached = min([self.log_end, *awaited])
        moves = reached > self.high_watermark
        self.high_watermark = max(self.high_watermark, reached)
        return moves

    def _is_awaited(self, id_: int, follower: RemoteReplica, brokers: LiveBrokers, now: float) -> bool:
        joins_soon = follower.is_caught_up(self.log_end, now, self.max_lag) and brokers.may_join(
            id_, follower.broker_epoch
        )
        return id_ in self.maximal or joins_soon

    def low_watermark(self, log_start: int, brokers: LiveBrokers) -> int:
        """From where on everybody has anything, who is there."""
        starts = [one.start for id_, one in self.followers.items() if id_ in brokers.epochs]
        return min([log_start, *starts])

    def propose(self, brokers: LiveBrokers, now: float) -> Proposal | None:
        """The in-sync set to ask for, if it should be another and no answer is awaited."""
        if self.proposal is not None:
            return None
        wanted = (self.assignment.in_sync - self.lagging(now)) | self.joining(brokers)
        if wanted == self.assignment.in_sync:
            return None
        epochs = {id_: self.followers[id_].broker_epoch for id_ in wanted if id_ != self.me}
        epochs[self.me] = brokers.epochs.get(self.me, UNKNOWN)
        self.proposal = Proposal(self.assignment.leader_epoch, self.assignment.partition_epoch, wanted, epochs)
        return self.proposal

    def lagging(self, now: float) -> set[int]:
        """Those in sync who are not any more."""
        return {
            id_
            for id_, one in self.followers.items()
            if id_ in self.assignment.in_sync and not one.is_caught_up(self.log_end, now, self.max_lag)
        }

    def joining(self, brokers: LiveBrokers) -> set[int]:
        """Those who are in sync by now."""
        return {
            id_
            for id_, one in self.followers.items()
            if id_ not in self.maximal and self._is_level(one) and brokers.may_join(id_, one.broker_epoch)
        }

    def _is_level(self, follower: RemoteReplica) -> bool:
        return follower.end >= self.high_watermark and follower.end >= self.epoch_start

    def refused(self, proposal: Proposal, refusal: Refusal) -> None:
        """The controller does not take the set; what that means for the next one."""
        if self.proposal is proposal and refusal is Refusal.OF_MEMBERS:
            self.proposal = None

    def check(self) -> None:
        """Assert what must hold between any two steps."""
        assert 0 <= self.high_watermark <= self.log_end, (self.high_watermark, self.log_end)
        assert self.epoch_start <= self.log_end
        assert self.me in self.assignment.replicas
        assert self.assignment.in_sync <= self.maximal
