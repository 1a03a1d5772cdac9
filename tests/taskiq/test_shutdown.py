"""The end of a broker for taskiq whose worker has failed."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, Mock

import pytest

from ottla.errors import OttlaError
from ottla.taskiq import TaskBroker


def test_the_producer_is_closed_although_the_worker_has_failed() -> None:
    tasks = TaskBroker("tasks", {"bootstrap.servers": "127.0.0.1:1"}, group="workers")
    producer = AsyncMock()

    async def fail() -> None:
        raise OttlaError("the worker has failed")

    async def end() -> None:
        tasks._producer, tasks._worker, tasks._run = producer, Mock(), asyncio.create_task(fail())
        with pytest.raises(OttlaError, match="the worker has failed"):
            await tasks.shutdown()

    asyncio.run(end())

    producer.close.assert_awaited_once_with()
