"""How long requests took from their arrival to their answer, gathered by API in buckets; only where somebody reads it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate

from ottla.broker import plain_bytes
from ottla.protocol.apis import APIS

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds; the last bucket, above them, has no bound."""
LEAST, BUCKETS = BOUNDS[0], len(BOUNDS) + 1
LAST_KEY = max(APIS)


class Latencies:
    """Counted in the broker's loop."""

    __slots__ = ("_counts", "_sums")

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * (LAST_KEY + 1) * BUCKETS))
        """All buckets of one API after those of the other."""
        self._sums = array("d", bytes(8 * (LAST_KEY + 1)))

    def note_frame(self, frame: memoryview, seconds: float) -> None:
        """The request in that frame was answered so long after it came."""
        octets = plain_bytes.begin_of(frame)
        self.note(octets[0] << 8 | octets[1], seconds)

    def note(self, api_key: int, seconds: float) -> None:
        """A request of that API was answered so long after it came."""
        if 0 <= api_key <= LAST_KEY:
            self._counts[api_key * BUCKETS + (bisect_left(BOUNDS, seconds) if seconds > LEAST else 0)] += 1
            self._sums[api_key] += seconds

    def buckets(self) -> dict[int, tuple[list[tuple[str, float]], float]]:
        """By API: up to each bound how many, as Prometheus counts them, and the sum of all seconds."""
        bounds = (*map(str, BOUNDS), "+Inf")
        counted = [list(accumulate(self._counts[at : at + BUCKETS])) for at in range(0, len(self._counts), BUCKETS)]
        return {
            key: (list(zip(bounds, map(float, counts), strict=True)), self._sums[key])
            for key, counts in enumerate(counted)
            if counts[BUCKETS - 1]
        }
