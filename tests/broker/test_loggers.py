"""Levels of the broker's loggers over the network (KIP-412)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.wire import Wire

LOGGER, SET, DELETE, APPEND = 8, 0, 1, 2
NAME = "ottla.broker.node"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The level is this process's."""
    yield
    logging.getLogger(NAME).setLevel(logging.NOTSET)


def change(wire: Wire, operation: int, value: str | None, name: str = NAME, node: str = "1") -> tuple[int, str | None]:
    wish = AlterConfigsResource(LOGGER, node, [AlterableConfig(name, operation, value)])
    (answer,) = wire.ask(IncrementalAlterConfigsRequest([wish])).responses
    return answer.error_code, answer.error_message


def level(wire: Wire, name: str = NAME) -> str:
    (result,) = wire.ask(DescribeConfigsRequest([DescribeConfigsResource(LOGGER, "1", [name])])).results
    return str(result.configs[0].value)


def test_a_logger_level_is_changed_and_reset(wire: Wire) -> None:
    before = level(wire)
    assert change(wire, SET, "ERROR") == (0, None)
    assert level(wire) == "ERROR"
    assert not logging.getLogger(NAME).isEnabledFor(logging.WARNING)
    assert change(wire, DELETE, None) == (0, None)
    assert level(wire) == before


@pytest.mark.parametrize(
    ("operation", "value", "name", "node", "code", "reason"),
    [
        (SET, "LOUD", NAME, "1", ErrorCode.INVALID_CONFIG, "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
        (SET, "DEBUG", "no.such", "1", ErrorCode.INVALID_CONFIG, "unknown logger no.such"),
        (DELETE, None, "ottla", "1", ErrorCode.INVALID_REQUEST, "root logger"),
        (APPEND, "DEBUG", NAME, "1", ErrorCode.INVALID_REQUEST, "is not a list"),
        (SET, "DEBUG", NAME, "7", ErrorCode.INVALID_REQUEST, "this is broker 1, not 7"),
        (SET, "DEBUG", NAME, "", ErrorCode.INVALID_REQUEST, "name it by its id"),
    ],
)
def test_an_invalid_level_change_is_rejected(
    wire: Wire, operation: int, value: str | None, name: str, node: str, code: int, reason: str
) -> None:
    before = level(wire)
    found, message = change(wire, operation, value, name, node)
    assert found == code
    assert reason in str(message)
    assert level(wire) == before
