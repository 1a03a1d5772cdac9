"""The last values of what clients have pushed; sums that are told by what they grew by are added up.

Who pushes is whoever connects, so there is a bound on everything: on series in all, where those who were silent longest make
room, and on the length of what names them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.telemetry.subscription import Client
from ottla.protocol.metrics_data import Attributes, Kind, Point

MOST_SERIES = 100_000
"""Of all clients: some 40 MB."""
LONGEST_NAME = 200
MOST_ATTRIBUTES = 20
Series = tuple[str, Attributes]


class Value(NamedTuple):
    """Where a series stands: a gauge by what was told last, a sum by all that was told."""

    number: float
    is_sum: bool


class Pusher(Struct):
    """What one client has told."""

    client: Client
    values: dict[Series, Value] = field(default_factory=dict)


class PushedMetrics:
    """All that is kept, by the client instance that told it."""

    def __init__(self, most_series: int = MOST_SERIES) -> None:
        self._most = most_series
        self._count = 0
        self._pushers: dict[UUID, Pusher] = {}
        """The one that was silent longest stands first."""

    def __iter__(self) -> Iterator[tuple[UUID, Pusher]]:
        return iter(self._pushers.items())

    def __len__(self) -> int:
        return len(self._pushers)

    @property
    def series_count(self) -> int:
        return self._count

    def take(self, instance_id: UUID, client: Client, points: Iterable[Point]) -> None:
        """A client has pushed; what it did not tell this time stays as it was."""
        pusher = self._pushers.pop(instance_id, None) or Pusher(client)
        self._pushers[instance_id] = pusher
        for point in points:
            if is_bounded(point):
                self._set(pusher, point)

    def forget(self, instance_ids: Iterable[UUID]) -> None:
        """They are not heard of any more."""
        for each in instance_ids:
            gone = self._pushers.pop(each, None)
            self._count -= len(gone.values) if gone is not None else 0

    def _set(self, pusher: Pusher, point: Point) -> None:
        series = (point.name, point.attributes)
        before = pusher.values.get(series)
        if before is None and not self._has_room(pusher):
            return
        self._count += before is None
        grown = before.number if before is not None and before.is_sum and point.kind is Kind.DELTA else 0.0
        pusher.values[series] = Value(grown + point.value, point.kind is not Kind.GAUGE)

    def _has_room(self, pusher: Pusher) -> bool:
        """Whether one more series may be kept, after those of who was silent longest have gone."""
        while self._count >= self._most:
            oldest, values = next(iter(self._pushers.items()))
            if values is pusher:
                return False
            self.forget([oldest])
        return True


def is_bounded(point: Point) -> bool:
    """Whether it has a number, and a name that somebody could have meant."""
    texts = [point.name, *(part for pair in point.attributes for part in pair)]
    return (
        math.isfinite(point.value)
        and len(point.attributes) <= MOST_ATTRIBUTES
        and bool(point.name)
        and max(map(len, texts)) <= LONGEST_NAME
    )
