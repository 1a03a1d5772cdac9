"""What copying may take of the network, so that a reassignment does not starve the clients (KIP-73).

Copies are throttled one by one: a topic names those that are, `0:1` for partition 0 on broker 1, `*` for all. A copy in sync is
never held back, else a throttle could shrink the in-sync set; what it takes counts all the same. A broker has one of these for
what it sends as leader, and one for what it asks for as follower.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.coordination.quotas.rate import Rate

WINDOWS, WINDOW_SECONDS = 11, 1.0
"""`replication.quota.window.num` and `replication.quota.window.size.seconds`"""
EVERY = "*"


class ReplicationThrottle:
    """One side's bytes, next to what they may be."""

    def __init__(self, count: int = WINDOWS, window: float = WINDOW_SECONDS) -> None:
        self._rate = Rate(count, window)

    def record(self, size: int, now: float) -> None:
        self._rate.record(size, now)

    def wait(self, limit: int, now: float) -> float:
        """Seconds for which copies that are behind are held back; 0 where they are not. A limit of 0 lets nothing through."""
        if limit <= 0:
            return WINDOW_SECONDS
        return self._rate.throttle_ms(limit, now) / 1000


def names(replicas: Sequence[str], partition: int, broker: int) -> bool:
    """Whether a topic names this copy as throttled."""
    return EVERY in replicas or f"{partition}:{broker}" in replicas
