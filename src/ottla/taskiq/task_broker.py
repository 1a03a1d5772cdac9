"""A taskiq broker on topics.

    task.kiq(…) ──► kick ──► aio.Producer ──► topic ──► aio.Worker ──► listen ──► taskiq's receiver ──► the function
                                                            ▲                            │
                                                            └──────── acknowledged ◄─────┘

The worker decides what is read, committed or acknowledged. For it, the processing of a record lasts until taskiq acknowledges
the task, which taskiq does after the result is stored, unless `ack_type` says otherwise. A task that was not acknowledged
when its process ended is executed again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from ottla.aio.producer import Producer
from ottla.aio.worker import Worker
from ottla.client.config.synonyms import translate_names
from ottla.client.work.settings import producer_settings
from ottla.errors import ConfigError
from ottla.extras import extra

with extra("taskiq"):
    from taskiq import AckableMessage, AsyncBroker, BrokerMessage

if TYPE_CHECKING:
    from ottla.client.consumer import ConsumerRecord
    from ottla.client.work.state.schedule import Order

WORKER_ARGUMENTS = frozenset({"drain_seconds", "buffer_records", "buffer_bytes", "commit_interval_ms", "spans"})
"""The keywords that are arguments of the worker, and not settings of clients."""
KEY_LABEL = "key"
"""The label of a task that becomes the key of its record."""


class TaskBroker(AsyncBroker):
    """Send tasks to a topic, and execute those that other processes have sent.

    broker = TaskBroker("tasks", {"bootstrap.servers": "127.0.0.1:9092"}, group="workers")

    `group` is a consumer group, or with `share=True` a share group: then there may be more workers than partitions. `concurrency` limits
    the tasks that a process has received and not acknowledged; taskiq's `--max-async-tasks` those that run. With `order="key"`, tasks
    with the same label `key` are executed one after the other. Other arguments are settings of the clients, and of
    `ottla.aio.Worker`: `drain_seconds`, `buffer_records`, `buffer_bytes`, `commit_interval_ms` and `spans`.
    """

    def __init__(
        self,
        topic: str,
        config: Mapping[str, Any] | None = None,
        /,
        *,
        group: str,
        share: bool = False,
        concurrency: int = 100,
        order: Order = "none",
        producer: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        """Keep the settings; connections are opened by `startup` and `listen`.

        `producer` has settings of the producer alone, such as `{"compression.type": "zstd"}`. Of the other settings, it gets only
        those that all clients have, such as addresses and security.
        """
        super().__init__()
        if not isinstance(topic, str) or not topic:
            raise ConfigError(
                f"invalid value {topic!r} for topic: expected the name of the topic for tasks, such as 'tasks'"
            )
        self._topic = topic
        self._config = config
        self._worker_settings = {
            **settings,
            "group": group,
            "share": share,
            "concurrency": concurrency,
            "order": order,
            "retries": 0,
        }
        common = {name: value for name, value in settings.items() if name not in WORKER_ARGUMENTS}
        self._producer_settings = {**producer_settings(config, common), **translate_names(producer or {})}
        self._producer: Producer | None = None
        self._worker: Worker | None = None
        self._run: asyncio.Task[None] | None = None

    async def startup(self) -> None:
        """Create the producer, and run the handlers of taskiq's startup events."""
        if self._producer is None:
            self._producer = Producer(self._producer_settings)
        await super().startup()

    async def shutdown(self) -> None:
        """Send the tasks that are queued, commit what is acknowledged, and leave the group."""
        worker, run, producer = self._worker, self._run, self._producer
        self._worker = self._run = self._producer = None
        try:
            await super().shutdown()
        finally:
            try:
                if worker is not None and run is not None:
                    worker.stop()
                    worker.stop()  # does not wait for tasks that taskiq has given up
                    await run
            finally:
                if producer is not None:
                    await producer.close()

    async def kick(self, message: BrokerMessage) -> None:
        """Send a task, and return once the brokers have it."""
        if self._producer is None:
            raise ConfigError("the task cannot be sent before the broker was started: await broker.startup() first")
        key = message.labels.get(KEY_LABEL)
        future = await self._producer.send(self._topic, message.message, key=None if key is None else str(key).encode())
        await future

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield the tasks of the topic. Raise the error that has ended the worker."""
        received: asyncio.Queue[AckableMessage | None] = asyncio.Queue()

        async def hold(record: ConsumerRecord) -> None:
            """Pass a record to taskiq, and return when it is acknowledged."""
            acknowledged = asyncio.get_running_loop().create_future()
            finished = asyncio.Event()

            async def acknowledge() -> None:
                if not acknowledged.done():
                    acknowledged.set_result(None)
                    await finished.wait()

            received.put_nowait(AckableMessage(data=record.value or b"", ack=acknowledge))
            try:
                await acknowledged
            finally:
                finished.set()

        self._worker = Worker(self._topic, hold, self._config, **self._worker_settings)
        self._run = run = asyncio.create_task(self._worker.run())
        run.add_done_callback(lambda _: received.put_nowait(None))
        while (message := await received.get()) is not None:
            yield message
        await run
