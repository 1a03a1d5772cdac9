"""One subscription to client metrics, and the union of those that apply to a client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from ottla.config import split_list
from ottla.coordination.regular_expression import MOST_VISITS, RegularExpression, TooMuchWork, compiled
from ottla.coordination.regular_syntax import SyntaxFault

INTERVAL_MS, SHORTEST_MS, LONGEST_MS = 300_000, 100, 3_600_000
EVERYTHING = "*"


class Client(NamedTuple):
    """The client that pushes; the fields are those that `match` may name."""

    client_instance_id: str
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


MATCHED = Client._fields


class TelemetrySubscription(Struct, frozen=True):
    """The configs of one subscription."""

    metrics: frozenset[str]
    interval_ms: int
    match: Mapping[str, RegularExpression | None]
    """The pattern of each matched property; None matches no client."""

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> TelemetrySubscription:
        """Return the subscription of these configs; an invalid pattern, which another tool may have written, matches no client."""
        pairs = (part.partition("=") for part in split_list(configs.get("match", "")))
        match = {name.strip(): pattern(expression.strip()) for name, _, expression in pairs}
        return cls(
            frozenset(split_list(configs.get("metrics", ""))), int(configs.get("interval.ms", INTERVAL_MS)), match
        )

    def matches(self, client: Client) -> bool:
        """Return True if every pattern matches the whole value of its property."""
        return all(each is not None and is_match(each, getattr(client, name, "")) for name, each in self.match.items())


class ClientSubscription(NamedTuple):
    """The metrics that one client has to push, by all subscriptions."""

    metrics: tuple[str, ...]
    interval_ms: int


def wanted_of(subscriptions: Iterable[TelemetrySubscription], client: Client) -> ClientSubscription:
    """Return the names of all that match, by the shortest of their intervals."""
    matching = [each for each in subscriptions if each.matches(client)]
    names = frozenset[str]().union(*(each.metrics for each in matching))
    interval_ms = min([INTERVAL_MS, *(each.interval_ms for each in matching)])
    return ClientSubscription((EVERYTHING,) if EVERYTHING in names else tuple(sorted(names)), interval_ms)


def is_match(expression: RegularExpression, text: str) -> bool:
    """Return True if an expression matches a whole text; a text that takes too long, as only a made-up one does, is no match."""
    expression.allow(MOST_VISITS)
    try:
        return expression.matches(text)
    except TooMuchWork:
        return False


def pattern(expression: str) -> RegularExpression | None:
    """Compile an expression in RE2's syntax, which matches in linear time. Return None if it is invalid."""
    try:
        return compiled(expression)
    except SyntaxFault:
        return None
