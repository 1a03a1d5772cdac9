"""A topic of one test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class Topic(str):
    """The name of a topic, usable with any client, together with client settings to connect to its broker."""

    __slots__ = ("client_settings",)

    client_settings: dict[str, Any]

    def __new__(cls, name: str, client_settings: Mapping[str, Any]) -> Self:
        """Create a topic with the settings of `ottla.Broker.client_settings`."""
        topic = super().__new__(cls, name)
        topic.client_settings = dict(client_settings)
        return topic

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copies and other processes."""
        return Topic, (str(self), self.client_settings)
