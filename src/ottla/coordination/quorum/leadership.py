"""What the leader of the quorum knows of the others: how far each has come, and when it was heard last.

**Committed** is what a majority of those who vote has on the disk: a fetch says so of all before its offset, since followers force what
they append before they fetch on. But only the leader's own epoch counts so: a record of an earlier one may be on most disks and still give
way to a leader who never had it. So a leader begins with a record of its own, and with that all before it is committed.

**It gives up** when most have not fetched for a while: they may have another leader by then, and whoever asks this one would
wait for ever.
"""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet

UNKNOWN = -1
NEVER = float("-inf")


class Progress(Struct):
    """How far a replica has come. Moments are readings of the monotonic clock, in seconds."""

    end: int = UNKNOWN
    fetched_at: float = NEVER
    caught_up_at: float = NEVER
    """When it last had all that the leader had."""


class Leadership:
    """One epoch of one leader."""

    def __init__(self, me: ReplicaKey, epoch_start: int, now: float, config: QuorumConfig) -> None:
        self.me = me
        self.epoch_start = epoch_start
        """The end of the log when it was elected: what it writes itself has this offset or a later one."""
        self.replicas: dict[ReplicaKey, Progress] = {}
        self._check_span = config.fetch_timeout_ms * config.CHECK_FACTOR / 1000
        self.check_at = now + self._check_span
        self._heard: set[ReplicaKey] = set()
        self._tell_span = config.fetch_timeout_ms / 2000
        self.tell_at = now
        """When those are told of the leader who do not fetch."""

    def progress(self, key: ReplicaKey) -> Progress:
        return self.replicas.setdefault(key, Progress())

    def fetched(self, key: ReplicaKey, offset: int, leader_end: int, voters: VoterSet, now: float) -> None:
        """A replica has all before an offset, of a log that does not part from this one."""
        one = self.progress(key)
        one.end = offset
        if offset >= leader_end:
            one.caught_up_at = now
        self.heard(key, voters, now)

    def heard(self, key: ReplicaKey, voters: VoterSet, now: float) -> None:
        """It asked, so it takes this one for the leader."""
        self.progress(key).fetched_at = now
        if not voters.has(key):
            return
        self._heard.add(key)
        if len({each for each in self._heard if voters.has(each)}) >= self._others_needed(voters):
            self._heard.clear()
            self.check_at = now + self._check_span

    def let_others_vote(self, voters: VoterSet, now: float) -> None:
        """Others than these vote from now on: who decided alone until now gives them their time to be heard, and no other leader more of it."""
        if not self._others_needed(voters):
            self.check_at = now + self._check_span

    def _others_needed(self, voters: VoterSet) -> int:
        return voters.majority - (1 if voters.has(self.me) else 0)

    def has_lost_the_quorum(self, voters: VoterSet, now: float) -> bool:
        """Whether too few have fetched for too long."""
        return self._others_needed(voters) > 0 and now >= self.check_at

    def committed(self, voters: VoterSet, durable: int) -> int | None:
        """Up to where a majority has the log; None as long as that is nothing of the leader's own epoch."""
        ends = [durable if key.is_same(self.me) else self.progress(key).end for key in voters.keys]
        reached = sorted(ends, reverse=True)[voters.majority - 1]
        return reached if reached > self.epoch_start else None

    def strangers(self, voters: VoterSet, now: float) -> list[ReplicaKey]:
        """Voters who have not fetched of late, perhaps since they know of no leader."""
        recent = now - self._tell_span
        return [key for key in voters.keys if not key.is_same(self.me) and self.progress(key).fetched_at <= recent]

    def told(self, now: float) -> None:
        self.tell_at = now + self._tell_span

    def successors(self, voters: VoterSet) -> list[ReplicaKey]:
        """The other voters, the one that has come farthest first."""
        others = [key for key in voters.keys if not key.is_same(self.me)]
        return sorted(others, key=lambda key: -self.progress(key).end)
