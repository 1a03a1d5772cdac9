"""The sticky assignment for members with equal subscriptions.

Each member gets the same number of partitions, or one more. Members keep their partitions up to that number; the rest
is dealt in turn, first to members near to a replica if racks make a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.client.consumer.assignors.claims import Claims
from ottla.client.consumer.assignors.racks import Nearness
from ottla.model import TopicPartition

Given = dict[str, list[TopicPartition]]


class UniformAssignment:
    """The computation of one assignment."""

    def __init__(self, counts: Mapping[str, int], claims: Claims, nearness: Nearness) -> None:
        self.given: Given = {member: [] for member in claims.owned}
        self.moving: dict[TopicPartition, str] = {}
        """Partitions that move from one owner to another, with the new owner."""
        self._counts = counts
        self._claims = claims
        self._nearness = nearness
        self._revoked: dict[TopicPartition, str] = {}
        """Partitions that a member owned and does not keep directly."""
        self._quota, self._extra = divmod(sum(counts.values()), len(claims.owned))
        """Partitions per member, and the number of members that get one more."""
        self._most = self._quota + (self._extra > 0)
        self._below: list[str] = []
        """Members below the quota."""
        self._at_quota: list[str] = []
        """Members at the quota that may get one more."""

    def build(self) -> Given:
        for member, owned in self._claims.owned.items():
            self._keep_owned(member, owned)
        kept = {tp for mine in self.given.values() for tp in mine}
        everything = (TopicPartition(t, number) for t in sorted(self._counts) for number in range(self._counts[t]))
        free = self._nearness.sort_rarest_first([tp for tp in everything if tp not in kept])
        self._below.sort()
        self._at_quota.sort()
        if self._nearness.member_racks:
            free = self._distribute_by_rack(free)
        self._distribute(free)
        return self.given

    def _keep_owned(self, member: str, owned: Mapping[TopicPartition, None]) -> None:
        """Keep the partitions of a member up to its limit."""
        far = [tp for tp in owned if self._nearness.is_far(member, tp)]
        near = [tp for tp in owned if not self._nearness.is_far(member, tp) and tp not in self._claims.contested]
        near.sort(key=lambda tp: (tp.partition, tp.topic))
        may = self._quota
        if len(near) < self._quota:
            self._below.append(member)
        elif len(near) >= self._most and self._extra > 0:
            may = self._most
            self._count_extra()
        elif self._extra > 0:
            self._at_quota.append(member)
        self.given[member] += near[:may]
        self._revoked.update(dict.fromkeys([*far, *near[may:]], member))

    def _count_extra(self) -> None:
        """Count a member with one more than the quota. After the last one, members at the quota get no more."""
        self._extra -= 1
        if not self._extra:
            self._at_quota.clear()

    def _distribute_by_rack(self, free: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to near members. Return those without a near member below its limit."""
        turn = 0
        left = []
        for tp in free:
            at = self._nearness.next_near(tp, self._below, turn)
            if at >= 0:
                turn = self._assign_below(tp, at)
            elif (at := self._nearness.next_near(tp, self._at_quota, 0)) >= 0:
                self._assign_partition(tp, self._at_quota.pop(at))
                self._count_extra()
            else:
                left.append(tp)
        return left

    def _assign_below(self, tp: TopicPartition, at: int) -> int:
        """Give a partition to a member below the quota. Return the index of the next in turn."""
        member = self._below[at]
        if self._assign_partition(tp, member) < self._quota:
            at += 1
        else:
            del self._below[at]
            if self._extra > 0:
                self._at_quota.append(member)
        return at % len(self._below) if self._below else 0

    def _distribute(self, free: Sequence[TopicPartition]) -> None:
        """Deal the rest in turn: to members below the quota, then one each to those at it."""
        turn = 0
        for tp in free:
            if not self._below:
                self._assign_partition(tp, self._at_quota.pop(0))
                continue
            turn = turn if turn < len(self._below) else 0
            if self._assign_partition(tp, self._below[turn]) < self._quota:
                turn += 1
            else:
                self._at_quota.append(self._below.pop(turn))
        assert not self._below

    def _assign_partition(self, tp: TopicPartition, member: str) -> int:
        """Give a partition to a member and return its new count."""
        mine = self.given[member]
        mine.append(tp)
        if self._revoked.get(tp, member) != member or tp in self._claims.contested:
            self.moving[tp] = member
        return len(mine)
