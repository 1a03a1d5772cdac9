"""A broker with a topic for lazy reads, and the fetches that reads send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.events import FetchSent
from ottla.scanning import topic_scan
from ottla.trace import Trace

TOPIC = "orders"
COUNT = 1000
"""The records of each partition: the value is the offset, the timestamp `FIRST_MS` plus the offset in seconds."""
FIRST_MS = 1_767_225_600_000
PARTITIONS = 3


@pytest.fixture(scope="package")
def servers() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1), NewTopic("empty", 1, 1)])
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for partition in range(PARTITIONS):
                for n in range(COUNT):
                    at = FIRST_MS + n * 1000
                    producer.send(TOPIC, b"%d" % n, key=b"k", partition=partition, timestamp=at)
                    if n % 100 == 99:
                        producer.flush()  # several batches, so that a read takes several fetches
        with Producer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(TOPIC, b"aborted", partition=0, timestamp=FIRST_MS).result(10)
            producer.abort_transaction()
        yield broker.bootstrap_servers


class Fetches:
    """The offsets in the fetch requests of all reads."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []

    def first(self) -> dict[TopicPartition, int]:
        """Return the first requested offset of each partition."""
        found: dict[TopicPartition, int] = {}
        for trace in self.traces:
            for moment in trace:
                if isinstance(moment.event, FetchSent):
                    found = {**moment.event.offsets, **found}
        return found


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> Fetches:
    """Trace the consumers of the test's reads."""
    found = Fetches()

    def traced(*arguments: Any, **keywords: Any) -> Consumer[Any, Any]:
        consumer: Consumer[Any, Any] = Consumer(*arguments, **keywords)
        found.traces.append(consumer.trace())
        return consumer

    monkeypatch.setattr(topic_scan, "Consumer", traced)
    return found
