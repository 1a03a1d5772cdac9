"""What a subscription to metrics of clients can be told (KIP-714): which metrics, how often, of whom."""

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
    """Every config that a subscription has, with Kafka's default."""

    interval_ms: Annotated[int, Between(SHORTEST_MS, LONGEST_MS)] = INTERVAL_MS
    """How often clients are to push."""

    match: tuple[str, ...] = ()
    """Which clients are meant, by regular expressions that all are to hold: `client_id=web-.*`, likewise of `client_instance_id`,
    `client_software_name`, `client_software_version`, `client_source_address` and `client_source_port`. Every client without."""

    metrics: tuple[str, ...] = ()
    """How the names of the wanted metrics begin; `*` is all of them, and nothing none."""


@cache
def table() -> dict[str, Option]:
    """The configs by their dotted names."""
    return {option.name: option for option in options_of(SubscriptionConfig)}


def fault_of(name: str, value: str) -> str | None:
    """None for a value that can be; Refusal where it cannot: Kafka has another code for each way."""
    option = table().get(name)
    if option is None:
        known = ", ".join(table())
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
    """Refuse what is not `name=regular expression`."""
    name, equals, expression = pattern.partition("=")
    if not equals or name.strip() not in MATCHED:
        wanted = f"match = {pattern!r}: must be NAME=REGEX, and NAME one of {', '.join(MATCHED)}"
        raise Refusal(ErrorCode.INVALID_CONFIG, wanted)
    try:
        compiled(expression.strip())
    except SyntaxFault as error:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"match = {pattern!r}: no regular expression: {error}") from None


def defaults() -> Mapping[str, str]:
    """What each is where it is not set."""
    return {"interval.ms": str(INTERVAL_MS), "match": "", "metrics": ""}
