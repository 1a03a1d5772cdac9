"""One subscription to metrics of clients, and all that one client is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from ottla.coordination.regular_expression import MOST_VISITS, RegularExpression, TooMuchWork, compiled
from ottla.coordination.regular_syntax import SyntaxFault

INTERVAL_MS, SHORTEST_MS, LONGEST_MS = 300_000, 100, 3_600_000
EVERYTHING = "*"


class Client(NamedTuple):
    """Who pushes, by the names that `match` knows."""

    client_instance_id: str
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


MATCHED = Client._fields


class Subscription(Struct, frozen=True):
    """What somebody set under one name."""

    metrics: frozenset[str]
    interval_ms: int
    match: Mapping[str, RegularExpression | None]
    """By the name of what is matched; None matches nobody."""

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> Subscription:
        """From its configs; a pattern that cannot be read, by another hand than ours, matches nobody."""
        pairs = (part.partition("=") for part in parts_of(configs.get("match", "")))
        match = {name.strip(): pattern(expression.strip()) for name, _, expression in pairs}
        return cls(frozenset(parts_of(configs.get("metrics", ""))), int(configs.get("interval.ms", INTERVAL_MS)), match)

    def matches(self, client: Client) -> bool:
        """Whether all of its patterns hold for the whole of what they are about."""
        return all(each is not None and is_match(each, getattr(client, name, "")) for name, each in self.match.items())


class Wanted(NamedTuple):
    """What one client is to push, of all subscriptions."""

    metrics: tuple[str, ...]
    interval_ms: int


def wanted_of(subscriptions: Iterable[Subscription], client: Client) -> Wanted:
    """The names of all that match, by the shortest of their intervals."""
    matching = [each for each in subscriptions if each.matches(client)]
    names = frozenset[str]().union(*(each.metrics for each in matching))
    interval_ms = min([INTERVAL_MS, *(each.interval_ms for each in matching)])
    return Wanted((EVERYTHING,) if EVERYTHING in names else tuple(sorted(names)), interval_ms)


def parts_of(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def is_match(expression: RegularExpression, text: str) -> bool:
    """True if an expression matches a whole text; a text that takes too long, as only a made-up one does, is no match."""
    expression.allow(MOST_VISITS)
    try:
        return expression.matches(text)
    except TooMuchWork:
        return False


def pattern(expression: str) -> RegularExpression | None:
    """An expression in RE2's syntax, whose time grows with what it is matched against; None where it is none."""
    try:
        return compiled(expression)
    except SyntaxFault:
        return None
