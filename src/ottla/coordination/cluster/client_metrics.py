"""The configs of a client metrics subscription: which metrics are pushed, how often, and by which clients (KIP-714)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from ottla.config import Between, Option, convert, options_of
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.regular_expression import compiled
from ottla.coordination.regular_syntax import SyntaxFault
from ottla.coordination.telemetry.subscription import INTERVAL_MS, LONGEST_MS, MATCHED, SHORTEST_MS
from ottla.errors import ConfigError, ErrorCode
from ottla.settings_class import settings


@settings
class SubscriptionConfig:
    """All configs of a subscription, with Kafka's defaults."""

    interval_ms: Annotated[int, Between(SHORTEST_MS, LONGEST_MS)] = INTERVAL_MS
    """The interval in which clients push metrics."""

    match: tuple[str, ...] = ()
    """The clients that push, as NAME=REGEX pairs which all have to match, such as `client_id=web-.*`. The names are
    `client_id`, `client_instance_id`, `client_software_name`, `client_software_version`, `client_source_address` and
    `client_source_port`. Every client pushes if the list is empty.
    """

    metrics: tuple[str, ...] = ()
    """The prefixes of the metric names to push; `*` is every metric, an empty list none."""


@cache
def list_options() -> dict[str, Option]:
    """Return the configs by their dotted names."""
    return {option.name: option for option in options_of(SubscriptionConfig)}


def find_fault(name: str, value: str) -> str | None:
    """Return None if the value is valid.

    Raise Refusal if not, because Kafka has several error codes for these configs.
    """
    option = list_options().get(name)
    if option is None:
        known = ", ".join(list_options())
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}; there are {known}")
    try:
        values = convert(name, value, option.type)
    except ConfigError as error:
        is_number = value.strip().lstrip("-").isdecimal()
        raise Refusal(ErrorCode.INVALID_REQUEST if is_number else ErrorCode.INVALID_CONFIG, str(error)) from None
    for pattern in values if name == "match" else ():
        check_pattern(pattern)
    return None


def check_pattern(pattern: str) -> None:
    """Raise Refusal unless the pattern is NAME=REGEX."""
    name, equals, expression = pattern.partition("=")
    if not equals or name.strip() not in MATCHED:
        wanted = f"match = {pattern!r}: must be NAME=REGEX, and NAME one of {', '.join(MATCHED)}"
        raise Refusal(ErrorCode.INVALID_CONFIG, wanted)
    try:
        compiled(expression.strip())
    except SyntaxFault as error:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"match = {pattern!r}: no regular expression: {error}") from None


def list_defaults() -> Mapping[str, str]:
    """Return the default of each config."""
    return {"interval.ms": str(INTERVAL_MS), "match": "", "metrics": ""}
