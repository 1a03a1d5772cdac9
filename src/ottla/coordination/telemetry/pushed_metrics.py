"""The last values of the metrics that clients have pushed; sums with delta temporality are accumulated.

Any client may push, so everything is bounded: the total number of series, for which those of the client idle for longest are removed, and the
length of their names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.telemetry.subscription import Client
from ottla.protocol.metrics_data import Attributes, MetricKind, Point

MOST_SERIES = 100_000
"""For all clients: about 40 MB."""
LONGEST_NAME = 200
MOST_ATTRIBUTES = 20
Series = tuple[str, Attributes]


class Value(NamedTuple):
    """The value of a series: the last value of a gauge, the total of a sum."""

    number: float
    is_sum: bool


class Pusher(Struct):
    """The series of one client."""

    client: Client
    values: dict[Series, Value] = field(default_factory=dict)


class PushedMetrics:
    """The stored series, by client instance."""

    def __init__(self, most_series: int = MOST_SERIES) -> None:
        self._most = most_series
        self._count = 0
        self._pushers: dict[UUID, Pusher] = {}
        """By instance id; the one that is idle for longest is the first."""

    def __iter__(self) -> Iterator[tuple[UUID, Pusher]]:
        return iter(self._pushers.items())

    def __len__(self) -> int:
        return len(self._pushers)

    @property
    def series_count(self) -> int:
        return self._count

    def take(self, instance_id: UUID, client: Client, points: Iterable[Point]) -> None:
        """Store the points of a push; series without a point keep their value."""
        pusher = self._pushers.pop(instance_id, None) or Pusher(client)
        self._pushers[instance_id] = pusher
        for point in points:
            if is_bounded(point):
                self._set(pusher, point)

    def forget(self, instance_ids: Iterable[UUID]) -> None:
        """Remove the series of client instances."""
        for each in instance_ids:
            gone = self._pushers.pop(each, None)
            self._count -= len(gone.values) if gone is not None else 0

    def _set(self, pusher: Pusher, point: Point) -> None:
        series = (point.name, point.attributes)
        before = pusher.values.get(series)
        if before is None and not self._has_space(pusher):
            return
        self._count += before is None
        grown = before.number if before is not None and before.is_sum and point.kind is MetricKind.DELTA else 0.0
        pusher.values[series] = Value(grown + point.value, point.kind is not MetricKind.GAUGE)

    def _has_space(self, pusher: Pusher) -> bool:
        """Return True if one more series may be stored, after those of idle clients were removed."""
        while self._count >= self._most:
            oldest, values = next(iter(self._pushers.items()))
            if values is pusher:
                return False
            self.forget([oldest])
        return True


def is_bounded(point: Point) -> bool:
    """Return True if the point has a number and names of acceptable length."""
    texts = [point.name, *(part for pair in point.attributes for part in pair)]
    return (
        math.isfinite(point.value)
        and len(point.attributes) <= MOST_ATTRIBUTES
        and bool(point.name)
        and max(map(len, texts)) <= LONGEST_NAME
    )
