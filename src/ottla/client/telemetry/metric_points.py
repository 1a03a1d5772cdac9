"""Convert client metrics to OpenTelemetry points with the names of KIP-714. Pure.

record-send-total of producer-topic-metrics {client-id, topic} ──► org.apache.kafka.producer.topic.record.send.total
{topic}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.metrics.client_metrics import MetricName
from ottla.client.metrics.descriptions import COUNTER, description_of
from ottla.protocol.metrics_data import Attributes, MetricKind, Point

Series = tuple[str, Attributes]


class MetricValue(NamedTuple):
    """The value of one metric at one time."""

    series: Series
    is_sum: bool
    value: float


def select_metrics(metrics: Mapping[MetricName, float], is_subscribed: Callable[[str], bool]) -> Iterator[MetricValue]:
    """Yield the metrics that the subscription selects, except those with a value of NaN or infinity."""
    for name, value in metrics.items():
        metric_name = telemetry_name(name)
        if is_subscribed(metric_name) and math.isfinite(value):
            is_sum = description_of(name.group, name.name).kind == COUNTER
            yield MetricValue((metric_name, attributes_from_tags(name)), is_sum, value)


def telemetry_name(name: MetricName) -> str:
    return f"org.apache.kafka.{name.group.removesuffix('-metrics')}.{name.name}".replace("-", ".")


def attributes_from_tags(name: MetricName) -> Attributes:
    """Return the tags of a metric without `client-id`, which the request header contains."""
    return tuple((key.replace("-", "_"), value) for key, value in name.tags if key != "client-id")


class AcknowledgedSums:
    """The sums that a broker has acknowledged.

    With delta temporality a push contains the increase of each sum since the last acknowledged push. A failed push
    changes nothing, so the next push includes its increase.
    """

    def __init__(self, start_ns: int) -> None:
        self._acknowledged: dict[Series, float] = {}
        self._pending: dict[Series, float] = {}
        self._start_ns = self._acknowledged_ns = self._pending_ns = start_ns

    def points(self, values: Iterable[MetricValue], now_ns: int, *, is_delta: bool) -> list[Point]:
        """Return the points of the next push; `confirm` acknowledges them."""
        points, self._pending, self._pending_ns = [], {}, now_ns
        for series, is_sum, value in values:
            name, attributes = series
            if not is_sum:
                points.append(Point(name, MetricKind.GAUGE, value, attributes, at_ns=now_ns))
                continue
            self._pending[series] = value
            if is_delta:
                increase = value - self._acknowledged.get(series, 0.0)
                points.append(Point(name, MetricKind.DELTA, increase, attributes, self._acknowledged_ns, now_ns))
            else:
                points.append(Point(name, MetricKind.CUMULATIVE, value, attributes, self._start_ns, now_ns))
        return points

    def acknowledge(self) -> None:
        """Record that the broker accepted the last push."""
        self._acknowledged.update(self._pending)
        self._acknowledged_ns, self._pending = self._pending_ns, {}
