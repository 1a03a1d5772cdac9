"""What the tests of groups have, and a way to run a story in an event loop."""

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
    """Run a story in an event loop of its own, for so long at most."""

    async def timed() -> T:
        async with asyncio.timeout(PATIENCE):
            return await story()

    return asyncio.run(timed())


@pytest.fixture
def member(group_broker: Broker, group_id: str) -> Members:
    """Makes members of one group, quick ones; whoever asks for one closes it."""

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
    """Do these in turn until it is so."""
    while not condition():
        for each in doing:
            await each()
        await asyncio.sleep(0)


async def poll_count(consumer: Consumer, count: int) -> list[Any]:
    """Poll until so many records have come."""
    records: list[Any] = []
    while len(records) < count:
        records += await consumer.poll(0.1)
    return records
