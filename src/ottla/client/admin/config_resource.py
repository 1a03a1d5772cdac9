"""What has configs, and what they are, as an admin sees them.

Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

KINDS: Mapping[str, int] = {"topic": 2, "broker": 4, "broker-logger": 8, "client-metrics": 16, "group": 32}
"""Kinds of resources, and the protocol's numbers for them."""
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
"""Kafka's names of the places where a value comes from."""


class ConfigResource(NamedTuple):
    """A topic, a broker, a broker's loggers, a group: `ConfigResource("group", "flights")`."""

    kind: str
    """topic, broker, broker-logger, client-metrics or group."""
    name: str
    """Of brokers the number, as text; empty for all brokers."""


class ConfigEntry(NamedTuple):
    """One config of a resource."""

    name: str
    value: str | None
    """None for a secret."""
    source: str
    """Where the value comes from: DYNAMIC_GROUP_CONFIG, DEFAULT_CONFIG …"""
    read_only: bool
    sensitive: bool

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source == "DEFAULT_CONFIG"
