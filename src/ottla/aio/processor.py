"""The processor whose clients are awaited: the same loop as `ottla.Processor`, in a task of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeVar

from ottla.aio.consumer import Consumer
from ottla.aio.producer import Producer
from ottla.client.process.calls import Call, Calls
from ottla.client.process.form import Function
from ottla.client.process.processor_face import ProcessorFace
from ottla.client.process.stop_signals import stopped_by_signals
from ottla.model import TopicPartition

T = TypeVar("T")


async def process(consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
    """Run a `Processor` of these arguments until Ctrl-C or SIGTERM, which end it after what is under way."""
    processor = Processor(consumer, producer, function, **settings)
    with stopped_by_signals(processor.stop):
        await processor.run()


class Processor(ProcessorFace):
    """Reads, calls `function`, sends and commits, as `ottla.Processor` does; settings and meaning are the same.

    The function may be a coroutine function or an asynchronous generator function. Records are processed in turn; while
    the function, or a client, waits, other tasks run. A task that is cancelled aborts what is under way.
    """

    CLIENTS = (Consumer, Producer)

    def __init__(self, consumer: Consumer[Any, Any], producer: Producer, function: Function, **settings: Any) -> None:
        super().__init__(consumer, producer, function, **settings)
        self._alone = asyncio.Lock()
        self._listening: asyncio.Future[None] | None = None
        """What was heard of a rebalance, and is under way or done; it outlives a poll whose time is up."""

    async def run(self) -> None:
        """Until `stop`, or until the task is cancelled.

        ProducerFencedError: another processor runs with the same transactional.id.
        """
        self._consumer.subscribe(self.settings.topics, self)
        try:
            await perform(self._loop.run(), self._made)
        except BaseException:
            async with self._alone:  # a listener's coroutine outlives the poll that it began in
                await perform(self._loop.give_up())
            raise
        finally:
            self._over = True

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Awaitable[None]:
        """All that was read of them has been processed: it counts before another member goes on."""
        return self._listen(self._loop.finish())

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Awaitable[None]:
        """Another member may be at them already: what is under way is to come to nothing."""
        return self._listen(self._loop.lose(partitions))

    def _listen(self, calls: Calls[None]) -> Awaitable[None]:
        self._listening = asyncio.ensure_future(self._perform_alone(calls))
        return self._listening

    async def _perform_alone(self, calls: Calls[None]) -> None:
        async with self._alone:
            await perform(calls)

    async def _made(self, call: Call) -> Any:
        """As `made`, and no sooner than what was heard meanwhile is done: two would end one transaction."""
        try:
            return await made(call)
        finally:
            if self._listening is not None and not self._listening.done():
                await asyncio.wait([self._listening])


async def made(call: Call) -> Any:
    """What a call comes to."""
    outcome = call()
    return await outcome if isawaitable(outcome) else outcome


async def perform(calls: Calls[T], how: Callable[[Call], Awaitable[Any]] = made) -> T:
    """Make all calls, one after the other, and await what is to be awaited."""
    try:
        call = next(calls)
        while True:
            try:
                outcome = await how(call)
            except BaseException as error:
                call = calls.throw(error)
            else:
                call = calls.send(outcome)
    except StopIteration as done:
        result: T = done.value
        return result
