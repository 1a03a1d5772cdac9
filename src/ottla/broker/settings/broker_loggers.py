"""The broker's loggers as a resource of the admin API: the configs are levels (KIP-412). Levels are not stored."""

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
"""The source of a logger's level, by its number in the protocol."""
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


def list_names() -> list[str]:
    """Return the names of this program's own loggers, the root of them first."""
    every = logging.Logger.manager.loggerDict
    return [ROOT, *sorted(name for name in every if name.startswith(f"{ROOT}."))]


def list_entries() -> list[DescribeConfigsResourceResult]:
    """Return each logger with its effective level."""
    return [
        DescribeConfigsResourceResult(
            name=name, value=level_name(logging.getLogger(name).getEffectiveLevel()), config_source=LOGGER_SOURCE
        )
        for name in list_names()
    ]


def level_name(level: int) -> str:
    """Return the most severe of Kafka's levels that is not above `level`."""
    return max((known, name) for name, known in LEVELS.items() if known <= max(level, LEVELS["TRACE"]))[1]


def change_level(node_id: int, wanted: AlterConfigsResource, *, validate_only: bool) -> Refusal | None:
    """Set levels, or remove them. Return None, or the error because of which nothing was changed."""
    try:
        check_node(node_id, wanted.resource_name)
        known, named = frozenset(list_names()), Counter(config.name for config in wanted.configs)
        for config in wanted.configs:
            check_level(config, known)
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
    """Raise Refusal if the resource is not this broker."""
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "loggers belong to a broker: name it by its id")
    if not name.isdecimal():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{name!r} is not a broker id: expected a number")
    if int(name) != node_id:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}, not {name}")


def check_level(config: AlterableConfig, known: Collection[str]) -> None:
    """Raise Refusal for an unknown logger or level, or an operation that levels do not have."""
    if config.name not in known:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"unknown logger {config.name}")
    if config.config_operation == SET and config.value not in LEVELS:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"{config.value} is not a level for {config.name}: take one of {', '.join(sorted(LEVELS))}",
        )
    if config.config_operation == DELETE and config.name == ROOT:
        raise Refusal(ErrorCode.INVALID_REQUEST, "the root logger always has a level: set another instead")
    if config.config_operation not in (SET, DELETE):
        raise Refusal(ErrorCode.INVALID_REQUEST, "A log level is not a list: use SET or DELETE")
