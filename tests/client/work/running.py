"""A running worker, with threads or in asyncio, for functions that block."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ottla
from ottla.client.work.worker_face import WorkerBase
from tests.patience import eventually

Function = Callable[[Any], Any]
WAYS = ("threads", "asyncio")
FAST: dict[str, Any] = {"commit_interval_ms": 20, "concurrency": 4}


class Running:
    """A worker in a thread of its own."""

    def __init__(self, way: str, servers: str, topic: str, function: Function, **settings: Any) -> None:
        self.failure: BaseException | None = None
        self.worker: WorkerBase | None = None
        self._made = threading.Event()
        self._way = way
        self._function = function
        self._arguments = topic, {"bootstrap.servers": servers}
        self._settings = {"group": topic, **FAST, **settings}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._made.wait()

    def stop(self) -> None:
        assert self.worker is not None
        self.worker.stop()

    def join(self) -> None:
        """Wait for its end, and raise its exception."""
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            if self._way == "threads":
                self.worker = ottla.Worker(self._arguments[0], self._function, self._arguments[1], **self._settings)
                self._made.set()
                self.worker.run()
            else:
                asyncio.run(self._run_async())
        except BaseException as error:
            self.failure = error
        finally:
            self._made.set()

    async def _run_async(self) -> None:
        topic, config = self._arguments
        self.worker = worker = ottla.aio.Worker(topic, self._call, config, **self._settings)
        self._made.set()
        await worker.run()

    async def _call(self, record: Any) -> Any:
        return await asyncio.to_thread(self._function, record)


@contextmanager
def running(way: str, servers: str, topic: str, function: Function, **settings: Any) -> Iterator[Running]:
    """Run a worker. Leaving the block stops it and raises its exception. Its group has the name of the topic."""
    worker = Running(way, servers, topic, function, **settings)
    try:
        yield worker
    finally:
        if worker.worker is not None:
            worker.stop()
        worker.join()


def spend(seconds: float) -> None:
    """Work for some time."""
    end = time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= end)


def fill(servers: str, topic: str, values: list[str], key: Callable[[str], bytes | None] = lambda value: None) -> None:
    """Send these values."""
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for value in values:
            producer.send(topic, value.encode(), key=key(value), headers={"own": b"kept"})


def committed(servers: str, group: str, topic: str, partition: int = 0) -> ottla.OffsetAndMetadata | None:
    """Return the committed offset of a partition."""
    with ottla.Consumer(bootstrap_servers=servers, group_id=group) as consumer:
        place = ottla.TopicPartition(topic, partition)
        return consumer.committed([place])[place]


def committed_offset(servers: str, group: str, topic: str, partition: int = 0) -> int:
    """Return the committed offset; -1 if there is none."""
    found = committed(servers, group, topic, partition)
    return -1 if found is None else found.offset
