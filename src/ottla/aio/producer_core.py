"""The producer's core in an event loop: what the blocking producer waits for is awaited here."""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from ottla.aio.loop_sender import LoopSender
from ottla.client.future import Future
from ottla.client.network_client import NetworkClient
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.client.producer.producer import Producer
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.producer.table_receipt import TableReceipt
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError
from ottla.model import Buffer, PartitionInfo

if TYPE_CHECKING:
    from ottla.client.settings import ProducerSettings

FOREVER = float("inf")
BATCHES_IN_A_ROW = 8
"""A task that sends without ever waiting gives the sender a turn when it has begun so many batches."""


class ProducerCore(Producer):
    """Its own calls never wait: with no time to block they raise instead, and are tried again when there is news."""

    _begun_at_turn = 0

    def __init__(self, config: Mapping[str, Any] | None, /, **keywords: Unpack[ProducerSettings]) -> None:
        super().__init__(config, **keywords)
        self._max_block = 0.0

    def _make_sender(self, client: NetworkClient, accumulator: RecordAccumulator) -> LoopSender:
        self.sender = LoopSender(self.config, client, accumulator, self.client_id, self._transactions)
        return self.sender

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is taken."""
        return self._accumulator.closed

    @property
    def max_block(self) -> float:
        """`max.block.ms` in seconds."""
        return self.config.max_block_ms / 1000

    def is_prepared(self, topic: str, partition: int | None) -> bool:
        """Whether a record has nothing to wait for, but perhaps for memory; each one asks."""
        if self._accumulator.closed or get_running_loop() is not self.sender.loop:
            return False
        info = self._metadata.cluster.topics.get(topic)
        return info is not None and (partition is None or self._knows(topic, partition))

    async def prepare(self, topic: str, partition: int | None) -> None:
        """Belong to the running event loop, and learn of the topic."""
        self.sender.attach()
        if not self._knows(topic, partition):
            await self.learn(topic, partition, self._clock.monotonic() + self.max_block)

    def owes_a_turn(self) -> bool:
        """Whether so much was begun since it was last asked that the sender should come to its turn."""
        begun = self._accumulator.flush_mark()
        if begun - self._begun_at_turn < BATCHES_IN_A_ROW:
            return False
        self._begun_at_turn = begun
        return True

    async def append_when_there_is_room(self, topic: str, value: Any, **rest: Any) -> RecordFuture:
        """As `send`, which found no memory."""
        deadline = self._clock.monotonic() + self.max_block
        while True:
            await self.make_room(deadline)
            try:
                return self.send(topic, value, **rest)
            except BufferExhaustedError:
                continue

    async def append_table(self, topic: str, table: Any, columns: Any) -> TableReceipt:
        """As `send_table`."""
        return await self._append_all(topic, lambda count: self._table_batches(topic, table, count, columns))

    async def append_many(self, topic: str, values: Iterable[Any], keys: Iterable[Any] | None) -> TableReceipt:
        """As `send_many`."""
        return await self._append_all(topic, lambda count: self._plain_batches(topic, values, keys, count))

    async def _append_all(
        self, topic: str, batches: Callable[[int], Iterator[tuple[int, Buffer, int]]]
    ) -> TableReceipt:
        if self._transactional is not None:
            self._transactional.check_send()
        self.sender.attach()
        deadline = self._clock.monotonic() + self.max_block
        await self.learn(topic, None, deadline)
        receipt = TableReceipt()
        count = len(self._wait_on_metadata(topic, None).partitions)
        for partition, data, rows in batches(count):
            receipt.add(await self._append_patiently(topic, partition, count, data, rows), rows)
            await asyncio.sleep(0)
        return receipt

    async def partitions_of(self, topic: str) -> list[PartitionInfo]:
        """As `partitions_for`."""
        self.sender.attach()
        await self.learn(topic, None, self._clock.monotonic() + self.max_block)
        return self.partitions_for(topic)

    async def learn(self, topic: str, partition: int | None, deadline: float) -> None:
        """Wait until the topic is known."""
        while not self._knows(topic, partition):
            try:
                self._wait_on_metadata(topic, partition)
            except KafkaTimeoutError:
                if self._clock.monotonic() >= deadline:
                    raise
                await self._await_metadata(self._metadata.version, deadline)

    async def make_room(self, deadline: float) -> None:
        """Wait until some memory has come free; everything queued is due meanwhile."""
        available = self._accumulator.pool.available_bytes
        self._accumulator.begin_flush()
        try:
            if await self.sender.until(lambda: self._accumulator.pool.available_bytes > available, deadline):
                return
        finally:
            self._accumulator.end_flush()
        raise BufferExhaustedError(
            f"no room for a record within max.block.ms = {self.config.max_block_ms}: {self.config.buffer_memory} bytes "
            f"(buffer.memory) are waiting to be sent; raise one of the two, or send more slowly"
        )

    async def flushed(self, timeout: float | None) -> None:
        """As `flush`."""
        self.sender.attach()
        span = FOREVER if timeout is None else timeout
        mark = self._accumulator.flush_mark()
        self._accumulator.begin_flush()
        try:
            if not await self.sender.until(lambda: self._accumulator.is_flushed(mark), self._clock.monotonic() + span):
                left = sum(batch.count for batch in self._accumulator.incomplete())
                raise KafkaTimeoutError(f"{left} records are still undelivered after flush(timeout={timeout:g})")
        finally:
            self._accumulator.end_flush()
        self._tell_unheard()

    async def step(self, call: str, begin: Callable[[TransactionManager], Future[None]], timeout: float | None) -> None:
        """Begin a step of a transaction, have everything queued sent meanwhile, and wait for the end."""
        self.sender.attach()
        manager = self._needs_transactions(call)
        span = self.max_block if timeout is None else timeout
        with manager.lock:
            result = begin(manager)
        self._accumulator.begin_flush()
        try:
            if not await self.sender.until(result.done, self._clock.monotonic() + span):
                raise self._sender.late(call, span)
        finally:
            self._accumulator.end_flush()
        with manager.lock:
            manager.acknowledged(call)
        result.result(0)

    @property
    def can_abort(self) -> bool:
        """Whether there is a transaction, and anything can still be done about it."""
        return self._transactional is not None and self._transactional.can_abort and not self._accumulator.closed

    async def finish(self, timeout: float | None) -> None:
        """As `close`."""
        self._forgotten.detach()
        await self.sender.finish(FOREVER if timeout is None else timeout)
        self._tell_unheard()

    async def _await_metadata(self, version: int, deadline: float) -> None:
        await self.sender.until(lambda: self._metadata.version != version or self._accumulator.closed, deadline)

    async def _append_patiently(self, *batch: Any) -> ProduceRequestResult:
        deadline = self._clock.monotonic() + self.max_block
        while True:
            try:
                return self._append_batch(*batch)
            except BufferExhaustedError:
                await self.make_room(deadline)

    def _knows(self, topic: str, partition: int | None) -> bool:
        if self._accumulator.closed:
            raise IllegalStateError("the producer is closed; make a new one")
        info = self._metadata.cluster.topics.get(topic)
        return info is not None and (type(partition) is not int or partition < len(info.partitions))
