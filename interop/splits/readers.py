"""Members of groups, ours and librdkafka's: they read numbers, commit how far they came, and keep what they saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import confluent_kafka as ck

from interop.background import Background
from interop.cluster_members import PATIENT
from ottla import Consumer
from ottla.errors import OttlaError

COMMIT_MS = 500


class Reader(Background):
    """A member alone in its group."""

    def __init__(self, name: str, topics: Sequence[str], settings: dict[str, Any]) -> None:
        self.name = name
        self.seen: dict[str, list[int]] = {topic: [] for topic in topics}
        """Numbers of each topic, in the order in which they came."""
        self.failed = ""
        self._settings = settings
        super().__init__()

    @property
    def progress(self) -> int:
        return sum(map(len, self.seen.values()))

    def _run(self) -> None:
        try:
            for topic, value in self._records():
                self.seen[topic].append(int(value))
        except (OttlaError, ck.KafkaException) as error:
            self.failed = f"{type(error).__name__}: {error}"

    def _records(self) -> Iterator[tuple[str, bytes]]:
        raise AssertionError("one of the clients reads")


class OurReader(Reader):
    def _records(self) -> Iterator[tuple[str, bytes]]:
        with Consumer(self._settings | {"metadata.max.age.ms": 500}) as consumer:
            consumer.subscribe(list(self.seen))
            while not self._over.is_set():
                yield from ((each.topic, each.value or b"") for each in consumer.poll(0.2))


class LibrdkafkaReader(Reader):
    def _records(self) -> Iterator[tuple[str, bytes]]:
        consumer = ck.Consumer(self._settings | PATIENT)
        consumer.subscribe(list(self.seen))
        while not self._over.is_set():
            for message in consumer.consume(100, 0.2):
                if message.error() is None:
                    yield message.topic() or "", message.value() or b""
        consumer.close()


def readers(address: str, topics: Sequence[str]) -> list[Reader]:
    """One of each client for each protocol of groups."""
    return [
        kind(f"{client}-{protocol}", topics, settings_of(address, f"{client}-{protocol}", protocol))
        for client, kind in (("ours", OurReader), ("librdkafka", LibrdkafkaReader))
        for protocol in ("classic", "consumer")
    ]


def settings_of(address: str, group: str, protocol: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_MS,
    }
