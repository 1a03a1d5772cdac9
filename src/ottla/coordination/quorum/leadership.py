"""What a leader knows about the other replicas: how much of the log each has, and when it fetched last.

**Commit rule.** A record is committed when a majority of the voters has flushed it, and it or a later flushed record is of the
leader's own epoch. The second condition is needed: a record of an earlier epoch may be on a majority of the disks and still be
replaced by a later leader that does not have it (Raft, figure 8). Therefore a new leader appends a LeaderChangeMessage first.
When this record is committed, every record before it is committed too. A fetch from an offset confirms that the replica has
flushed every record before the offset, because a follower flushes the fetched records before it fetches again.

**Contact check.** `LeaderState` measures when a majority of the voters has last fetched. If that is too long ago
(`QuorumConfig.CHECK_FACTOR`), the other voters may have elected another leader, so this leader cannot commit records any more.
`Raft` then resigns. Otherwise clients would wait for responses that this leader can never send.
"""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet

UNKNOWN = -1
NEVER = float("-inf")


class Progress(Struct):
    """The progress of one replica. Times are readings of the leader's monotonic clock, in seconds."""

    end: int = UNKNOWN
    """The replica has every record below this offset on its disk."""
    fetched_at: float = NEVER
    caught_up_at: float = NEVER
    """The time of the last fetch from the end of the leader's log: the replica had every record then."""


class LeaderState:
    """One leader in one epoch."""

    def __init__(self, me: ReplicaKey, epoch_start: int, now: float, config: QuorumConfig) -> None:
        """`epoch_start` is the end of the log at the election: the records of the leader's epoch start at this offset."""
        self._me = me
        self._epoch_start = epoch_start
        self.replicas: dict[ReplicaKey, Progress] = {}
        """Progress of every replica that has fetched, voter or observer."""
        self._check_seconds = config.fetch_timeout_ms * config.CHECK_FACTOR / 1000
        self.check_at = now + self._check_seconds
        """The time at which the leader resigns, unless a majority of the voters fetches before that time."""
        self._fetched_since_check: set[ReplicaKey] = set()
        self._announce_seconds = config.fetch_timeout_ms / 2000
        self.announce_at = now
        """The next moment at which the leader announces itself to voters that do not fetch."""

    def progress(self, key: ReplicaKey) -> Progress:
        return self.replicas.setdefault(key, Progress())

    def record_fetch(self, key: ReplicaKey, offset: int, leader_end: int, voters: VoterSet, now: float) -> None:
        """Record the fetch of a replica that has flushed every record below `offset`.

        The caller has checked that the log of the replica does not diverge from the leader's log.
        """
        progress = self.progress(key)
        progress.end = offset
        if offset >= leader_end:
            progress.caught_up_at = now
        self.record_contact(key, voters, now)

    def record_contact(self, key: ReplicaKey, voters: VoterSet, now: float) -> None:
        """Record a request that the replica sends only to its leader. Restart the contact check once a majority has sent one."""
        self.progress(key).fetched_at = now
        if not voters.has(key):
            return
        self._fetched_since_check.add(key)
        if len({each for each in self._fetched_since_check if voters.has(each)}) >= self._others_needed(voters):
            self._fetched_since_check.clear()
            self.check_at = now + self._check_seconds

    def restart_check_if_alone(self, voters: VoterSet, now: float) -> None:
        """Restart the contact check if the leader is a majority by itself; called before the voters change.

        The check was not needed so far, and its time may be over. New voters get the usual time for their first fetch. If the
        leader needs other voters already, the check continues unchanged.
        """
        if not self._others_needed(voters):
            self.check_at = now + self._check_seconds

    def _others_needed(self, voters: VoterSet) -> int:
        return voters.majority - (1 if voters.has(self._me) else 0)

    def has_lost_majority(self, voters: VoterSet, now: float) -> bool:
        """Return True if too few voters have fetched for too long."""
        return self._others_needed(voters) > 0 and now >= self.check_at

    def committed_end(self, voters: VoterSet, durable_end: int) -> int | None:
        """Return the offset below which a majority of the voters has flushed every record.

        Return None if no record of the leader's epoch is below that offset (see the commit rule above). `durable_end` is the
        offset below which the leader itself has flushed every record; it counts only if the leader is a voter.
        """
        ends = [durable_end if key.is_same(self._me) else self.progress(key).end for key in voters.keys]
        end = sorted(ends, reverse=True)[voters.majority - 1]
        return end if end > self._epoch_start else None

    def silent_voters(self, voters: VoterSet, now: float) -> list[ReplicaKey]:
        """Return the other voters that have not fetched within half a fetch timeout; they may not know this leader."""
        recent = now - self._announce_seconds
        return [key for key in voters.keys if not key.is_same(self._me) and self.progress(key).fetched_at <= recent]

    def schedule_announcement(self, now: float) -> None:
        self.announce_at = now + self._announce_seconds

    def successors(self, voters: VoterSet) -> list[ReplicaKey]:
        """Return the other voters, the one with the longest log first."""
        others = [key for key in voters.keys if not key.is_same(self._me)]
        return sorted(others, key=lambda key: -self.progress(key).end)
