"""A copy that is damaged while others are whole: it leaves the in-sync set, and is copied anew from the damage on.

    damage is known ──► others are in sync ──► out of sync, by the controllers ──► follows ──► its leader has the records ──► cut there
                   └──► nobody else is: an heir leads, if there is one (0107); else it leads on, and readers who come there get an error

Nothing is cut of a copy that counts: the controllers first say that it is in sync no more, as if its directory were lost, and so have another lead. Nor is
anything cut before the leader has sent, whole, what is missing. Where the leader has the same damage the copy stays as it is, and is
copied on behind it, until somebody else leads.

Pure: what is remembered of one copy while the broker runs.
"""

from __future__ import annotations

from collections.abc import Collection

from ottla.storage.batches.damage import Damage
from ottla.storage.log import Log

RELIEF_SECONDS = 5.0
"""So long readers are told to ask again, for another leader, before they are told of the damage."""

HEIR_SECONDS = 30.0
"""So long a copy that a crash has left without its end is led by nobody, while one who had everything when it was killed is not there."""


class Healing:
    """Of one copy. Damages are known by their offsets."""

    __slots__ = ("_asked", "_asked_at", "_hopeless", "_waits_since")

    def __init__(self) -> None:
        self._asked: dict[int, set[int]] = {}
        self._asked_at = float("-inf")
        self._hopeless: set[tuple[int, int]] = set()
        self._waits_since: float | None = None

    def damage(self, log: Log, leader: int) -> Damage | None:
        """The first that is known, and not known to be in that leader's log as well."""
        return next((each for each in log.known_damages() if (each.offset, leader) not in self._hopeless), None)

    def ask(self, damage: Damage, others: Collection[int], now: float) -> bool:
        """Whether these, who are in sync, are to go on without it: once, until there is somebody new among them."""
        if self.has_asked(damage, others):
            return False
        self._asked.setdefault(damage.offset, set()).update(others)
        self._asked_at = now
        return True

    def has_asked(self, damage: Damage, others: Collection[int]) -> bool:
        return self._asked.get(damage.offset, set()).issuperset(others)

    def awaits_relief(self, now: float) -> bool:
        """Whether others were asked a moment ago."""
        return now < self._asked_at + RELIEF_SECONDS

    def awaits_heir(self, now: float) -> bool:
        """Whether to wait for one who is not there and may have what is missing here; it is waited for once."""
        if self._waits_since is None:
            self._waits_since = now
        return now < self._waits_since + HEIR_SECONDS

    def despair(self, damage: Damage, leader: int) -> None:
        """That leader does not have it either."""
        self._hopeless.add((damage.offset, leader))

    def healed(self) -> None:
        """All that was damaged is cut off; what comes now is another matter."""
        self._asked, self._hopeless = {}, set()
