"""A damaged replica with intact ones on other brokers: it leaves the ISR, and is fetched again from the damage on (0105).

    damage is known ──► others in the ISR ──► removed by the controllers ──► follows ──► its leader has the records ──► truncated there
                   └──► no other: the last known complete replica leads, if any (0107); else this one leads on, and readers receive an error there

No replica in the ISR is truncated: the controllers first remove it from the ISR, as if its directory were lost, and
elect another leader. Nor is anything truncated before the leader has sent all of the missing records, intact. If the
leader has the same damage the replica stays as it is, and fetches on behind it, until another broker leads.

Pure: the state of one replica while the broker runs.
"""

from __future__ import annotations

from collections.abc import Collection

from ottla.storage.batches.damage import Damage
from ottla.storage.log import Log

RELIEF_SECONDS = 5.0
"""The time for which readers receive a retriable error before they receive the damage's error."""

HEIR_SECONDS = 30.0
"""The time for which a replica that a crash has truncated has no leader, while the one that was complete before the
crash is away.
"""


class ReplicaRepair:
    """The state of one replica. Damages are identified by their offsets."""

    __slots__ = ("_asked_at", "_attempts", "_hopeless", "_waits_since")

    def __init__(self) -> None:
        self._attempts: dict[int, set[int]] = {}
        self._asked_at = float("-inf")
        self._hopeless: set[tuple[int, int]] = set()
        self._waits_since: float | None = None

    def find_damage(self, log: Log, leader: int) -> Damage | None:
        """Return the first known damage that is not known to be in that leader's log as well."""
        return next((each for each in log.known_damages() if (each.offset, leader) not in self._hopeless), None)

    def record_attempt(self, damage: Damage, others: Collection[int], now: float) -> bool:
        """Return True if these brokers in the ISR are to continue without the replica: once, until there is a new one among them."""
        if self.has_attempted(damage, others):
            return False
        self._attempts.setdefault(damage.offset, set()).update(others)
        self._asked_at = now
        return True

    def has_attempted(self, damage: Damage, others: Collection[int]) -> bool:
        return self._attempts.get(damage.offset, set()).issuperset(others)

    def is_waiting_for_leader(self, now: float) -> bool:
        """Return True if others were requested to lead a moment ago."""
        return now < self._asked_at + RELIEF_SECONDS

    def is_waiting_for_complete_replica(self, now: float) -> bool:
        """Return True while a broker that is away and may have the missing records is waited for; this happens once."""
        if self._waits_since is None:
            self._waits_since = now
        return now < self._waits_since + HEIR_SECONDS

    def keep_damage(self, damage: Damage, leader: int) -> None:
        """Record that the leader has the same damage."""
        self._hopeless.add((damage.offset, leader))

    def complete(self) -> None:
        """Record that the damaged records were truncated."""
        self._attempts, self._hopeless = {}, set()
