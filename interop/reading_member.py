"""A member of a consumer group of ours that reads numbers in a separate thread during a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interop.background import Background
from ottla import Consumer
from ottla.errors import OttlaError
from rivals.kafka_cluster import wait_for


class ReadingMember(Background):
    """Records the numbers of each topic in the order of their delivery, and commits its position."""

    def __init__(self, servers: str, topics: Sequence[str], protocol: str, **others: Any) -> None:
        super().__init__()
        self.seen: dict[str, list[int]] = {topic: [] for topic in topics}
        self._error = ""
        self._settings = {
            "bootstrap_servers": servers,
            "group_id": f"readers-{protocol}",
            "group_protocol": protocol,
            "auto_offset_reset": "earliest",
            "auto_commit_interval_ms": 200,
            **others,
        }

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        assert not self._error, self._error

    def go_on(self) -> None:
        """Wait until it has read more of each topic."""
        before = self._counts()
        wait_for(
            lambda: self._error or all(self._counts()[topic] > count for topic, count in before.items()),
            lambda: f"it reads on from {before}, and has read {self._counts()}",
        )
        assert not self._error, self._error

    def wait_until_read(self, count: int) -> None:
        """Wait until the first `count` numbers of each topic are read."""
        wait_for(
            lambda: self._error or all(set(range(count)) <= set(each) for each in self.seen.values()),
            lambda: f"{self._counts()} of {count} are read",
        )
        assert not self._error, self._error

    def _counts(self) -> dict[str, int]:
        return {topic: len(numbers) for topic, numbers in self.seen.items()}

    def _run(self) -> None:
        try:
            with Consumer(self._settings) as consumer:
                consumer.subscribe(list(self.seen))
                while not self._over.is_set():
                    for each in consumer.poll(0.2):
                        self.seen[each.topic].append(int(each.value or b""))
        except OttlaError as error:
            self._error = f"{type(error).__name__}: {error}"
