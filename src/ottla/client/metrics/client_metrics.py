"""The result of `metrics()`: values by name, group and tags, as in the Java clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class MetricName(NamedTuple):
    """The identity of a metric."""

    name: str
    """For example `record-send-total`."""
    group: str
    """For example `producer-topic-metrics`."""
    tags: tuple[tuple[str, str], ...]
    """Pairs of name and value, sorted. `client-id` is always present."""

    @property
    def description(self) -> str:
        """A sentence that describes the metric."""
        from ottla.client.metrics.descriptions import description_of

        return description_of(self.group, self.name).text

    def __str__(self) -> str:
        tags = ",".join(f"{name}={value}" for name, value in self.tags)
        return f"{self.group}:{self.name}{{{tags}}}"


class ClientMetrics(Mapping[MetricName, float]):
    """All metrics of one client at one time. The average or maximum of no values is NaN."""

    def __init__(self, values: Mapping[MetricName, float]) -> None:
        self._values = values

    def __getitem__(self, name: MetricName) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[MetricName]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"ClientMetrics({len(self)} values)"

    def value(self, name: str, **tags: object) -> float:
        """Return the metric with this name and these tags, `client-id` aside: `value("records-lag", topic="orders", partition=0)`.

        Write `_` for `-` in tag names. Raises KeyError if there is no such metric.
        """
        wanted = {tag.replace("_", "-"): str(value) for tag, value in tags.items()}
        for each, value in self._values.items():
            if each.name == name and {key: text for key, text in each.tags if key != "client-id"} == wanted:
                return value
        asked = ", ".join(f"{tag}={value}" for tag, value in wanted.items())
        raise KeyError(f"no metric {name!r} with {asked or 'no tags'}")


class MetricsBuilder:
    """Collects metric values, one group and set of tags at a time."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._values: dict[MetricName, float] = {}
        self._group = ""
        self._tags: tuple[tuple[str, str], ...] = ()

    def select_group(self, group: str, **tags: object) -> MetricsBuilder:
        """Select the group and the tags of the following values, and return this builder."""
        pairs = {tag.replace("_", "-"): str(value) for tag, value in tags.items()} | {"client-id": self._client_id}
        self._group, self._tags = group, tuple(sorted(pairs.items()))
        return self

    def put(self, name: str, value: float) -> None:
        self._values[MetricName(name, self._group, self._tags)] = float(value)

    def build(self) -> ClientMetrics:
        return ClientMetrics(self._values)
