"""What clients count, for Prometheus: a collector, to which a program hands its clients.

    REGISTRY.register(ClientCollector(producer, consumer))

Names are those of Java's JMX metrics with units in them, as a broker's are: `kafka_consumer_fetch_manager_records_lag`. Rates are left
out, since Prometheus makes them of the totals. Needs the extra `metrics`; no other part loads this.
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
    """Asks its clients whenever Prometheus asks; one that its program has dropped is told of no more."""

    def __init__(self, *clients: Measured) -> None:
        self._clients: list[weakref.ref[Measured]] = []
        for client in clients:
            self.add(client)

    def add(self, client: Measured) -> None:
        """One more."""
        self._clients.append(weakref.ref(client))

    def collect(self) -> Iterator[Metric]:
        """As prometheus-client asks for it."""
        self._clients = [each for each in self._clients if each() is not None]
        there = [client for each in self._clients if (client := each()) is not None]
        for (group, name), samples in sorted(by_name(client.metrics() for client in there).items()):
            yield family(group, name, samples)

    def describe(self) -> list[Metric]:
        """Nothing beforehand: it depends on the clients."""
        return []


def by_name(told: Iterable[ClientMetrics]) -> Samples:
    """All values of all clients that are shown."""
    samples: Samples = {}
    for metrics in told:
        for each, value in metrics.items():
            if is_shown(each):
                samples.setdefault((each.group, each.name), []).append((each, value))
    return samples


def is_shown(each: MetricName) -> bool:
    """Not rates, and what is there by topic not once more in all."""
    of_all = each.name in CONSUMED and len(each.tags) == 1
    return not of_all and not each.name.endswith("-rate") and "-rate-per-" not in each.name


def family(group: str, name: str, samples: list[tuple[MetricName, float]]) -> Metric:
    """One metric with all its values, in the library's words."""
    about = description_of(group, name)
    labels = [tag.replace("-", "_") for tag, _ in samples[0][0].tags]
    kind: Any = CounterMetricFamily if about.kind == COUNTER else GaugeMetricFamily
    found: Metric = kind(prometheus_name(group, name), about.text, labels=labels)
    scale = {MS: 1_000, NS: 1_000_000_000}.get(about.unit, 1)
    for each, value in samples:
        found.add_metric([text for _, text in each.tags], value / scale)  # type: ignore[attr-defined]
    return found


def prometheus_name(group: str, name: str) -> str:
    """Without the `_total` of a counter, which the library adds."""
    unit = {NS: "seconds", MS: "seconds", SECONDS: "seconds", BYTES: "bytes"}.get(description_of(group, name).unit, "")
    base = name.removesuffix("-total").removesuffix("-ns")
    if unit and unit not in base:
        base = base.replace("byte", "bytes") if "byte" in base else f"{base}-{unit}"
    return f"kafka_{group.removesuffix('-metrics')}_{base}".replace("-", "_")
