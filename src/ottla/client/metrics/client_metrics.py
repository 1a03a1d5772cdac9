"""What `metrics()` of a client returns: values by name, group and tags, as Java's clients have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class MetricName(NamedTuple):
    """Which number it is."""

    name: str
    """Such as `record-send-total`."""
    group: str
    """Such as `producer-topic-metrics`."""
    tags: tuple[tuple[str, str], ...]
    """Pairs of name and value, sorted; `client-id` is always there."""

    @property
    def description(self) -> str:
        """What is counted or measured, in a sentence."""
        from ottla.client.metrics.descriptions import description_of

        return description_of(self.group, self.name).text

    def __str__(self) -> str:
        tags = ",".join(f"{name}={value}" for name, value in self.tags)
        return f"{self.group}:{self.name}{{{tags}}}"


class ClientMetrics(Mapping[MetricName, float]):
    """All numbers of one client at one moment; NaN where there is an average or a maximum of nothing."""

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
        """The one of that name whose tags are these, `client-id` aside: `value("records-lag", topic="orders", partition=0)`.

        A tag is written with `_` for `-`. KeyError where there is none.
        """
        wanted = {tag.replace("_", "-"): str(value) for tag, value in tags.items()}
        for each, value in self._values.items():
            if each.name == name and {key: text for key, text in each.tags if key != "client-id"} == wanted:
                return value
        asked = ", ".join(f"{tag}={value}" for tag, value in wanted.items())
        raise KeyError(f"there is no metric {name!r} with {asked or 'no tags'}")


class Sheet:
    """Where numbers are written down, by one group and its tags at a time."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._values: dict[MetricName, float] = {}
        self._group = ""
        self._tags: tuple[tuple[str, str], ...] = ()

    def of(self, group: str, **tags: object) -> Sheet:
        """Go on with these; the same sheet."""
        pairs = {tag.replace("_", "-"): str(value) for tag, value in tags.items()} | {"client-id": self._client_id}
        self._group, self._tags = group, tuple(sorted(pairs.items()))
        return self

    def put(self, name: str, value: float) -> None:
        self._values[MetricName(name, self._group, self._tags)] = float(value)

    def whole(self) -> ClientMetrics:
        return ClientMetrics(self._values)
