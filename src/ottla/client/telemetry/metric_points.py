"""Metrics of a client as points of OpenTelemetry, by KIP-714's names. Pure.

record-send-total of producer-topic-metrics {client-id, topic} ──► org.apache.kafka.producer.topic.record.send.total {topic}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.metrics.client_metrics import MetricName
from ottla.client.metrics.descriptions import COUNTER, description_of
from ottla.protocol.metrics_data import Attributes, Kind, Point

Series = tuple[str, Attributes]


class Number(NamedTuple):
    """One metric at one moment."""

    series: Series
    is_sum: bool
    value: float


def numbers_of(metrics: Mapping[MetricName, float], wants: Callable[[str], bool]) -> Iterator[Number]:
    """Those that are wanted and have a value."""
    for name, value in metrics.items():
        told = name_of(name)
        if wants(told) and math.isfinite(value):
            is_sum = description_of(name.group, name.name).kind == COUNTER
            yield Number((told, attributes_of(name)), is_sum, value)


def name_of(name: MetricName) -> str:
    return f"org.apache.kafka.{name.group.removesuffix('-metrics')}.{name.name}".replace("-", ".")


def attributes_of(name: MetricName) -> Attributes:
    """Its tags, but for the client's id, which every request says."""
    return tuple((key.replace("-", "_"), value) for key, value in name.tags if key != "client-id")


class Sums:
    """How far sums were told: a push that is not answered well was none, and the next one tells what it had to tell."""

    def __init__(self, begun_ns: int) -> None:
        self._told: dict[Series, float] = {}
        self._under_way: dict[Series, float] = {}
        self._begun_ns = self._told_ns = self._under_way_ns = begun_ns

    def points(self, numbers: Iterable[Number], now_ns: int, *, is_delta: bool) -> list[Point]:
        """What to push now."""
        points, self._under_way, self._under_way_ns = [], {}, now_ns
        for series, is_sum, value in numbers:
            name, attributes = series
            if not is_sum:
                points.append(Point(name, Kind.GAUGE, value, attributes, at_ns=now_ns))
                continue
            self._under_way[series] = value
            if is_delta:
                grown = value - self._told.get(series, 0.0)
                points.append(Point(name, Kind.DELTA, grown, attributes, self._told_ns, now_ns))
            else:
                points.append(Point(name, Kind.CUMULATIVE, value, attributes, self._begun_ns, now_ns))
        return points

    def taken(self) -> None:
        """What was pushed has arrived."""
        self._told.update(self._under_way)
        self._told_ns, self._under_way = self._under_way_ns, {}
