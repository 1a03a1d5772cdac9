"""Histograms of request latencies by API, only while metrics are read."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate

from ottla.protocol.apis import APIS

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds; the last bucket, above them, has no bound."""
LEAST, BUCKETS = BOUNDS[0], len(BOUNDS) + 1
LAST_KEY = max(APIS)


class Latencies:
    """Counts latencies in the broker's loop."""

    __slots__ = ("_counts", "_sums")

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * (LAST_KEY + 1) * BUCKETS))
        """The buckets of all APIs, one API after the other."""
        self._sums = array("d", bytes(8 * (LAST_KEY + 1)))

    def record(self, api_key: int, seconds: float) -> None:
        """Count the latency of a request of an API."""
        if 0 <= api_key <= LAST_KEY:
            self._counts[api_key * BUCKETS + (bisect_left(BOUNDS, seconds) if seconds > LEAST else 0)] += 1
            self._sums[api_key] += seconds

    def buckets(self) -> dict[int, tuple[list[tuple[str, float]], float]]:
        """Return by API the cumulative count up to each bound, as in Prometheus, and the sum in seconds."""
        bounds = (*map(str, BOUNDS), "+Inf")
        counted = [list(accumulate(self._counts[at : at + BUCKETS])) for at in range(0, len(self._counts), BUCKETS)]
        return {
            key: (list(zip(bounds, map(float, counts), strict=True)), self._sums[key])
            for key, counts in enumerate(counted)
            if counts[BUCKETS - 1]
        }
