"""The producers of `benchmarks.produce`, written as users would write them, and a process for each."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

from ottla import Producer

Send = Callable[[str, str, int, int], None]
"""(bootstrap, topic, records, value size in bytes)."""
LINGER_MS = 5
BATCH_BYTES = 500_000
CHUNK = 100_000
TABLE_ROWS = 40_000
BATCH_RECORDS = 10_000
POLL_EVERY = 1_000
"""Users of confluent-kafka have to call `poll` for their callbacks.

This interval is short enough, and costs almost nothing.
"""
WAIT = 120


class Count:
    """A callback that counts delivered records."""

    def __init__(self) -> None:
        self.arrived = 0

    def ours(self, metadata: Any, error: Exception | None) -> None:
        """Called by our producer."""
        if error is None:
            self.arrived += 1

    def theirs(self, error: Any, message: Any) -> None:
        """Called by confluent-kafka."""
        if error is None:
            self.arrived += 1


def settings(server: str, **more: Any) -> dict[str, Any]:
    """Return the settings of our producer."""
    return {"bootstrap_servers": server, "linger_ms": LINGER_MS, "batch_size": BATCH_BYTES, **more}


def ottla_records(mode: str, **more: Any) -> Send:
    """Ours, record by record: with callbacks, with futures that are kept and checked, or without either."""
    return {"callbacks": with_callbacks, "futures": with_futures, "": unwatched}[mode](more)


def with_callbacks(more: dict[str, Any]) -> Send:
    """Each record has a callback."""

    def run(server: str, topic: str, records: int, size: int) -> None:
        value, count = bytes(size), Count()
        told = count.ours
        with Producer(**settings(server, **more)) as producer:
            for _ in range(records):
                producer.send(topic, value, on_delivery=told)
            producer.flush(WAIT)
        assert count.arrived == records

    return run


def with_futures(more: dict[str, Any]) -> Send:
    """Futures are kept until the records are acknowledged, some thousands at a time."""

    def run(server: str, topic: str, records: int, size: int) -> None:
        value = bytes(size)
        waiting: deque[Any] = deque()
        with Producer(**settings(server, **more)) as producer:
            for _ in range(records):
                waiting.append(producer.send(topic, value))
                if len(waiting) > CHUNK:
                    waiting.popleft().result(WAIT)
            producer.flush(WAIT)
            for future in waiting:
                future.result(0)

    return run


def unwatched(more: dict[str, Any]) -> Send:
    """Send without a check of the futures."""

    def run(server: str, topic: str, records: int, size: int) -> None:
        value = bytes(size)
        with Producer(**settings(server, **more)) as producer:
            for _ in range(records):
                producer.send(topic, value)
            producer.flush(WAIT)

    return run


@cache
def table_of(size: int) -> Any:
    """Return a table of values of `size` bytes. It is created in the first round, which is not counted."""
    import pyarrow as pa

    return pa.table({"value": [bytes(size)] * (TABLE_ROWS)})


def ottla_table(**more: Any) -> Send:
    """Ours, one table at a time."""

    def run(server: str, topic: str, records: int, size: int) -> None:
        table = table_of(size)
        with Producer(**settings(server, **more)) as producer:
            for _ in range(records // table.num_rows):
                producer.send_table(topic, table)
            producer.flush(WAIT)

    return run


def ottla_many(server: str, topic: str, records: int, size: int) -> None:
    """Ours, ten thousand records per call."""
    values = [bytes(size)] * BATCH_RECORDS
    with Producer(**settings(server)) as producer:
        for _ in range(records // BATCH_RECORDS):
            producer.send_many(topic, values)
        producer.flush(WAIT)


async def ottla_awaited(server: str, topic: str, records: int, size: int) -> None:
    """Ours in asyncio."""
    from ottla.aio import Producer as AsyncProducer

    value = bytes(size)
    async with AsyncProducer(**settings(server)) as producer:
        for _ in range(records):
            await producer.send(topic, value)
        await producer.flush(WAIT)


def confluent_settings(server: str) -> dict[str, Any]:
    """Return equivalent settings of confluent-kafka, with a queue that is never full."""
    return {
        "bootstrap.servers": server,
        "log_level": 0,
        "linger.ms": LINGER_MS,
        "batch.size": BATCH_BYTES,
        "queue.buffering.max.messages": 0,
        "queue.buffering.max.kbytes": 2_000_000,
    }


def confluent_records(with_callbacks: bool) -> Send:
    """confluent-kafka, record by record."""

    def run(server: str, topic: str, records: int, size: int) -> None:
        import confluent_kafka

        producer = confluent_kafka.Producer(confluent_settings(server))
        value, count = bytes(size), Count()
        told: dict[str, Any] = {"on_delivery": count.theirs} if with_callbacks else {}
        for number in range(records):
            producer.produce(topic, value, **told)
            if number % POLL_EVERY == 0:
                producer.poll(0)
        assert producer.flush(WAIT) == 0
        assert not with_callbacks or count.arrived == records

    return run


def confluent_batches(server: str, topic: str, records: int, size: int) -> None:
    """confluent-kafka, ten thousand records in a call."""
    import confluent_kafka

    producer = confluent_kafka.Producer(confluent_settings(server))
    messages = [{"value": bytes(size)}] * BATCH_RECORDS
    for _ in range(records // BATCH_RECORDS):
        assert producer.produce_batch(topic, messages) == BATCH_RECORDS
        producer.poll(0)
    assert producer.flush(WAIT) == 0


def kafka_python_records(server: str, topic: str, records: int, size: int) -> None:
    """kafka-python, record by record."""
    import kafka

    value = bytes(size)
    producer = kafka.KafkaProducer(
        bootstrap_servers=server, linger_ms=LINGER_MS, batch_size=BATCH_BYTES, enable_idempotence=False
    )
    for _ in range(records):
        producer.send(topic, value)
    producer.flush(WAIT)
    producer.close()


async def aiokafka_records(server: str, topic: str, records: int, size: int) -> None:
    """aiokafka, record by record."""
    import aiokafka

    value = bytes(size)
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=server, linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES, acks="all"
    )
    await producer.start()
    for _ in range(records):
        await producer.send(topic, value)
    await producer.flush()
    await producer.stop()
    await asyncio.sleep(0)


def send(server: str, topic: str, records: str, size: str) -> dict[str, float]:
    """Run a turn with callbacks in this process."""
    work = ottla_records("callbacks")
    work(server, topic, 1, int(size))
    clock, used = time.perf_counter(), time.process_time()
    work(server, topic, int(records), int(size))
    return {"wall": time.perf_counter() - clock, "cpu": time.process_time() - used}


def memory(server: str, topic: str, kind: str, size: str, seconds: str) -> dict[str, float]:
    """Send at full speed with default settings, and record the memory of this process meanwhile."""
    from benchmarks.race import resident_bytes

    value, count = bytes(int(size)), Count()
    with Producer(bootstrap_servers=server) as producer:
        one = step(producer, topic, kind, value, count)
        one(10)
        producer.flush(WAIT)
        gc.collect()
        idle = most = resident_bytes(os.getpid())
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            one(2_000)
            most = max(most, resident_bytes(os.getpid()))
    return {"megabytes": (most - idle) / 1e6}


def step(producer: Producer, topic: str, kind: str, value: bytes, count: Count) -> Callable[[int], None]:
    """Send `count` records in one of three ways; a table has ten times as many."""
    told = count.ours if kind == "callbacks" else None

    def one_by_one(records: int) -> None:
        for _ in range(records):
            producer.send(topic, value, on_delivery=told)

    if kind != "table":
        return one_by_one
    import pyarrow as pa

    whole = pa.table({"value": [value] * 20_000})

    def by_table(records: int) -> None:
        producer.send_table(topic, whole.slice(0, 10 * records))

    return by_table


if __name__ == "__main__":
    tasks: dict[str, Callable[..., dict[str, float]]] = {"send": send, "memory": memory}
    print(json.dumps(tasks[sys.argv[1]](*sys.argv[2:])))
