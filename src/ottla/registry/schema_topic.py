"""The topic `_schemas` as the log of a registry: writes records, and replays all records in their order.

Everything runs in one event loop. A write ends when its last record has been read back, so that the state contains it,
and with it every record that another server wrote before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.aio.consumer import Consumer
from ottla.errors import (
    KafkaError,
    KafkaTimeoutError,
    OttlaError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from ottla.model import TopicPartition
from ottla.registry.errors import store_failed, store_timed_out
from ottla.registry.records import Record

if TYPE_CHECKING:
    from ottla.aio.producer import Producer

log = logging.getLogger(__name__)

MOST_REPLICAS = 3
"""The replication factor of a new topic, if there are so many brokers."""
POLL_SECONDS = 60.0
RETRY_SECONDS = 0.5
Replay = Callable[[bytes | None, bytes | None], str | None]


class SchemaTopic:
    """Reads and writes the topic."""

    def __init__(self, settings: Mapping[str, Any], topic: str, replay: Replay, write_timeout: float) -> None:
        self.topic = topic
        self._settings = dict(settings)
        self._replay = replay
        self._timeout = write_timeout
        self._partition = TopicPartition(topic, 0)
        self._position = 0
        """The offset of the next record to replay."""
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._reader: asyncio.Task[None] | None = None
        self._consumer: Consumer[bytes, bytes] | None = None
        self._producer: Producer | None = None
        self._seen: list[Record] | None = None
        """The records that are replayed during a write."""
        self.skipped_count = 0
        self.cluster_id = ""

    async def open(self) -> None:
        """Create the topic if it is missing, replay it to its end, and follow it."""
        await asyncio.to_thread(self._ensure_topic)
        self._consumer = Consumer(
            {**self._settings, "auto.offset.reset": "earliest", "enable.auto.commit": False, "max.poll.records": 5_000}
        )
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning(self._partition)
        self._reader = asyncio.create_task(self._read(self._consumer), name="ottla-registry-reader")
        await self.catch_up()

    def _ensure_topic(self) -> None:
        from ottla.client.admin import Admin, NewTopic
        from ottla.client.admin.config_resource import ConfigResource

        with Admin(self._settings) as admin:
            self.cluster_id = admin.describe_cluster().cluster_id or ""
            try:
                found = admin.describe_topics([self.topic])[self.topic]
            except UnknownTopicOrPartitionError:
                count = min(MOST_REPLICAS, len(admin.describe_cluster().nodes))
                try:
                    admin.create_topics([NewTopic(self.topic, 1, count, {"cleanup.policy": "compact"})])
                except TopicAlreadyExistsError:  # by another server
                    pass
                return
            if len(found.partitions) != 1:
                raise OttlaError(
                    f"topic {self.topic!r} has {len(found.partitions)} partitions, and a registry needs exactly 1: "
                    "choose another topic with --topic"
                )
            resource = ConfigResource("topic", self.topic)
            policy = str(admin.describe_configs([resource])[resource]["cleanup.policy"].value)
            if policy != "compact":
                raise OttlaError(
                    f"topic {self.topic!r} has cleanup.policy={policy}, which deletes schemas: set it to compact"
                )

    async def close(self) -> None:
        """Stop reading and close the clients."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        for client in (self._consumer, self._producer):
            if client is not None:
                await client.close(1.0)

    async def write(self, changes: Sequence[Record]) -> list[Record]:
        """Write records and wait until they are replayed.

        Return the records of other servers that came in between. Raise RegistryError if that fails; the records may be
        in the topic nevertheless.
        """
        self._seen = seen = list[Record]()
        try:
            await self._send(changes)
        finally:
            self._seen = None
        return [each for each in seen if each not in changes]

    async def _send(self, changes: Sequence[Record]) -> None:
        if self._producer is None:
            from ottla.aio.producer import Producer  # a server that never writes does without it

            self._producer = Producer(
                {**self._settings, "acks": "all", "linger.ms": 0, "delivery.timeout.ms": int(self._timeout * 1000),
                 "request.timeout.ms": int(self._timeout * 1000), "max.block.ms": int(self._timeout * 1000),
                 "max.request.size": 8 << 20}
            )  # fmt: skip
        try:
            futures = [await self._producer.send(self.topic, each.value, key=each.key, partition=0) for each in changes]
            offset = max([(await each).offset for each in futures])
        except KafkaTimeoutError as error:
            raise store_timed_out(f"writing to topic {self.topic} timed out: {error}") from None
        except KafkaError as error:
            raise store_failed(f"writing to topic {self.topic} failed: {error}") from None
        await self._wait_for(offset)

    async def catch_up(self) -> None:
        """Wait until all records that the topic has now are replayed."""
        assert self._consumer is not None
        end = (await self._consumer.end_offsets([self._partition]))[self._partition]
        if end:
            await self._wait_for(end - 1)

    @property
    def position(self) -> int:
        """The offset of the next record to replay."""
        return self._position

    async def _wait_for(self, offset: int) -> None:
        if self._position > offset:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((offset, waiter))
        try:
            await asyncio.wait_for(waiter, self._timeout)
        except TimeoutError:
            raise store_timed_out(
                f"offset {offset} of topic {self.topic} was not read within {self._timeout:g} s"
            ) from None
        finally:
            self._waiters = [each for each in self._waiters if each[1] is not waiter]

    async def _read(self, consumer: Consumer[bytes, bytes]) -> None:
        """Replay records for ever. A failing broker is retried: reads of schemas go on from memory meanwhile."""
        while True:
            try:
                polled = await consumer.poll(POLL_SECONDS)
                for record in polled:
                    self._replay_record(record.offset, record.key, record.value)
                self._advance(await consumer.position(self._partition))
            except OttlaError as error:
                log.warning("reading %s failed: %s; retrying in %g s", self.topic, error, RETRY_SECONDS)
                await asyncio.sleep(RETRY_SECONDS)

    def _replay_record(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        reason = self._replay(key, value)
        if self._seen is not None:
            self._seen.append(Record(key or b"", value))
        if reason is not None:
            self.skipped_count += 1
            log.warning("skipped a record topic=%s offset=%d: %s", self.topic, offset, reason)

    def _advance(self, position: int) -> None:
        """Complete the waiters below a position. Control records are passed, too."""
        self._position = max(self._position, position)
        for offset, waiter in self._waiters:
            if offset < self._position and not waiter.done():
                waiter.set_result(None)
