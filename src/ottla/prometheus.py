"""The metrics of clients for Prometheus: a collector to which a program adds its clients.

REGISTRY.register(ClientCollector(producer, consumer))

Names are those of Java's JMX metrics with units, as in a broker's metrics: `kafka_consumer_fetch_manager_records_lag`.
Rates are omitted, since Prometheus computes them from totals. Needs the extra `metrics`; no other module imports this.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ottla.client.metrics.client_metrics import ClientMetrics, MetricName
from ottla.client.metrics.descriptions import BYTES, CONSUMED, COUNTER, MS, NS, SECONDS, description_of
from ottla.extras import extra

with extra("metrics"):
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.metrics_core import Metric

Samples = dict[tuple[str, str], list[tuple[MetricName, float]]]
"""Values by group and name."""


class Measured(Protocol):
    """A client, of either kind of face."""

    def metrics(self) -> ClientMetrics: ...


class ClientCollector:
    """Collects the metrics of its clients for each scrape; a garbage-collected client is removed."""

    def __init__(self, *clients: Measured) -> None:
        self._clients: list[weakref.ref[Measured]] = []
        for client in clients:
            self.add(client)

    def add(self, client: Measured) -> None:
        """Add a client."""
        self._clients.append(weakref.ref(client))

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, as prometheus-client requires."""
        self._clients = [each for each in self._clients if each() is not None]
        there = [client for each in self._clients if (client := each()) is not None]
        for (group, name), samples in sorted(group_by_name(client.metrics() for client in there).items()):
            yield make_family(group, name, samples)

    def describe(self) -> list[Metric]:
        """Return nothing: the metrics depend on the clients."""
        return []


def group_by_name(all_metrics: Iterable[ClientMetrics]) -> Samples:
    """Return all exported values of all clients."""
    samples: Samples = {}
    for metrics in all_metrics:
        for each, value in metrics.items():
            if is_exported(each):
                samples.setdefault((each.group, each.name), []).append((each, value))
    return samples


def is_exported(each: MetricName) -> bool:
    """Return true unless it is a rate, or the total of a metric that is also exported by topic."""
    of_all = each.name in CONSUMED and len(each.tags) == 1
    return not of_all and not each.name.endswith("-rate") and "-rate-per-" not in each.name


def make_family(group: str, name: str, samples: list[tuple[MetricName, float]]) -> Metric:
    """Return one metric with all its values as an object of the library."""
    about = description_of(group, name)
    labels = [tag.replace("-", "_") for tag, _ in samples[0][0].tags]
    kind: Any = CounterMetricFamily if about.kind == COUNTER else GaugeMetricFamily
    found: Metric = kind(prometheus_name(group, name), about.text, labels=labels)
    scale = {MS: 1_000, NS: 1_000_000_000}.get(about.unit, 1)
    for each, value in samples:
        found.add_metric([text for _, text in each.tags], value / scale)  # type: ignore[attr-defined]
    return found


def prometheus_name(group: str, name: str) -> str:
    """Return the name without the `_total` of a counter, which the library adds."""
    unit = {NS: "seconds", MS: "seconds", SECONDS: "seconds", BYTES: "bytes"}.get(description_of(group, name).unit, "")
    base = name.removesuffix("-total").removesuffix("-ns")
    if unit and unit not in base:
        base = base.replace("byte", "bytes") if "byte" in base else f"{base}-{unit}"
    return f"kafka_{group.removesuffix('-metrics')}_{base}".replace("-", "_")
