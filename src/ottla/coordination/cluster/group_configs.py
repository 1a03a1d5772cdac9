"""What a single consumer group can be told, whatever the broker says of all (KIP-848): Kafka's group configs.

Those of share groups and streams groups are not among them: there are no such groups here. Nor is
`consumer.assignment.interval.ms`: an assignment is worked out with the heartbeat that makes it necessary.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, NamedTuple

from ottla.config import Between, Option, convert, options_of
from ottla.errors import ConfigError
from ottla.model import INT32_MAX
from ottla.settings_class import settings

HEARTBEAT, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
Span = Annotated[int, Between(1, INT32_MAX)]
ABSENT: Mapping[str, str] = {
    "share.": "this broker has no share groups",
    "streams.": "this broker has no streams groups",
    "consumer.assignment.interval.ms": "this broker assigns with the heartbeat that makes it necessary",
}
"""How configs begin that Kafka has, and why they are not here."""


@settings
class ConsumerGroupConfig:
    """Every config that a group has, with Kafka's default."""

    consumer_heartbeat_interval_ms: Span = 5000
    """How often the members of the group are to send heartbeats."""

    consumer_session_timeout_ms: Span = 45_000
    """Time after which a member of the group that sends no heartbeats is removed."""


class Bound(NamedTuple):
    """What the broker lets a config be."""

    default: int
    least: int
    most: int

    def within(self, value: int) -> int:
        """The nearest value that may be: what was allowed when it was set may not be any more."""
        return min(max(value, self.least), self.most)


Bounds = Mapping[str, Bound]
"""By the config's dotted name."""
NO_BOUNDS: Bounds = {name: Bound(1, 1, INT32_MAX) for name in (HEARTBEAT, SESSION)}


@cache
def table() -> dict[str, Option]:
    """The configs by their dotted names."""
    return {option.name: option for option in options_of(ConsumerGroupConfig)}


def fault_of(name: str, value: str) -> str | None:
    """What is wrong with one config of a group, in a sentence; None when nothing is."""
    option = table().get(name)
    if option is None:
        why = next((f": {reason}" for prefix, reason in ABSENT.items() if name.startswith(prefix)), "")
        return f"Unknown group config name: {name}{why}"
    try:
        convert(name, value, option.type)
    except ConfigError as error:
        return str(error)
    return None


def conflict_of(changed: Mapping[str, str], configs: Mapping[str, str], bounds: Bounds) -> str | None:
    """What is wrong with a group's configs next to the broker's settings and each other; None when nothing is."""
    values = in_force(configs, bounds)
    for name, value in changed.items():
        bound = bounds[name]
        if int(value) < bound.least:
            return f"{name} = {value}: at least {bound.least}, by group.{setting_of('min', name)}"
        if int(value) > bound.most:
            return f"{name} = {value}: at most {bound.most}, by group.{setting_of('max', name)}"
    if values[SESSION] <= values[HEARTBEAT]:
        return f"{SESSION} must be greater than {HEARTBEAT}: they would be {values[SESSION]} and {values[HEARTBEAT]}"
    return None


def setting_of(end: str, name: str) -> str:
    """`consumer.min.session.timeout.ms` for `consumer.session.timeout.ms`."""
    kind, _, rest = name.partition(".")
    return f"{kind}.{end}.{rest}"


def in_force(configs: Mapping[str, str], bounds: Bounds) -> dict[str, int]:
    """Every config of a group that sets `configs` itself, within what the broker allows by now."""
    return {
        name: bound.within(int(configs[name])) if name in configs else bound.default for name, bound in bounds.items()
    }
