"""A rebalance listener with methods that may be coroutines.

A coroutine runs in a task of its own, which outlives a cancelled `poll`. The rebalance continues when it has ended.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ottla.client.consumer.group.rebalance_listener import Callback, RebalanceListener
from ottla.client.runtime.future import Future
from ottla.errors import IllegalStateError
from ottla.model import TopicPartition


class CoroutineListener(RebalanceListener):
    """Calls a listener, and returns a future that is completed when its coroutine has ended."""

    def __init__(self, listener: RebalanceListener, resume: Callable[[], None]) -> None:
        self._listener = listener
        self._resume = resume
        self._task: asyncio.Future[Any] | None = None

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        return self._call(self._listener.on_partitions_assigned, partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        return self._call(self._listener.on_partitions_revoked, partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        return self._call(self._listener.on_partitions_lost, partitions)

    def _call(self, method: Callback, partitions: list[TopicPartition]) -> Future[None] | None:
        outcome = method(partitions)
        return self._begin(outcome) if inspect.isawaitable(outcome) else None

    def _begin(self, coroutine: Awaitable[Any]) -> Future[None]:
        ended: Future[None] = Future()
        self._task = asyncio.ensure_future(coroutine)
        self._task.add_done_callback(partial(self._end, ended))
        return ended

    def _end(self, ended: Future[None], task: asyncio.Future[Any]) -> None:
        error = IllegalStateError("the listener's coroutine was cancelled") if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            ended.set_exception(error)
        else:
            ended.set_result(None)
        self._resume()
