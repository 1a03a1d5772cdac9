"""The runs of `ottla bench` and their measurements; nothing is printed here.

A run calls `on_progress` with the number of records or transactions completed since the last call.
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

ProgressCallback = Callable[[int], None]
MOST_SAMPLES = 100_000
"""The maximum number of timed records in a run; they are evenly spread."""
VALUES, MOST_BYTES = 64, 64 * 2**20
"""The number of different values that are sent in turn, and the limit of their total size in bytes."""
SILENCE_SECONDS = 30.0
"""The time without a record after which a read is given up as failed."""
PACE_SECONDS = 0.001
"""The shortest pause that is worth a sleep when a rate is kept."""


class Run(NamedTuple):
    """The amount of work of a run and the time it took."""

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
        """Megabytes of values per second."""
        return self.size_bytes / self.seconds / 1e6 if self.seconds else 0.0


@contextmanager
def topic_for(admin: Admin, given: str | None, partitions: int) -> Iterator[str]:
    """Yield the given topic, or create one and delete it at the end."""
    if given is not None:
        admin.describe_topics([given])
        yield given
        return
    from ottla.client.admin import NewTopic

    admin.describe_cluster()  # fails before the topic is created if the cluster cannot be reached, since it could not be deleted then
    name = f"ottla-bench-{uuid4().hex[:8]}"
    is_made = False
    try:
        admin.create_topics([NewTopic(name, partitions)])
        is_made = True
        yield name
    finally:
        with nullcontext() if is_made else suppress(OttlaError):  # an interrupted creation may have succeeded
            admin.delete_topics([name])


class Deliveries:
    """Record the time from `send` to the acknowledgement of each record; keep the first error."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self._error: Exception | None = None

    def timed_callback(self) -> Callable[[RecordMetadata | None, Exception | None], None]:
        """Return an `on_delivery` callback that records the time since now."""
        started = time.perf_counter()

        def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
            self.latencies.append(time.perf_counter() - started)
            self.plain(metadata, error)

        return delivered

    def plain(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self._error = self._error or error

    def check(self) -> None:
        if self._error is not None:
            raise self._error


def produce(
    producer: Producer, topic: str, count: int, size: int, rate: float | None, on_progress: ProgressCallback
) -> Run:
    """Send `count` records as fast as possible, or `rate` records per second, until the last one is acknowledged."""
    values = values_of(size)
    deliveries = Deliveries()
    started = time.perf_counter()
    every = max(math.ceil(count / MOST_SAMPLES), 1)
    for number in range(count):
        if rate is not None:
            keep_pace(started + number / rate)
        producer.send(
            topic,
            values[number % len(values)],
            on_delivery=deliveries.plain if number % every else deliveries.timed_callback(),
        )
        deliveries.check()
        on_progress(1)
    producer.flush()
    deliveries.check()
    return Run(count, count * size, time.perf_counter() - started, deliveries.latencies)


def values_of(size: int) -> list[bytes]:
    """Return the values that are sent in turn."""
    return [os.urandom(size) for _ in range(max(1, min(VALUES, MOST_BYTES // max(size, 1))))]


def keep_pace(moment: float) -> None:
    ahead = moment - time.perf_counter()
    if ahead > PACE_SECONDS:
        time.sleep(ahead)


def consume(consumer: Consumer, topic: str, count: int, *, arrow: bool, on_progress: ProgressCallback) -> Run:
    """Read at most `count` records from the start of the topic; the time includes the first connection to each leader."""
    from ottla.model import TopicPartition

    places = [TopicPartition(topic, number) for number in range(len(consumer.partitions_for(topic)))]
    ends = consumer.end_offsets(places)
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    done = size = 0
    started, until = time.perf_counter(), time.perf_counter() + SILENCE_SECONDS
    while done < count and any(consumer.position(each) < ends[each] for each in places):
        found, more = next_portion(consumer, arrow=arrow)
        done, size = done + found, size + more
        on_progress(found)
        if found:
            until = time.perf_counter() + SILENCE_SECONDS
        elif time.perf_counter() > until:
            raise OttlaError(
                f"no record received from {topic} for {SILENCE_SECONDS:g} s, after {done} of {count} records"
            )
    return Run(done, size, time.perf_counter() - started, [])


def next_portion(consumer: Consumer, *, arrow: bool) -> tuple[int, int]:
    """Return the number of the next records and the size of their values in bytes."""
    if arrow:
        table = consumer.poll_arrow(1.0, columns=["value"])  # raises a clear error if pyarrow is not installed
        import pyarrow.compute as pc

        return table.num_rows, pc.sum(pc.binary_length(table["value"])).as_py() or 0
    records = consumer.poll(1.0)
    return len(records), sum(len(each.value or b"") for each in records)


def latency(
    producer: Producer, consumer: Consumer, topic: str, count: int, size: int, on_progress: ProgressCallback
) -> tuple[Run, Run]:
    """Send one record at a time; measure until the acknowledgement and until a consumer receives it."""
    from ottla.model import TopicPartition

    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.seek_to_end(place)
    offset = consumer.position(place)
    taken, seen = list[float](), list[float]()
    started = time.perf_counter()
    for _ in range(count):
        value, sent = os.urandom(size), time.perf_counter()
        offset = max(producer.send(topic, value, partition=0).result().offset, offset)
        taken.append(time.perf_counter() - sent)
        await_offset(consumer, topic, offset)
        seen.append(time.perf_counter() - sent)
        on_progress(1)
    span = time.perf_counter() - started
    return Run(count, count * size, span, taken), Run(count, count * size, span, seen)


def await_offset(consumer: Consumer, topic: str, offset: int) -> None:
    """Poll until the record at this offset is received."""
    until = time.perf_counter() + SILENCE_SECONDS
    while not any(each.offset >= offset for each in consumer.poll(1.0)):
        if time.perf_counter() > until:
            raise OttlaError(f"offset {offset} of {topic} was acknowledged but not read within {SILENCE_SECONDS:g} s")


def transactions(
    producer: Producer, topic: str, count: int, records: int, size: int, on_progress: ProgressCallback
) -> Run:
    """Commit `count` transactions of `records` records each; a latency is the time from begin to commit."""
    value, latencies = os.urandom(size), list[float]()
    producer.init_transactions()
    run_started = time.perf_counter()
    for _ in range(count):
        started = time.perf_counter()
        producer.begin_transaction()
        for _ in range(records):
            producer.send(topic, value)
        producer.commit_transaction()
        latencies.append(time.perf_counter() - started)
        on_progress(1)
    return Run(count, count * records * size, time.perf_counter() - run_started, latencies)
