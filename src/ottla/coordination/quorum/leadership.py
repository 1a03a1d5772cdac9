"""State of the quorum's leader: how far each replica has come, and when it was last heard from.

**Commit rule.** An offset is committed when a majority of the voters has it on the disk. A fetch from an offset confirms everything
before it, because a follower flushes what it appends before it fetches again. Only records of the leader's own epoch are counted: a
record of an earlier epoch may be on a majority of the disks and still be replaced by a leader that never had it (Raft, figure 8).
Therefore a leader starts with a record of its own (LeaderChangeMessage), and commits everything before it together with it.

**Resignation.** A leader resigns when a majority has not fetched for a while (`QuorumConfig.CHECK_FACTOR`): the others may have
another leader by then, and clients of this one would wait in vain.
"""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet

UNKNOWN = -1
NEVER = float("-inf")


class Progress(Struct):
    """The progress of one replica. Moments are readings of the monotonic clock, in seconds."""

    end: int = UNKNOWN
    """The replica has every record below this offset on its disk."""
    fetched_at: float = NEVER
    caught_up_at: float = NEVER
    """The last moment at which it had everything that the leader had."""


class Leadership:
    """One leader in one epoch."""

    def __init__(self, me: ReplicaKey, epoch_start: int, now: float, config: QuorumConfig) -> None:
        """`epoch_start` is the end of the log at the election: the leader's own records have this offset or a later one."""
        self._me = me
        self._epoch_start = epoch_start
        self.replicas: dict[ReplicaKey, Progress] = {}
        """Progress of every replica that has fetched, voter or observer."""
        self._check_seconds = config.fetch_timeout_ms * config.CHECK_FACTOR / 1000
        self.check_at = now + self._check_seconds
        """The moment at which the leader resigns unless a majority fetches before."""
        self._fetched_since_check: set[ReplicaKey] = set()
        self._announce_seconds = config.fetch_timeout_ms / 2000
        self.announce_at = now
        """The next moment at which the leader announces itself to voters that do not fetch."""

    def progress(self, key: ReplicaKey) -> Progress:
        return self.replicas.setdefault(key, Progress())

    def record_fetch(self, key: ReplicaKey, offset: int, leader_end: int, voters: VoterSet, now: float) -> None:
        """Record that a replica has everything below `offset`, and that its log does not diverge from this one."""
        progress = self.progress(key)
        progress.end = offset
        if offset >= leader_end:
            progress.caught_up_at = now
        self.record_contact(key, voters, now)

    def record_contact(self, key: ReplicaKey, voters: VoterSet, now: float) -> None:
        """Record that a replica takes this node for the leader; restart the check once a majority has done so."""
        self.progress(key).fetched_at = now
        if not voters.has(key):
            return
        self._fetched_since_check.add(key)
        if len({each for each in self._fetched_since_check if voters.has(each)}) >= self._others_needed(voters):
            self._fetched_since_check.clear()
            self.check_at = now + self._check_seconds

    def restart_check_if_alone(self, voters: VoterSet, now: float) -> None:
        """Restart the check before new voters join a leader that was a majority by itself.

        The new voters get the usual time for their first fetch. A leader with other voters does not get more time.
        """
        if not self._others_needed(voters):
            self.check_at = now + self._check_seconds

    def _others_needed(self, voters: VoterSet) -> int:
        return voters.majority - (1 if voters.has(self._me) else 0)

    def has_lost_majority(self, voters: VoterSet, now: float) -> bool:
        """True if too few voters have fetched for too long."""
        return self._others_needed(voters) > 0 and now >= self.check_at

    def committed_end(self, voters: VoterSet, durable_end: int) -> int | None:
        """Return the end of what a majority has on the disk; None if that includes no record of the leader's own epoch.

        `durable_end` is the end of what the leader's own disk holds.
        """
        ends = [durable_end if key.is_same(self._me) else self.progress(key).end for key in voters.keys]
        end = sorted(ends, reverse=True)[voters.majority - 1]
        return end if end > self._epoch_start else None

    def silent_voters(self, voters: VoterSet, now: float) -> list[ReplicaKey]:
        """Return the voters that have not fetched lately, possibly because they know of no leader."""
        recent = now - self._announce_seconds
        return [key for key in voters.keys if not key.is_same(self._me) and self.progress(key).fetched_at <= recent]

    def schedule_announcement(self, now: float) -> None:
        self.announce_at = now + self._announce_seconds

    def successors(self, voters: VoterSet) -> list[ReplicaKey]:
        """Return the other voters, the one with the longest log first."""
        others = [key for key in voters.keys if not key.is_same(self._me)]
        return sorted(others, key=lambda key: -self.progress(key).end)
