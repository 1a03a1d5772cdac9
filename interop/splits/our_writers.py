"""Our own producers as `interop.writer` and `interop.transactor` have librdkafka's: they go on, whoever is away, and know what they were told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interop.background import Background
from ottla import Producer
from ottla.errors import KafkaTimeoutError, OttlaError, TransactionAbortableError
from ottla.model import RecordMetadata

ABORTED_EACH = 5
CALL_SECONDS = 60.0


class OurWriter(Background):
    """Idempotent: one number after the other to each topic."""

    def __init__(self, address: str, topics: Sequence[str], pace_seconds: float) -> None:
        self._producer = Producer(bootstrap_servers=address, delivery_timeout_ms=240_000, metadata_max_age_ms=500)
        self._pace_seconds = pace_seconds
        self.told: dict[str, list[int]] = {topic: [] for topic in topics}
        self.failed: list[str] = []
        super().__init__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._producer.close()

    def _run(self) -> None:
        number = 0
        try:
            while not self._over.wait(self._pace_seconds):
                for topic in self.told:
                    self._producer.send(topic, b"%d" % number, partition=0, on_delivery=self._noting(topic, number))
                number += 1
        except OttlaError as error:
            self.failed.append(f"{type(error).__name__}: {error}")

    def _noting(self, topic: str, number: int) -> Callable[[RecordMetadata | None, BaseException | None], None]:
        def note(_: RecordMetadata | None, error: BaseException | None) -> None:
            if error is None:
                self.told[topic].append(number)
            else:
                self.failed.append(f"{type(error).__name__}: {error}")

        return note


class OurTransactor(Background):
    """One number after the other to all topics at once, each in a transaction; the key tells the attempt."""

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
            again(lambda: self._producer.init_transactions(CALL_SECONDS))
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
        """Whether it is committed; what must be aborted is written again."""
        attempt = f"{self._first}.{self._attempts}"
        self._attempts += 1
        self._producer.begin_transaction()
        try:
            for topic in self._topics:
                self._producer.send(topic, b"%d" % self.count, key=attempt.encode(), partition=0)
            if commit:
                again(lambda: self._producer.commit_transaction(CALL_SECONDS))
                return True
        except TransactionAbortableError:
            pass
        again(lambda: self._producer.abort_transaction(CALL_SECONDS))
        self.aborted_attempts.append(attempt)
        return False


def again(call: Callable[[], object]) -> None:
    """Until it is heard."""
    while True:
        try:
            call()
        except KafkaTimeoutError:
            continue
        return
