"""A transactional producer of librdkafka. It continues when brokers are killed, and records its committed numbers.

One kind of error ends a producer. If a coordinator fails before it has added partitions to a transaction, librdkafka
aborts a transaction that is unknown to the next coordinator. Like Kafka, that coordinator responds INVALID_TXN_STATE,
which librdkafka treats as fatal (confluentinc/librdkafka#4849). Another producer with the same transactional id then
continues, and nothing is committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import confluent_kafka as ck

from interop.background import Background
from rivals.kafka_cluster import wait_for

ABORTED_EACH = 5
"""One of this many numbers is first written in a transaction that is aborted, and then written again."""


class Transactor(Background):
    """Writes consecutive numbers to all topics at once, each number in a transaction.

    The key identifies the attempt.
    """

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
        """The end of the range of committed numbers, which starts at `first`."""
        self._attempts = 0
        self.aborted_attempts: list[str] = []
        """The keys of the records in aborted attempts."""
        self.given_up = 0
        """The number of producers that failed because of their own abort."""
        self.failed = ""
        super().__init__()

    def __enter__(self) -> Self:
        self._producer.init_transactions(60)
        return super().__enter__()

    @property
    def aborted(self) -> int:
        return len(self.aborted_attempts)

    def go_on(self, count: int = 10) -> None:
        """Wait until `count` more numbers are committed."""
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
        """Return True if the transaction was committed. An aborted number has to be written again."""
        attempt = f"{self._first}.{self._attempts}"
        self._attempts += 1
        self._producer.begin_transaction()
        try:
            for topic in self._topics:
                self._producer.produce(topic, b"%d" % self.count, attempt, partition=0)
            if commit:
                retry(lambda: self._producer.commit_transaction(60))
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
            retry(lambda: self._producer.abort_transaction(60))
        except ck.KafkaException as error:
            if error.args[0].code() != ck.KafkaError.INVALID_TXN_STATE:
                raise
            self.given_up += 1
            self._producer = ck.Producer(self._settings)
            retry(lambda: self._producer.init_transactions(60))


def retry(call: Callable[[], object]) -> None:
    """Retry the call while it fails with transient errors."""
    while True:
        try:
            call()
        except ck.KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return
