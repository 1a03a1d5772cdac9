"""A producer that writes consecutive numbers while brokers are added and removed."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from ottla import Consumer, Producer, TopicPartition

PACE_SECONDS = 0.001
QUIET_SECONDS = 2.0


class Load:
    """Writes inside a `with` block."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self._producer = Producer(bootstrap_servers=bootstrap_servers)
        self._topic = topic
        self._partitions = partitions
        self.sent = 0
        self.acknowledged = 0
        self.failed: list[BaseException] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._producer.flush()
        self._producer.close()

    def _run(self) -> None:
        while not self._over.wait(PACE_SECONDS):
            partition = self.sent % self._partitions
            value = b"%d" % self.sent
            self._producer.send(self._topic, value=value, partition=partition, on_delivery=self._told)
            self.sent += 1

    def _told(self, metadata: object, error: BaseException | None) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failed.append(error)


def read_all(bootstrap_servers: str, topic: str, partitions: int) -> list[int]:
    """Return every number in a topic."""
    places = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[int] = []
    with Consumer(bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            found += [int(record.value or b"") for record in consumer.poll(QUIET_SECONDS)]
    return found
