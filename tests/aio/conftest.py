"""Fixtures for groups, and a helper to run a story in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from ottla import Broker
from ottla.aio import Consumer
from tests.client.consumer.conftest import group_admin as group_admin
from tests.client.consumer.conftest import group_broker as group_broker
from tests.client.consumer.conftest import group_id as group_id
from tests.client.consumer.conftest import group_producer as group_producer
from tests.client.consumer.conftest import shared_topic as shared_topic

T = TypeVar("T")
PATIENCE = 60.0
Members = Callable[..., Consumer]


def play(story: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a new event loop, with a time limit."""

    async def timed() -> T:
        async with asyncio.timeout(PATIENCE):
            return await story()

    return asyncio.run(timed())


@pytest.fixture
def member(group_broker: Broker, group_id: str) -> Members:
    """Creates fast members of one group; the caller closes them."""

    def make(**settings: Any) -> Consumer:
        quick = {
            "bootstrap_servers": group_broker.bootstrap_servers,
            "group_id": group_id,
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 50,
            "session_timeout_ms": 10_000,
            "retry_backoff_ms": 20,
        }
        return Consumer(**{**quick, **settings})

    return make


async def until(condition: Callable[[], object], *doing: Callable[[], Awaitable[Any]]) -> None:
    """Await these in turn until the condition holds."""
    while not condition():
        for each in doing:
            await each()
        await asyncio.sleep(0)


async def poll_count(consumer: Consumer, count: int) -> list[Any]:
    """Poll until this number of records was returned."""
    records: list[Any] = []
    while len(records) < count:
        records += await consumer.poll(0.1)
    return records
