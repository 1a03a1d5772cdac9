"""The quota of replication traffic, which protects clients during a reassignment (KIP-73).

Replicas are throttled individually: a topic lists them as `0:1` for partition 0 on broker 1, or `*` for all. A replica in sync is never throttled,
because a throttle could shrink the in-sync set; its traffic counts nevertheless. A broker has one quota for what it sends as leader, and one
for what it fetches as follower.
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

    def wait_seconds(self, limit: int, now: float) -> float:
        """Seconds for which copies that are behind are held back; 0 where they are not. A limit of 0 lets nothing through."""
        if limit <= 0:
            return WINDOW_SECONDS
        return self._rate.throttle_ms(limit, now) / 1000


def is_throttled(replicas: Sequence[str], partition: int, broker: int) -> bool:
    """Return True if a topic lists this replica as throttled."""
    return EVERY in replicas or f"{partition}:{broker}" in replicas
