"""A topic of one test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class Topic(str):
    """The name of a topic, which any client takes, with what a client has to be told to come to it."""

    __slots__ = ("client_settings",)

    client_settings: dict[str, Any]

    def __new__(cls, name: str, client_settings: Mapping[str, Any]) -> Self:
        """`client_settings` as `ottla.Broker.client_settings` has them."""
        topic = super().__new__(cls, name)
        topic.client_settings = dict(client_settings)
        return topic

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies, and for other processes."""
        return Topic, (str(self), self.client_settings)
