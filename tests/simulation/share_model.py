"""The judge of a share group: what members were given and what was confirmed to them, whatever leaders and coordinators
believe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ottla.broker.coordinators.share_coordinator import WriteState
from ottla.coordination.share.events import AcquiredRange, StateWrite
from ottla.coordination.share.record_state import AcknowledgeType, RecordState

SETTLING = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT, AcknowledgeType.GAP)


class LeaderModel:
    """The locks and delivery counts of one leader, from the answers that it gave."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.locks: dict[int, tuple[str, float]] = {}
        """Offset → the member that has it, and until when."""
        self.counts: dict[int, int] = {}

    def has_lock(self, member: str, offset: int, now: float) -> bool:
        owner, until = self.locks.get(offset, ("", 0.0))
        return owner == member and now < until

    def unlock(self, member: str, offsets: Iterable[int]) -> None:
        for offset in offsets:
            if self.locks.get(offset, ("", 0.0))[0] == member:
                del self.locks[offset]


class ShareModel:
    """The records of one partition, as the members of one group see them."""

    def __init__(self, lock_duration: float, most_deliveries: int) -> None:
        self.lock_duration = lock_duration
        self.most_deliveries = most_deliveries
        self.deliveries: defaultdict[int, int] = defaultdict(int)
        self.requested: set[int] = set()
        """Offsets that a member acknowledged, confirmed or not."""
        self.confirmed: dict[int, int] = {}
        """Offset → the leader epoch in which it was confirmed to be settled."""
        self.rejected: set[int] = set()
        self.copied: set[int] = set()
        self.persisted: dict[int, tuple[int, int]] = {}
        """Offset → the highest delivery count that was confirmed to be stored, and the leader epoch."""

    def acquired(self, leader: LeaderModel, member: str, ranges: Iterable[AcquiredRange], now: float) -> None:
        for each in ranges:
            for offset in range(each.first_offset, each.last_offset + 1):
                self._check_lock(leader, member, offset, now)
                self._check_count(leader, offset, each.delivery_count)
                finished_in = self.confirmed.get(offset)
                assert finished_in is None or finished_in > leader.epoch, f"{offset} is delivered after it was settled"
                leader.locks[offset] = (member, now + self.lock_duration)
                leader.counts[offset] = each.delivery_count
                self.deliveries[offset] += 1

    def renewed(self, leader: LeaderModel, member: str, offsets: Iterable[int], now: float) -> None:
        for offset in offsets:
            if leader.locks.get(offset, ("", 0.0))[0] == member:
                leader.locks[offset] = (member, now + self.lock_duration)

    def closed(self, leader: LeaderModel, member: str) -> None:
        """Deliveries of a session that was closed do not count, and its records are free."""
        for offset in [offset for offset, (owner, _) in leader.locks.items() if owner == member]:
            del leader.locks[offset]
            leader.counts.pop(offset, None)

    def settled(self, leader: LeaderModel, types: dict[int, int]) -> None:
        """The acknowledgement of these offsets was confirmed."""
        for offset, kind in types.items():
            if kind in SETTLING:
                self.confirmed.setdefault(offset, leader.epoch)
            if kind == AcknowledgeType.REJECT:
                self.rejected.add(offset)

    def stored(self, write: StateWrite | WriteState) -> None:
        for batch in write.batches:
            if batch.state == RecordState.AVAILABLE:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    before = self.persisted.get(offset, (0, 0))
                    self.persisted[offset] = max(before, (batch.delivery_count, write.leader_epoch))

    def check_end(self, offsets: Iterable[int], has_dead_letter_queue: bool) -> None:
        """Assert that each record was settled by a member, or delivered as often as possible."""
        for offset in offsets:
            reason = offset in self.requested or self.deliveries[offset] >= self.most_deliveries
            assert reason, f"{offset} was forgotten after {self.deliveries[offset]} deliveries"
            if has_dead_letter_queue and offset in self.rejected:
                assert offset in self.copied, f"{offset} was rejected and not copied"

    def _check_lock(self, leader: LeaderModel, member: str, offset: int, now: float) -> None:
        owner, until = leader.locks.get(offset, ("", 0.0))
        assert now >= until, f"{offset} is given to {member} while {owner} has it until {until:.3f}"

    def _check_count(self, leader: LeaderModel, offset: int, count: int) -> None:
        assert count <= self.most_deliveries, f"{offset} is delivered for the {count}th time"
        before = leader.counts.get(offset)
        if before is not None:
            assert count == before + 1, f"{offset} is delivered with count {count} after {before}"
        stored, epoch = self.persisted.get(offset, (0, 0))
        assert count > stored or epoch > leader.epoch, f"{offset} is delivered with count {count}; {stored} was stored"
