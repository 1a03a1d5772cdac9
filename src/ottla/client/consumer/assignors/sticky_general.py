"""The sticky assignment where members want different topics.

Members keep what they own; what is free goes to whoever has the fewest, near ones first where racks matter; then
partitions are moved from those who have more to those who have less, until nobody could take one from somebody who
has two more.
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
    """One assignment in the making."""

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
        """Who had a partition in an earlier generation."""
        self._nearness = nearness
        self._wanted = wanted
        self._takers = takers
        self._holdings = Holdings(claims.owned, takers)
        self._movements = Movements()
        self._members = list(claims.owned)

    def build(self) -> dict[str, list[TopicPartition]]:
        revoked = self._keep()
        # Topics that few want come first: of those there is the least choice.
        order = sorted(self._counts, key=lambda topic: (len(self._takers[topic]), topic))
        everything = [TopicPartition(topic, number) for topic in order for number in range(self._counts[topic])]
        free = [tp for tp in everything if tp not in self._holdings.owner]
        fresh = len(free) == len(everything)
        self._deal(free)
        fixed = self._set_apart_who_cannot_change()
        self._balance(self._movable(everything), self._movable(free), fresh=fresh, revoked=revoked)
        given: dict[str, list[TopicPartition]] = {member: [] for member in self._members}
        for tp, member in (self._holdings.owner | fixed).items():
            given[member].append(tp)
        return given

    def _keep(self) -> bool:
        """Leave members what they own and still want; returns whether something had to be taken away."""
        revoked = False
        for member, owned in self._claims.owned.items():
            for tp in owned:
                if tp.topic not in self._wanted[member] or self._nearness.is_far(member, tp):
                    revoked = True
                else:
                    self._holdings.give(tp, member)
        return revoked

    def _deal(self, free: Iterable[TopicPartition]) -> None:
        """Give each free partition to whoever has the fewest, near ones first."""
        left = list(free)
        if self._nearness.member_racks:
            left = [tp for tp in left if not self._give(tp, self._near_takers(tp))]
        for tp in left:
            self._give(tp, self._takers[tp.topic])

    def _near_takers(self, tp: TopicPartition) -> list[str]:
        return [member for member in self._takers[tp.topic] if not self._nearness.is_far(member, tp)]

    def _give(self, tp: TopicPartition, members: Sequence[str]) -> bool:
        if members:
            self._holdings.give(tp, self._holdings.least(members))
        return bool(members)

    def _movable(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [tp for tp in partitions if len(self._takers[tp.topic]) > 1]

    def _set_apart_who_cannot_change(self) -> dict[TopicPartition, str]:
        """Members that have all they want, and nobody else wants any of it; returns what they have."""
        apart = {member for member, wanted in self._wanted.items() if self._cannot_change(member, wanted)}
        for member in apart:
            del self._holdings.sizes[member]
        return {tp: member for tp, member in self._holdings.owner.items() if member in apart}

    def _cannot_change(self, member: str, wanted: Iterable[str]) -> bool:
        known = [topic for topic in wanted if topic in self._counts]
        has_all = self._holdings.sizes[member] >= sum(self._counts[topic] for topic in known)
        return has_all and not any(len(self._takers[topic]) > 1 for topic in known)

    def _balance(
        self, everything: Sequence[TopicPartition], free: Sequence[TopicPartition], *, fresh: bool, revoked: bool
    ) -> None:
        """Move partitions; where that leaves things no more even than they were, leave everything where it was."""
        if not self._holdings.sizes:
            return
        before = self._holdings.copy()
        if not revoked:
            self._move_some_of(free)
        if self._move_some_of(everything) and not fresh and self._holdings.score() >= before.score():
            self._holdings = before

    def _move_some_of(self, partitions: Sequence[TopicPartition]) -> bool:
        """Move those that somebody else should have until nothing changes any more; returns whether any was."""
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
                self._move(tp, better)
                moved = True
        return moved

    def _better_owner(self, tp: TopicPartition) -> str | None:
        """A former owner that has at least two less, else the one with the fewest; None where the owner is right."""
        sizes = self._holdings.sizes
        limit = sizes[self._holdings.owner[tp]] - 1
        former = self._former.get(tp)
        if former in sizes and tp.topic in self._wanted[former] and sizes[former] < limit:
            return former
        least = self._holdings.least(self._takers[tp.topic])
        return least if sizes[least] < limit else None

    def _move(self, tp: TopicPartition, member: str) -> None:
        tp = self._movements.better(tp, self._holdings.owner[tp], member)
        self._movements.move(tp, self._holdings.owner[tp], member)
        self._holdings.move(tp, member)
