"""The sticky assignment for members with different subscriptions.

Members keep the partitions they own. Free partitions go to the member with the fewest, near ones first if racks make a
difference. Then partitions move from members with more to members with fewer, until no subscriber could take one from a
member with at least two more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import Subscription
from ottla.client.consumer.assignors.claims import Claims
from ottla.client.consumer.assignors.holdings import Holdings
from ottla.client.consumer.assignors.movements import Movements
from ottla.client.consumer.assignors.racks import Nearness
from ottla.model import TopicPartition


class GeneralAssignment:
    """The computation of one assignment."""

    def __init__(
        self,
        counts: Mapping[str, int],
        claims: Claims,
        former: Mapping[TopicPartition, str],
        subscriptions: Mapping[str, Subscription],
        nearness: Nearness,
    ) -> None:
        wanted = {member: frozenset(subscriptions[member].topics) for member in claims.owned}
        takers = {topic: [member for member in wanted if topic in wanted[member]] for topic in counts}
        self._counts = counts
        self._claims = claims
        self._former = former
        """The owner of a partition in an earlier generation."""
        self._nearness = nearness
        self._wanted = wanted
        self._takers = takers
        self._holdings = Holdings(claims.owned, takers)
        self._movements = Movements()
        self._members = list(claims.owned)

    def build(self) -> dict[str, list[TopicPartition]]:
        revoked = self._keep_owned()
        # Topics with few subscribers come first, because they have the least choice.
        order = sorted(self._counts, key=lambda topic: (len(self._takers[topic]), topic))
        everything = [TopicPartition(topic, number) for topic in order for number in range(self._counts[topic])]
        free = [tp for tp in everything if tp not in self._holdings.owner]
        fresh = len(free) == len(everything)
        self._distribute(free)
        fixed = self._exclude_fixed_members()
        self._balance(self._movable(everything), self._movable(free), fresh=fresh, revoked=revoked)
        given: dict[str, list[TopicPartition]] = {member: [] for member in self._members}
        for tp, member in (self._holdings.owner | fixed).items():
            given[member].append(tp)
        return given

    def _keep_owned(self) -> bool:
        """Keep the partitions they own and are subscribed to. Return True if one had to be revoked."""
        revoked = False
        for member, owned in self._claims.owned.items():
            for tp in owned:
                if tp.topic not in self._wanted[member] or self._nearness.is_far(member, tp):
                    revoked = True
                else:
                    self._holdings.assign_partition(tp, member)
        return revoked

    def _distribute(self, free: Iterable[TopicPartition]) -> None:
        """Give each free partition to the member with the fewest, near ones first."""
        left = list(free)
        if self._nearness.member_racks:
            left = [tp for tp in left if not self._assign_partition(tp, self._near_subscribers(tp))]
        for tp in left:
            self._assign_partition(tp, self._takers[tp.topic])

    def _near_subscribers(self, tp: TopicPartition) -> list[str]:
        return [member for member in self._takers[tp.topic] if not self._nearness.is_far(member, tp)]

    def _assign_partition(self, tp: TopicPartition, members: Sequence[str]) -> bool:
        if members:
            self._holdings.assign_partition(tp, self._holdings.least_loaded(members))
        return bool(members)

    def _movable(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [tp for tp in partitions if len(self._takers[tp.topic]) > 1]

    def _exclude_fixed_members(self) -> dict[TopicPartition, str]:
        """Set apart members that have all their topics without competition. Return their partitions."""
        apart = {member for member, wanted in self._wanted.items() if self._is_fixed(member, wanted)}
        for member in apart:
            del self._holdings.sizes[member]
        return {tp: member for tp, member in self._holdings.owner.items() if member in apart}

    def _is_fixed(self, member: str, wanted: Iterable[str]) -> bool:
        known = [topic for topic in wanted if topic in self._counts]
        has_all = self._holdings.sizes[member] >= sum(self._counts[topic] for topic in known)
        return has_all and not any(len(self._takers[topic]) > 1 for topic in known)

    def _balance(
        self, everything: Sequence[TopicPartition], free: Sequence[TopicPartition], *, fresh: bool, revoked: bool
    ) -> None:
        """Move partitions. If the result is not more even than before, undo it."""
        if not self._holdings.sizes:
            return
        before = self._holdings.copy()
        if not revoked:
            self._move_some_of(free)
        if self._move_some_of(everything) and not fresh and self._holdings.score() >= before.score():
            self._holdings = before

    def _move_some_of(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move partitions to better owners until nothing changes. Return True if any was moved."""
        moved = False
        while self._move_each(partitions):
            moved = True
        return moved

    def _move_each(self, partitions: Sequence[TopicPartition]) -> bool:
        moved = False
        for tp in partitions:
            if self._holdings.is_balanced():
                break
            better = self._better_owner(tp)
            if better is not None:
                self._move_partition(tp, better)
                moved = True
        return moved

    def _better_owner(self, tp: TopicPartition) -> str | None:
        """Return a former owner with at least two fewer partitions, else the member with the fewest; None if the owner is right."""
        sizes = self._holdings.sizes
        limit = sizes[self._holdings.owner[tp]] - 1
        former = self._former.get(tp)
        if former in sizes and tp.topic in self._wanted[former] and sizes[former] < limit:
            return former
        least = self._holdings.least_loaded(self._takers[tp.topic])
        return least if sizes[least] < limit else None

    def _move_partition(self, tp: TopicPartition, member: str) -> None:
        tp = self._movements.choose_partition(tp, self._holdings.owner[tp], member)
        self._movements.record_move(tp, self._holdings.owner[tp], member)
        self._holdings.move_partition(tp, member)
