"""The environment of a chapter: a broker of its own, a topic, and controlled clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from ottla.broker.embedding.local_cluster import Cluster
from ottla.client.admin import Admin, NewTopic
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.errors import KafkaTimeoutError
from ottla.model import TopicPartition
from ottla.testing.broker import TestedBroker

TOPIC = "orders"
GROUP = "billing"
POLL_SECONDS = 0.2
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.02


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for an effect of the clients; raise KafkaTimeoutError after PATIENCE_SECONDS."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise KafkaTimeoutError(f"{what} did not happen within {PATIENCE_SECONDS:.0f} s: play the chapter again")
        time.sleep(LOOK_SECONDS)


class TourReader:
    """A consumer in a thread that polls, except while it is asleep."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.consumer = Consumer(settings)
        self.consumer.subscribe([TOPIC])
        self.count = 0
        """The number of received records."""
        self._awake = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self.consumer:
            while self._awake.wait() and not self._ending.is_set():
                self.count += len(self.consumer.poll(POLL_SECONDS))

    def resume_polling(self) -> None:
        self._awake.set()

    def pause_polling(self) -> None:
        """Stop polling, as a program that is busy with its records."""
        self._awake.clear()

    def stop(self) -> None:
        """Close the consumer; may be called again."""
        self._ending.set()
        self._awake.set()
        self._thread.join(PATIENCE_SECONDS)

    @property
    def partition_count(self) -> int:
        return len(self.consumer.snapshot().subscription.partitions)

    @property
    def state(self) -> str:
        """The state of its coordinator."""
        coordinator = self.consumer.snapshot().coordinator
        return "" if coordinator is None else str(coordinator.state)

    @property
    def generation(self) -> int:
        coordinator = self.consumer.snapshot().coordinator
        return -1 if coordinator is None else coordinator.generation


class TourStage:
    """Creates brokers and clients, and closes them in reverse order."""

    def __init__(self) -> None:
        self._made = ExitStack()
        self.settings: dict[str, Any] = {}
        """The client settings that connect to the broker."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._made.close()

    def broker(self, partitions: int) -> TestedBroker:
        """Start a broker with a topic."""
        broker = self._made.enter_context(TestedBroker())
        self.settings = {"bootstrap.servers": broker.bootstrap_servers}
        self._make_topic(partitions, 1)
        return broker

    def cluster(self) -> Cluster:
        """Start three brokers, each with a replica of a topic with one partition."""
        cluster = self._made.enter_context(Cluster(brokers=3))
        self.settings = dict(cluster.client_settings())
        self._make_topic(1, 3)
        return cluster

    def _make_topic(self, partitions: int, copies: int) -> None:
        with Admin(self.settings) as admin:
            admin.create_topics([NewTopic(TOPIC, partitions, copies)])

    def reader(self, client_id: str, **settings: Any) -> TourReader:
        """Create a member of the group that does not poll yet."""
        given = {"client_id": client_id, "group_id": GROUP, "auto_offset_reset": "earliest", **settings}
        reader = TourReader({**self.settings, **{name.replace("_", "."): value for name, value in given.items()}})
        self._made.callback(reader.stop)
        return reader

    def producer(self, client_id: str, **settings: Any) -> Producer:
        given = {"client_id": client_id, **settings}
        producer = Producer({**self.settings, **{name.replace("_", "."): value for name, value in given.items()}})
        return self._made.enter_context(producer)

    def end(self) -> int:
        """Return the offset after the last record of partition 0."""
        with Admin(self.settings) as admin:
            return admin.list_offsets({TopicPartition(TOPIC, 0): -1})[TopicPartition(TOPIC, 0)].offset

    def leader(self) -> int:
        """Return the broker that leads partition 0; -1 without a leader."""
        with Admin(self.settings) as admin:
            return admin.describe_topics([TOPIC])[TOPIC].partitions[0].leader
