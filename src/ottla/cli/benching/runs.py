"""What `ottla bench` does to a cluster, and what it measures; nothing is printed here.

A run takes `tell`, which is told how many more are done.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.consumer import Consumer
    from ottla.client.producer import Producer
    from ottla.model import RecordMetadata

Tell = Callable[[int], None]
MOST_SAMPLES = 100_000
"""So many records are timed at most, evenly spread."""
VALUES, MOST_BYTES = 64, 64 * 2**20
"""Different values that are sent in turn, and what they may take together where one is large."""
SILENCE_SECONDS = 30.0
"""After which a topic is taken to have no more."""
PACE_SECONDS = 0.001
"""Below this nobody waits to keep a rate."""


class Run(NamedTuple):
    """What was done, and how long it and its parts took."""

    number: int
    size_bytes: int
    seconds: float
    latencies: list[float]
    """Seconds."""

    @property
    def rate(self) -> float:
        return self.number / self.seconds if self.seconds else 0.0

    @property
    def mb_rate(self) -> float:
        """Megabytes of values a second."""
        return self.size_bytes / self.seconds / 1e6 if self.seconds else 0.0


@contextmanager
def topic_for(admin: Admin, given: str | None, partitions: int) -> Iterator[str]:
    """The topic that was named, or one that is made now and goes at the end."""
    if given is not None:
        admin.describe_topics([given])
        yield given
        return
    from ottla.client.admin import NewTopic

    admin.describe_cluster()  # where nobody answers, nothing is made that nobody could be asked to delete
    name = f"ottla-bench-{uuid4().hex[:8]}"
    is_made = False
    try:
        admin.create_topics([NewTopic(name, partitions)])
        is_made = True
        yield name
    finally:
        with nullcontext() if is_made else suppress(OttlaError):  # who is interrupted amid the first may have made it
            admin.delete_topics([name])


class Deliveries:
    """Takes the times of records from `send` until the broker has them; the first that fails is kept."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self._error: Exception | None = None

    def timed(self) -> Callable[[RecordMetadata | None, Exception | None], None]:
        """What a record is sent with whose time is taken from now on."""
        begun = time.perf_counter()

        def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
            self.latencies.append(time.perf_counter() - begun)
            self.plain(metadata, error)

        return delivered

    def plain(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self._error = self._error or error

    def check(self) -> None:
        if self._error is not None:
            raise self._error


def produce(producer: Producer, topic: str, count: int, size: int, rate: float | None, tell: Tell) -> Run:
    """Send as quickly as may be, or `rate` records a second; over when the broker has the last."""
    values = values_of(size)
    deliveries = Deliveries()
    begun = time.perf_counter()
    every = max(math.ceil(count / MOST_SAMPLES), 1)
    for number in range(count):
        if rate is not None:
            keep_pace(begun + number / rate)
        producer.send(
            topic, values[number % len(values)], on_delivery=deliveries.plain if number % every else deliveries.timed()
        )
        deliveries.check()
        tell(1)
    producer.flush()
    deliveries.check()
    return Run(count, count * size, time.perf_counter() - begun, deliveries.latencies)


def values_of(size: int) -> list[bytes]:
    """What is sent in turn."""
    return [os.urandom(size) for _ in range(max(1, min(VALUES, MOST_BYTES // max(size, 1))))]


def keep_pace(moment: float) -> None:
    ahead = moment - time.perf_counter()
    if ahead > PACE_SECONDS:
        time.sleep(ahead)


def consume(consumer: Consumer, topic: str, count: int, *, arrow: bool, tell: Tell) -> Run:
    """Read so many from the beginning, or all that there are now; the first connection to each leader is in the time."""
    from ottla.model import TopicPartition

    places = [TopicPartition(topic, number) for number in range(len(consumer.partitions_for(topic)))]
    ends = consumer.end_offsets(places)
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    done = size = 0
    begun, until = time.perf_counter(), time.perf_counter() + SILENCE_SECONDS
    while done < count and any(consumer.position(each) < ends[each] for each in places):
        found, more = portion(consumer, arrow=arrow)
        done, size = done + found, size + more
        tell(found)
        if found:
            until = time.perf_counter() + SILENCE_SECONDS
        elif time.perf_counter() > until:
            raise OttlaError(f"nothing came from {topic} for {SILENCE_SECONDS:g} s, after {done} of {count} records")
    return Run(done, size, time.perf_counter() - begun, [])


def portion(consumer: Consumer, *, arrow: bool) -> tuple[int, int]:
    """The next records: how many, and how many bytes their values have."""
    if arrow:
        table = consumer.poll_arrow(1.0, columns=["value"])  # which says what is missing where there is no Arrow
        import pyarrow.compute as pc

        return table.num_rows, pc.sum(pc.binary_length(table["value"])).as_py() or 0
    records = consumer.poll(1.0)
    return len(records), sum(len(each.value or b"") for each in records)


def latency(producer: Producer, consumer: Consumer, topic: str, count: int, size: int, tell: Tell) -> tuple[Run, Run]:
    """One record after the other: until the broker has it, and until a consumer does."""
    from ottla.model import TopicPartition

    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_end(place)
    offset = consumer.position(place)
    taken, seen = list[float](), list[float]()
    begun = time.perf_counter()
    for _ in range(count):
        value, sent = os.urandom(size), time.perf_counter()
        offset = max(producer.send(topic, value, partition=0).result().offset, offset)
        taken.append(time.perf_counter() - sent)
        await_offset(consumer, topic, offset)
        seen.append(time.perf_counter() - sent)
        tell(1)
    span = time.perf_counter() - begun
    return Run(count, count * size, span, taken), Run(count, count * size, span, seen)


def await_offset(consumer: Consumer, topic: str, offset: int) -> None:
    """Poll until the record of that offset is here."""
    until = time.perf_counter() + SILENCE_SECONDS
    while not any(each.offset >= offset for each in consumer.poll(1.0)):
        if time.perf_counter() > until:
            raise OttlaError(
                f"offset {offset} of {topic}, which the broker took, was not read within {SILENCE_SECONDS:g} s"
            )


def transactions(producer: Producer, topic: str, count: int, records: int, size: int, tell: Tell) -> Run:
    """So many, of so many records each; a latency is that of a whole one, from its begin until it is committed."""
    value, latencies = os.urandom(size), list[float]()
    producer.init_transactions()
    begun = time.perf_counter()
    for _ in range(count):
        started = time.perf_counter()
        producer.begin_transaction()
        for _ in range(records):
            producer.send(topic, value)
        producer.commit_transaction()
        latencies.append(time.perf_counter() - started)
        tell(1)
    return Run(count, count * records * size, time.perf_counter() - begun, latencies)
