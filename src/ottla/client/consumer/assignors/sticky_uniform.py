"""The sticky assignment where all members want the same topics.

Each gets the same number of partitions, or one more. Members keep what they own up to that; then the rest is dealt
out in turn, first to members near to a replica, where racks matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.client.consumer.assignors.claims import Claims
from ottla.client.consumer.assignors.racks import Nearness
from ottla.model import TopicPartition

Given = dict[str, list[TopicPartition]]


class UniformAssignment:
    """One assignment in the making."""

    def __init__(self, counts: Mapping[str, int], claims: Claims, nearness: Nearness) -> None:
        self.given: Given = {member: [] for member in claims.owned}
        self.moving: dict[TopicPartition, str] = {}
        """What goes from one owner to another, and its new one."""
        self._counts = counts
        self._claims = claims
        self._nearness = nearness
        self._revoked: dict[TopicPartition, str] = {}
        """What a member owned and does not keep, at least not for its own sake."""
        self._quota, self._extra = divmod(sum(counts.values()), len(claims.owned))
        """Partitions for each member, and how many members get one more."""
        self._most = self._quota + (self._extra > 0)
        self._below: list[str] = []
        """Members below the quota."""
        self._at_quota: list[str] = []
        """Members at the quota that may get one more."""

    def build(self) -> Given:
        for member, owned in self._claims.owned.items():
            self._keep(member, owned)
        kept = {tp for mine in self.given.values() for tp in mine}
        everything = (TopicPartition(t, number) for t in sorted(self._counts) for number in range(self._counts[t]))
        free = self._nearness.rarest_first([tp for tp in everything if tp not in kept])
        self._below.sort()
        self._at_quota.sort()
        if self._nearness.member_racks:
            free = self._deal_by_rack(free)
        self._deal(free)
        return self.given

    def _keep(self, member: str, owned: Mapping[TopicPartition, None]) -> None:
        """Leave a member what it may keep."""
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
        """A member has one more than the quota; after the last of those, nobody at the quota gets any more."""
        self._extra -= 1
        if not self._extra:
            self._at_quota.clear()

    def _deal_by_rack(self, free: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to members near to them; returns those that have none with room."""
        turn = 0
        left = []
        for tp in free:
            at = self._nearness.next_near(tp, self._below, turn)
            if at >= 0:
                turn = self._give_below(tp, at)
            elif (at := self._nearness.next_near(tp, self._at_quota, 0)) >= 0:
                self._give(tp, self._at_quota.pop(at))
                self._count_extra()
            else:
                left.append(tp)
        return left

    def _give_below(self, tp: TopicPartition, at: int) -> int:
        """Give a partition to a member below the quota; returns whose turn is next."""
        member = self._below[at]
        if self._give(tp, member) < self._quota:
            at += 1
        else:
            del self._below[at]
            if self._extra > 0:
                self._at_quota.append(member)
        return at % len(self._below) if self._below else 0

    def _deal(self, free: Sequence[TopicPartition]) -> None:
        """Give out the rest in turn: to those below the quota, then one each to those at it."""
        turn = 0
        for tp in free:
            if not self._below:
                self._give(tp, self._at_quota.pop(0))
                continue
            turn = turn if turn < len(self._below) else 0
            if self._give(tp, self._below[turn]) < self._quota:
                turn += 1
            else:
                self._at_quota.append(self._below.pop(turn))
        assert not self._below

    def _give(self, tp: TopicPartition, member: str) -> int:
        """Returns how many the member has then."""
        mine = self.given[member]
        mine.append(tp)
        if self._revoked.get(tp, member) != member or tp in self._claims.contested:
            self.moving[tp] = member
        return len(mine)
