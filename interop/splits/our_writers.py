"""Our producers with the interfaces of `interop.writer` and `interop.transactor`.

They survive broker failures and record responses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interop.background import Background
from ottla import Producer
from ottla.errors import KafkaTimeoutError, OttlaError, TransactionAbortableError
from ottla.model import RecordMetadata

ABORTED_EACH = 5
CALL_SECONDS = 60.0


class OurWriter(Background):
    """An idempotent producer that writes consecutive numbers to each topic."""

    def __init__(self, address: str, topics: Sequence[str], pace_seconds: float) -> None:
        self._producer = Producer(bootstrap_servers=address, delivery_timeout_ms=240_000, metadata_max_age_ms=500)
        self._pace_seconds = pace_seconds
        self.delivered: dict[str, list[int]] = {topic: [] for topic in topics}
        self.failed: list[str] = []
        super().__init__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._producer.close()

    def _run(self) -> None:
        number = 0
        try:
            while not self._over.wait(self._pace_seconds):
                for topic in self.delivered:
                    self._producer.send(topic, b"%d" % number, partition=0, on_delivery=self._noting(topic, number))
                number += 1
        except OttlaError as error:
            self.failed.append(f"{type(error).__name__}: {error}")

    def _noting(self, topic: str, number: int) -> Callable[[RecordMetadata | None, BaseException | None], None]:
        def note(_: RecordMetadata | None, error: BaseException | None) -> None:
            if error is None:
                self.delivered[topic].append(number)
            else:
                self.failed.append(f"{type(error).__name__}: {error}")

        return note


class OurTransactor(Background):
    """Writes consecutive numbers to all topics at once, each number in a transaction.

    The key identifies the attempt.
    """

    def __init__(self, address: str, topics: Sequence[str], transactional_id: str, first: int) -> None:
        self._producer = Producer(
            bootstrap_servers=address,
            transactional_id=transactional_id,
            transaction_timeout_ms=120_000,
            metadata_max_age_ms=500,
        )
        self._topics = topics
        self._first = self.count = first
        self._attempts = 0
        self.aborted_attempts: list[str] = []
        self.failed = ""
        super().__init__()

    def _run(self) -> None:
        try:
            retry(lambda: self._producer.init_transactions(CALL_SECONDS))
            while not self._over.is_set():
                if self.count % ABORTED_EACH == 0:
                    self._write(commit=False)
                while not self._write(commit=True):
                    pass
                self.count += 1
            self._producer.close()
        except OttlaError as error:
            self.failed = f"{type(error).__name__}: {error}"
            self._producer.close(0)

    def _write(self, *, commit: bool) -> bool:
        """Return True if the transaction was committed. An aborted number has to be written again."""
        attempt = f"{self._first}.{self._attempts}"
        self._attempts += 1
        self._producer.begin_transaction()
        try:
            for topic in self._topics:
                self._producer.send(topic, b"%d" % self.count, key=attempt.encode(), partition=0)
            if commit:
                retry(lambda: self._producer.commit_transaction(CALL_SECONDS))
                return True
        except TransactionAbortableError:
            pass
        retry(lambda: self._producer.abort_transaction(CALL_SECONDS))
        self.aborted_attempts.append(attempt)
        return False


def retry(call: Callable[[], object]) -> None:
    """Retry the call until it succeeds."""
    while True:
        try:
            call()
        except KafkaTimeoutError:
            continue
        return
