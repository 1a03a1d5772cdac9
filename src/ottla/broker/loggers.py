"""The broker's loggers as admin tools see them: a resource whose configs are levels (KIP-412). Nothing is kept."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping

from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult
from ottla.protocol.messages.incremental_alter_configs import DELETE, SET, AlterableConfig, AlterConfigsResource

LOGGER_RESOURCE = 8
LOGGER_SOURCE = 6
"""Where the level of a logger has its value from, as the protocol counts them."""
ROOT = "ottla"
LEVELS: Mapping[str, int] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's names of levels."""


def names() -> list[str]:
    """The loggers of this program that are ours, the root of them first."""
    every = logging.Logger.manager.loggerDict
    return [ROOT, *sorted(name for name in every if name.startswith(f"{ROOT}."))]


def entries() -> list[DescribeConfigsResourceResult]:
    """Each logger with the level at which it writes."""
    return [
        DescribeConfigsResourceResult(
            name=name, value=level_name(logging.getLogger(name).getEffectiveLevel()), config_source=LOGGER_SOURCE
        )
        for name in names()
    ]


def level_name(level: int) -> str:
    """The most severe of Kafka's levels that is not above `level`."""
    return max((known, name) for name, known in LEVELS.items() if known <= max(level, LEVELS["TRACE"]))[1]


def change(node_id: int, wanted: AlterConfigsResource, *, validate_only: bool) -> Refusal | None:
    """Set levels, or give them back to the loggers above; None, or why nothing was changed."""
    try:
        check_node(node_id, wanted.resource_name)
        known, named = frozenset(names()), Counter(config.name for config in wanted.configs)
        for config in wanted.configs:
            check(config, known)
            if named[config.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, f"{config.name} is named more than once")
    except Refusal as refusal:
        return refusal
    if not validate_only:
        for config in wanted.configs:
            level = LEVELS[config.value or ""] if config.config_operation == SET else logging.NOTSET
            logging.getLogger(config.name).setLevel(level)
    return None


def check_node(node_id: int, name: str) -> None:
    """Refuse what is not this broker."""
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "loggers belong to a broker: name it by its id")
    if not name.isdecimal():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{name!r} is no broker id: give a number")
    if int(name) != node_id:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}, not {name}")


def check(config: AlterableConfig, known: Collection[str]) -> None:
    """Refuse loggers and levels that there are not, and what cannot be done to a level."""
    if config.name not in known:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"there is no logger {config.name}")
    if config.config_operation == SET and config.value not in LEVELS:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"{config.value} is no level for {config.name}: take one of {', '.join(sorted(LEVELS))}",
        )
    if config.config_operation == DELETE and config.name == ROOT:
        raise Refusal(ErrorCode.INVALID_REQUEST, "the root logger always has a level: set another instead")
    if config.config_operation not in (SET, DELETE):
        raise Refusal(ErrorCode.INVALID_REQUEST, "A log level is no list: it can be set or removed")
