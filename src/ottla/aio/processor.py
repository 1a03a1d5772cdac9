"""The processor for asyncio: the loop of `ottla.Processor` in a task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import Any, TypeVar

from ottla.aio.consumer import Consumer
from ottla.aio.producer import Producer
from ottla.client.process.calls import Call, Calls
from ottla.client.process.form import Function
from ottla.client.process.processor_face import ProcessorBase
from ottla.client.process.stop_signals import stop_on_signals
from ottla.model import TopicPartition

T = TypeVar("T")


async def process(consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
    """Run a `Processor` with these arguments until SIGINT (Ctrl-C) or SIGTERM; the records in progress are committed first."""
    processor = Processor(consumer, producer, function, **settings)
    with stop_on_signals(processor.stop):
        await processor.run()


class TaskRunner:
    """Makes the calls of a processor in tasks of its event loop."""

    def __init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Use the running event loop."""
        self._loop = asyncio.get_running_loop()

    async def pause(self, seconds: float) -> bool:
        """Wait, and return True; return False as soon as the processor stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        return not self._stopping.is_set()

    async def run_all(self, tasks: Sequence[Calls[None]]) -> None:
        """Perform all tasks. If one raises or is cancelled, so are the others."""
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(self._run(task))

    async def _run(self, task: Calls[None]) -> None:
        async with self._slots:
            await perform_calls(task)

    def stop(self) -> None:
        """End all pauses. May be called from any thread or a signal handler."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    def close(self) -> None:
        """Do nothing: tasks end by themselves."""


class Processor(ProcessorBase):
    """Read, call `function`, send and commit, as `ottla.Processor` does, with the same settings.

    The function may be a coroutine function or an asynchronous generator function. Without `concurrency`, records are
    processed one after the other; other tasks run while the function or a client waits. A cancelled task aborts the
    records in progress.
    """

    CLIENTS = (Consumer, Producer)
    RUNNER = TaskRunner
    _runner: TaskRunner | None

    def __init__(self, consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
        super().__init__(consumer, producer, function, **settings)
        self._lock = asyncio.Lock()
        self._rebalance_callback: asyncio.Future[None] | None = None
        """The callback of a rebalance, running or done. It outlives a poll that has timed out."""

    async def run(self) -> None:
        """Run until `stop`, or until the task is cancelled.

        Raises ProducerFencedError if another processor uses the same transactional.id.
        """
        self._consumer.subscribe(self.settings.topics, self)
        if self._runner is not None:
            self._runner.start()
        try:
            await perform_calls(self._loop.run(), self._call)
        except BaseException:
            async with self._lock:  # a callback may outlive the poll that started it
                await perform_calls(self._loop.abort_after_error())
            raise
        finally:
            self._is_over = True

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Awaitable[None]:
        """Commit the processed records before another member reads these partitions."""
        return self._run_rebalance_callback(self._loop.commit())

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Awaitable[None]:
        """Abort the records in progress: another member may already process these partitions."""
        return self._run_rebalance_callback(self._loop.abort_lost_partitions(partitions))

    def _run_rebalance_callback(self, calls: Calls[None]) -> Awaitable[None]:
        self._rebalance_callback = asyncio.ensure_future(self._perform_locked(calls))
        return self._rebalance_callback

    async def _perform_locked(self, calls: Calls[None]) -> None:
        async with self._lock:
            await perform_calls(calls)

    async def _call(self, call: Call) -> Any:
        """Make a call, and wait for a rebalance callback that started meanwhile: both could end the same transaction."""
        try:
            return await collect_results(call)
        finally:
            if self._rebalance_callback is not None and not self._rebalance_callback.done():
                await asyncio.wait([self._rebalance_callback])


async def collect_results(call: Call) -> Any:
    """Make a call and await its result if needed."""
    outcome = call()
    return await outcome if isawaitable(outcome) else outcome


async def perform_calls(calls: Calls[T], make: Callable[[Call], Awaitable[Any]] = collect_results) -> T:
    """Make all calls one after the other, awaiting their results."""
    try:
        call = next(calls)
        while True:
            try:
                outcome = await make(call)
            except BaseException as error:
                call = calls.throw(error)
            else:
                call = calls.send(outcome)
    except StopIteration as done:
        result: T = done.value
        return result
