"""An idempotent producer of librdkafka. It continues when brokers are killed, and records the acknowledged numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka as ck

from interop.background import Background
from rivals.kafka_cluster import wait_for

PACE_SECONDS = 0.002


class Writer(Background):
    """Writes consecutive numbers to each topic, each exactly once.

    `about` describes the cluster if the writer is blocked.
    """

    def __init__(
        self,
        address: str,
        topics: Sequence[str],
        about: Callable[[], str] = lambda: "",
        pace_seconds: float = PACE_SECONDS,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._producer = ck.Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 60_000,
                "topic.metadata.refresh.interval.ms": 500,
                "metadata.recovery.strategy": "none",  # as in `tests.checker.clients`
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._topics = topics
        self._about = about
        self._pace_seconds = pace_seconds
        self.count = 0
        self.delivered: dict[str, list[int]] = {topic: [] for topic in topics}
        """The acknowledged numbers."""
        self.failed: list[str] = []

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        assert not self._producer.flush(60)

    @property
    def acknowledged(self) -> dict[str, int]:
        """Return the number of acknowledged numbers by topic."""
        return {topic: len(numbers) for topic, numbers in self.delivered.items()}

    def go_on(self, count: int = 50) -> None:
        """Wait until `count` more numbers are acknowledged in each topic."""
        enough = {topic: known + count for topic, known in self.acknowledged.items()}

        def is_enough() -> bool:
            return bool(self.failed) or all(self.acknowledged[each] >= enough[each] for each in enough)

        wait_for(is_enough, lambda: f"{self.acknowledged} < {enough} of {self.count}: {self._about()}")
        assert not self.failed, (self.failed[:3], self.acknowledged, self.count, self._about())

    def _run(self) -> None:
        try:
            while not self._over.wait(self._pace_seconds):
                for topic in self._topics:
                    self._producer.produce(topic, b"%d" % self.count, partition=0, on_delivery=self._handle_delivery)
                self.count += 1
                self._producer.poll(0)
        except (ck.KafkaException, BufferError) as error:  # it writes nothing more after this
            self.failed.append(str(error))

    def _handle_delivery(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.delivered[message.topic() or ""].append(int(message.value() or b""))
