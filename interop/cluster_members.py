"""Consumers of groups whose coordinator runs in a cluster; each commits its position."""

from __future__ import annotations

import threading
import time
from typing import Any, Self

import confluent_kafka as ck

from interop.background import Background
from rivals.kafka_cluster import PATIENCE

STANDSTILL_SECONDS = 30.0
TOPICS, COPY = ("read-a", "read-b"), "copy-a"

PATIENT: dict[str, Any] = {"topic.metadata.refresh.interval.ms": 500, "metadata.recovery.strategy": "none"}
"""Settings that detect a new leader soon and retry brokers that are down (`tests.checker.clients`)."""

CLASSIC, CONSUMER = "classic", "consumer"
"""The settings of each group protocol."""


class Member(Background):
    """A member of a group with librdkafka. It commits the records that it has read before it reads more."""

    def __init__(self, address: str, group: str, protocol: str = CLASSIC) -> None:
        super().__init__()
        how = {"session.timeout.ms": 30_000} if protocol == CLASSIC else {"group.protocol": protocol}
        self._consumer = ck.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **how,
                **PATIENT,
            }
        )
        self.found: dict[str, list[int]] = {topic: [] for topic in TOPICS}
        self.committed = dict.fromkeys(TOPICS, 0)
        """The acknowledged offset of each topic."""

    def __enter__(self) -> Self:
        self._consumer.subscribe(list(TOPICS))
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._consumer.close()

    def _run(self) -> None:
        while not self._over.is_set():
            messages = [message for message in self._consumer.consume(100, 0.2) if not message.error()]
            for message in messages:
                self.found[message.topic() or ""].append(int(message.value() or b""))
            if messages:
                self._commit()

    def _commit(self) -> None:
        """Commit, and retry while the coordinator moves.

        After the loss of a partition, its next owner reads the records again.
        """
        while not self._over.is_set():
            try:
                for place in self._consumer.commit(asynchronous=False) or ():
                    self.committed[place.topic] = max(self.committed[place.topic], place.offset)
                return
            except ck.KafkaException as error:
                if error.args[0].code() in (ck.KafkaError.ILLEGAL_GENERATION, ck.KafkaError.UNKNOWN_MEMBER_ID):
                    return


class Copier(Background):
    """Copies a topic in transactions of librdkafka, as a member of a KIP-848 group; a failed transaction is retried.

    librdkafka caches the coordinator of a group for ten minutes. Its `send_offsets_to_transaction` waits for that
    broker longer than its timeout, although another broker coordinates the group by then. A copier that is blocked this
    way is abandoned, and a new one starts.
    """

    def __init__(self, address: str, group: str) -> None:
        super().__init__()
        self.failed: list[str] = []
        self._address, self._group = address, group
        self._now = self._begin()

    def __enter__(self) -> Self:
        self._now.start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._now.end()

    def _begin(self) -> Copying:
        return Copying(self._address, self._group, self.failed)

    def _run(self) -> None:
        while not self._over.wait(0.5):
            if self._now.stands_still:
                self._now.abandon()
                self._now = self._begin()
                self._now.start()


class Copying:
    """One consumer after the other, and a producer. A later producer with the same transactional id fences it."""

    def __init__(self, address: str, group: str, failed: list[str]) -> None:
        self._settings = {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **PATIENT,
        }
        self._consumer = ck.Consumer(self._settings)
        self._producer = ck.Producer({"bootstrap.servers": address, "transactional.id": group, **PATIENT})
        self._failed = failed
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._last_sign = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join(STANDSTILL_SECONDS)
        self._consumer.close()

    def abandon(self) -> None:
        """Close the consumer, so that its partition is revoked. The blocked thread ends by itself later."""
        self._over.set()
        self._consumer.close()

    @property
    def stands_still(self) -> bool:
        return time.monotonic() - self._last_sign > STANDSTILL_SECONDS

    def _run(self) -> None:
        try:
            self._producer.init_transactions(PATIENCE)
            self._consumer.subscribe([TOPICS[0]])
            while not self._over.is_set():
                self._last_sign = time.monotonic()
                messages = [message for message in self._consumer.consume(100, 0.2) if not message.error()]
                if messages:
                    self._copy(messages)
        except (ck.KafkaException, RuntimeError) as error:
            if not self._over.is_set():
                self._failed.append(str(error))

    def _copy(self, messages: list[ck.Message]) -> None:
        self._producer.begin_transaction()
        try:
            for message in messages:
                self._producer.produce(COPY, message.value(), partition=0)
            place = ck.TopicPartition(TOPICS[0], 0, (messages[-1].offset() or 0) + 1)
            self._producer.send_offsets_to_transaction([place], self._consumer.consumer_group_metadata(), PATIENCE)
            self._producer.commit_transaction(PATIENCE)
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._producer.abort_transaction(PATIENCE)
            self._begin_again()

    def _begin_again(self) -> None:
        """Create a consumer that starts at the committed offset.

        A `seek` of librdkafka may block while the coordinator is down.
        """
        self._consumer.close()
        if not self._over.is_set():
            self._consumer = ck.Consumer(self._settings)
            self._consumer.subscribe([TOPICS[0]])
