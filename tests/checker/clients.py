"""Librdkafka's clients, set to come back quickly when a broker does, recording what they do."""

from __future__ import annotations

import threading
import time
from typing import Any

import confluent_kafka as ck

from tests.checker.history import Acknowledged, Began, Ended, Ending, History, Sent, Took

PATIENCE = 60.0
"""Seconds for one call, with a restart of the broker in between."""
PROMISE_SECONDS = 1.5
"""After twice this time another producer continues."""
QUICK: dict[str, Any] = {
    # Otherwise it drops a broker that is missing from the metadata, and a pending call waits forever (2.16).
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "log_level": 0,
}


class GaveUp(Exception):
    """A client did not get through in time: the verdict says what became of it."""


def partition_of(place: str) -> tuple[str, int]:
    """Topic and number of a place."""
    topic, _, number = place.rpartition("-")
    return topic, int(number)


class Sender:
    """A producer: idempotent, or with a transactional id that it takes over from the previous owner."""

    def __init__(
        self, address: str, history: History, worker: str, *, instance: int = 0, transactional: bool = True
    ) -> None:
        self.history = history
        self.worker = worker
        self.instance = instance
        self.sender = f"{worker}.{instance}"
        self.transaction: str | None = None
        self._sent = 0
        self._transactions = 0
        self._failed: list[str] = []
        ids = {"transactional.id": worker} if transactional else {"enable.idempotence": True}
        self._producer = ck.Producer({"bootstrap.servers": address, "linger.ms": 1, **ids, **QUICK})
        if transactional:
            until_done(lambda: self._producer.init_transactions(PATIENCE))
            history.add(Took(worker, instance))

    def begin(self) -> None:
        """A transaction."""
        self._transactions += 1
        self.transaction = f"{self.sender}.{self._transactions}"
        self.history.add(Began(self.transaction, self.worker, self.instance))
        self._producer.begin_transaction()

    def send(self, place: str, value: str | None = None) -> None:
        """A record, which says where it is from."""
        self._sent += 1
        value = value or f"{self.sender}:{self._sent}"
        self.history.add(Sent(value, place, self.sender, self._sent, self.transaction))
        topic, partition = partition_of(place)

        def delivered(error: ck.KafkaError | None, message: ck.Message) -> None:
            if error is None:
                self.history.add(Acknowledged(value, place, message.offset() or 0))
            else:
                self._failed.append(str(error))

        self._producer.produce(topic, value, partition=partition, on_delivery=delivered)

    def flush(self) -> None:
        """Until all is acknowledged; GaveUp where something is not."""
        try:
            left = self._producer.flush(PATIENCE)
        except SystemError as error:  # seen of a fenced producer of confluent-kafka 2.16: its C said no more
            raise GaveUp(f"{self.sender}: {error}") from error
        if left or self._failed:
            raise GaveUp(f"{self.sender}: {self._failed[:1] or 'not all was acknowledged'}")

    def promise(self, place: str, offset: int, group: Any) -> None:
        """An offset, within the transaction; GaveUp where that does not work."""
        position = ck.TopicPartition(*partition_of(place), offset)
        failed: list[Exception] = [GaveUp(f"{self.sender} hears nothing of the group's coordinator")]

        def call() -> None:
            try:
                self._producer.send_offsets_to_transaction([position], group, PROMISE_SECONDS)
                failed.clear()
            except ck.KafkaException as error:
                failed[0] = GaveUp(str(error))

        # Librdkafka 2.16 may wait forever, beyond the timeout, for a coordinator if the connection broke at that moment.
        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(2 * PROMISE_SECONDS)
        if failed:
            raise failed[0]

    def commit(self) -> bool:
        """Return True if it was committed, False if it was aborted. Raise GaveUp if the outcome is unknown."""
        self._ask(commit=True)
        try:
            until_done(lambda: self._producer.commit_transaction(PATIENCE))
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise GaveUp(f"{self.sender}: {error}") from error
            self.abort()
            return False
        self._told(commit=True)
        return True

    def abort(self) -> None:
        """Raise GaveUp if the outcome is unknown."""
        self._ask(commit=False)
        try:
            until_done(lambda: self._producer.abort_transaction(PATIENCE))
        except ck.KafkaException as error:
            raise GaveUp(f"{self.sender}: {error}") from error
        self._failed.clear()
        self._told(commit=False)

    def _ask(self, *, commit: bool) -> None:
        assert self.transaction is not None
        self.history.add(Ending(self.transaction, commit))

    def _told(self, *, commit: bool) -> None:
        assert self.transaction is not None
        self.history.add(Ended(self.transaction, commit))
        self.transaction = None


def until_done(call: Any) -> None:
    """Again and again while librdkafka says that it may work next time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            call()
            return
        except ck.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() >= deadline:
                raise


def consumer_of(address: str, **settings: Any) -> ck.Consumer:
    """A reader of committed records at assigned partitions."""
    return ck.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 10,
            **QUICK,
            **settings,
        }
    )
