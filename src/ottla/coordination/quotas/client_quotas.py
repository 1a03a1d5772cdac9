"""The configured limits, and which of them applies to a client, in Kafka's order of precedence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"
Entity = frozenset[tuple[str, str | None]]
"""Entity types with names. The name None is the default, for entities without a limit of their own."""
PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE = "request_percentage", "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
OF_CLIENTS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
OF_ADDRESSES = (CONNECTION_CREATION_RATE,)
WHOLE_NUMBERS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, CONNECTION_CREATION_RATE)
MOST_LIMITS = 10_000
"""The maximum number of cached results; client ids are arbitrary."""


class Limit(NamedTuple):
    """A limit, and the clients that share it."""

    value: float
    sharers: tuple[str, str]
    """User and client id; an empty one means all."""


class ClientQuotas:
    def __init__(self) -> None:
        self.values: dict[Entity, Mapping[str, float]] = {}
        self._limits: dict[tuple[str, str, str], Limit | None] = {}

    def set(self, entity: Entity, key: str, value: float | None) -> None:
        """Limit something, or with None leave it free."""
        self._limits.clear()
        others = {name: kept for name, kept in self.values.get(entity, {}).items() if name != key}
        values = others if value is None else {**others, key: value}
        if values:
            self.values[entity] = values
        else:
            self.values.pop(entity, None)

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the limit that counts for a user with a client id; None where there is none."""
        question = key, user, client_id
        if question not in self._limits:
            if len(self._limits) >= MOST_LIMITS:
                self._limits.clear()
            self._limits[question] = self._find(*question)
        return self._limits[question]

    def limit_of_address(self, ip: str) -> float | None:
        """How many connections an address may make in a second."""
        for entity in (frozenset({(IP, ip)}), frozenset({(IP, None)})):
            value = self.values.get(entity, {}).get(CONNECTION_CREATION_RATE)
            if value is not None:
                return value
        return None

    def has_limits(self, *keys: str) -> bool:
        """Return True if a limit of one of these kinds exists."""
        return any(key in values for values in self.values.values() for key in keys)

    def _find(self, key: str, user: str, client_id: str) -> Limit | None:
        for entity, sharers in candidates(user, client_id):
            value = self.values.get(entity, {}).get(key)
            if value is not None:
                return Limit(value, sharers)
        return None


def candidates(user: str, client_id: str) -> Iterator[tuple[Entity, tuple[str, str]]]:
    """Yield the entities that may have a limit for a client, in order of precedence: limits of users before limits of clients."""
    for name in (user, None):
        for client in (client_id, None):
            yield frozenset({(USER, name), (CLIENT_ID, client)}), (user, client_id)
        yield frozenset({(USER, name)}), (user, "")
    for client in (client_id, None):
        yield frozenset({(CLIENT_ID, client)}), ("", client_id)
