"""Resources with configs, and their configs, as an admin sees them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

KINDS: Mapping[str, int] = {"topic": 2, "broker": 4, "broker-logger": 8, "client-metrics": 16, "group": 32}
"""Kinds of resources and their numbers in the protocol."""
SOURCES: Mapping[int, str] = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
"""Kafka's names of the sources of a value."""


class ConfigResource(NamedTuple):
    """A topic, a broker, the loggers of a broker, or a group: `ConfigResource("group", "flights")`."""

    kind: str
    """topic, broker, broker-logger, client-metrics or group."""
    name: str
    """For a broker its id as text; empty for all brokers."""


class ConfigEntry(NamedTuple):
    """One config of a resource."""

    name: str
    value: str | None
    """None for a secret."""
    source: str
    """The source of the value, such as DYNAMIC_GROUP_CONFIG or DEFAULT_CONFIG."""
    read_only: bool
    sensitive: bool

    @property
    def is_default(self) -> bool:
        """True if the value was not set by a user."""
        return self.source == "DEFAULT_CONFIG"
