"""A transactional producer of librdkafka's that goes on and on, whoever is killed, and knows what it has committed.

One end is its own: where a coordinator has gone before it took partitions into a transaction, librdkafka aborts at the next one what has not
begun there, and is told INVALID_TXN_STATE as Kafka tells it, which it takes for fatal (confluentinc/librdkafka#4849). Another producer
of that transactional id goes on then, and nothing is committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import confluent_kafka as ck

from interop.background import Background
from rivals.kafka_cluster import wait_for

ABORTED_EACH = 5
"""Every so many numbers are written once in a transaction that is aborted, before they are in one that is not."""


class Transactor(Background):
    """Writes one number after the other to all topics at once, each number in a transaction; the key tells the attempt."""

    def __init__(
        self, address: str, topics: Sequence[str], transactional_id: str, first: int = 0, **settings: Any
    ) -> None:
        self._settings = {
            "bootstrap.servers": address,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "message.timeout.ms": 60_000,
            "topic.metadata.refresh.interval.ms": 500,
            "metadata.recovery.strategy": "none",  # as in `tests.checker.clients`
            "linger.ms": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self._producer = ck.Producer(self._settings)
        self._topics = topics
        self._first = self.count = first
        """Numbers from `first` on and below are committed."""
        self._attempts = 0
        self.aborted_attempts: list[str] = []
        """By their records' keys."""
        self.given_up = 0
        """Producers that took their own abort for fatal."""
        self.failed = ""
        super().__init__()

    def __enter__(self) -> Self:
        self._producer.init_transactions(60)
        return super().__enter__()

    @property
    def aborted(self) -> int:
        return len(self.aborted_attempts)

    def go_on(self, count: int = 10) -> None:
        """Wait until more is committed."""
        enough = self.count + count
        wait_for(lambda: self.count >= enough or self.failed, f"{self.count} of {enough} are committed")
        assert not self.failed, self.failed

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                if self.count % ABORTED_EACH == 0:
                    self._write(commit=False)
                while not self._write(commit=True):
                    pass
                self.count += 1
        except ck.KafkaException as error:
            self.failed = str(error)

    def _write(self, *, commit: bool) -> bool:
        """Whether it is committed; what must be aborted is written again."""
        attempt = f"{self._first}.{self._attempts}"
        self._attempts += 1
        self._producer.begin_transaction()
        try:
            for topic in self._topics:
                self._producer.produce(topic, b"%d" % self.count, attempt, partition=0)
            if commit:
                again(lambda: self._producer.commit_transaction(60))
                return True
            self._producer.flush(60)
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        self._abort()
        self.aborted_attempts.append(attempt)
        return False

    def _abort(self) -> None:
        try:
            again(lambda: self._producer.abort_transaction(60))
        except ck.KafkaException as error:
            if error.args[0].code() != ck.KafkaError.INVALID_TXN_STATE:
                raise
            self.given_up += 1
            self._producer = ck.Producer(self._settings)
            again(lambda: self._producer.init_transactions(60))


def again(call: Callable[[], object]) -> None:
    """Until it does not fail of what passes."""
    while True:
        try:
            call()
        except ck.KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return
