"""The share consumer for asyncio: the same core as `ottla.ShareConsumer`, driven by the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload
from uuid import UUID

from ottla.aio.pump import Pump
from ottla.client.consumer.consumer_face import PlainSetting
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.consumer.typed_record import K, V
from ottla.client.interface.arguments import maybe_timeout
from ottla.client.interface.method_names import SHARE_CONSUMER, explain_names
from ottla.client.runtime.steps import Steps
from ottla.client.share.share_consumer_core import CommitResults
from ottla.client.share.share_consumer_face import ShareConsumerFace
from ottla.errors import IllegalStateError

if TYPE_CHECKING:
    from ottla.client.config.typed_settings import PlainShareConsumerSettings

T = TypeVar("T")


class ShareConsumer(ShareConsumerFace[K, V]):
    """Receive records as a member of a share group, in asyncio.

    Settings, names and behaviour are those of `ottla.ShareConsumer`.

    Methods that wait are coroutines, the others are plain methods. One call may wait at a time. A cancelled `poll` loses
    nothing: the next one returns its records. Close it, or use it in an `async with` statement.
    """

    @overload
    def __init__(
        self,
        config: Mapping[str, PlainSetting] | None = None,
        /,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[PlainShareConsumerSettings],
    ) -> None: ...

    @overload
    def __init__(
        self: ShareConsumer[Any, Any],
        config: Mapping[str, Any],
        /,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[PlainShareConsumerSettings],
    ) -> None: ...

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        super().__init__(config, **keywords)
        self._pump = Pump(self._core.client)
        self._is_waiting = False
        self._closing: asyncio.Task[None] | None = None

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to these topics, which replace earlier ones. The next calls of `poll` join the group."""
        with self._core.open():
            if not self._subscribe(topics):
                raise ValueError("topics is empty: name a topic, or await unsubscribe()")

    async def unsubscribe(self) -> None:
        """Send the acknowledgements, release all other records, and leave the group."""
        with self._only_one():
            await self._run(self._core.unsubscribe())

    async def poll(self, timeout: float = 1.0) -> ConsumerRecords[K, V]:
        """Return up to `max.poll.records` records, as `ottla.ShareConsumer.poll` does."""
        with self._only_one():
            # Before and never after the poll, because a task cancelled after it would lose the records.
            await asyncio.sleep(0)
            records = await self._run(self._poll_steps(timeout))
        self._core.delivered.is_returned = True  # the last statement
        return records

    async def acquire(self, timeout: float = 1.0, *, fetch: bool = True) -> ConsumerRecords[K, V]:
        """Return further records while earlier ones are held, as `ottla.ShareConsumer.acquire` does."""
        with self._only_one():
            await asyncio.sleep(0)  # as in poll
            records = await self._run(self._acquire_steps(timeout, fetch))
        self._core.delivered.is_returned = True  # the last statement
        return records

    async def commit(self, timeout: float | None = None) -> CommitResults:
        """Send the acknowledgements, and return the result of each partition: None, or its error."""
        with self._only_one():
            return await self._run(self._core.calls.time_steps("commit-sync", self._core.commit(timeout)))

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers assigned to this client for pushing metrics (KIP-714)."""
        return await self._run(self._core.client_instance_id(timeout))

    async def close(self, timeout: float | None = None) -> None:
        """Send the acknowledgements, release all other records, leave the group and close all connections, within `timeout` seconds, by default 30.

        Closing continues if the call is cancelled; another call waits for the same end.
        """
        maybe_timeout(timeout)
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close(timeout))
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _close(self, timeout: float | None) -> None:
        if not self._core.closed:
            self._core.open()
            await self._pump.run(self._core.close(timeout), wakeable=False)

    async def _run(self, steps: Steps[T]) -> T:
        with self._core.open():
            return await self._pump.run(steps)

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Reject a second task: both would acknowledge the records of the same poll."""
        if self._is_waiting:
            raise IllegalStateError(
                "another task is waiting in this share consumer; use it from one task, or create a second consumer"
            )
        self._is_waiting = True
        try:
            yield
        finally:
            self._is_waiting = False


explain_names(ShareConsumer, SHARE_CONSUMER)
