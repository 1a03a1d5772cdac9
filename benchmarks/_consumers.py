"""One consumer in a process of its own, for `consuming.py`. It runs tasks of the named kind until its input ends.

Each line on stdin is a task: bootstrap address, topic, partitions, records. The response is a line of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

CHUNK = 10_000
SECONDS = 30
IDLE_SECONDS = 20
IDLE_POLL_SECONDS = 1.0


class Task(NamedTuple):
    """The topic and the number of records to read."""

    bootstrap: str
    topic: str
    partitions: int
    records: int
    """The number of records. Ignored by idle consumers, which wait at the end of the topic for `IDLE_SECONDS`."""


def ours(task: Task, kind: Any = None, reset: Literal["earliest", "latest"] = "earliest") -> Any:
    """Return a consumer of ours that is assigned all partitions."""
    import ottla

    consumer = (kind or ottla.Consumer)(
        bootstrap_servers=task.bootstrap, auto_offset_reset=reset, max_poll_records=CHUNK
    )
    consumer.assign([ottla.TopicPartition(task.topic, number) for number in range(task.partitions)])
    return consumer


def ottla_records(task: Task) -> int:
    """Ours, record by record, with each value read."""
    got = seen = 0
    with ours(task) as consumer:
        while got < task.records:
            for record in consumer.poll(timeout=SECONDS):
                seen += len(record.value)
                got += 1
    return seen


def ottla_iteration(task: Task) -> int:
    """Ours, as `for record in consumer`."""
    got = seen = 0
    with ours(task) as consumer:
        for record in consumer:
            seen += len(record.value)
            got += 1
            if got == task.records:
                return seen
    return seen


def ottla_aio(task: Task) -> int:
    """Ours in asyncio, record by record."""
    import ottla.aio

    async def read() -> int:
        got = seen = 0
        async with ours(task, ottla.aio.Consumer) as consumer:
            while got < task.records:
                for record in await consumer.poll(timeout=SECONDS):
                    seen += len(record.value)
                    got += 1
        return seen

    return asyncio.run(read())


def ottla_value(task: Task) -> int:
    """Ours, with the values as an Arrow column."""
    return arrow_bytes(task, columns=["value"])


def ottla_arrow(task: Task) -> int:
    """Ours, with all columns as Arrow."""
    return arrow_bytes(task)


def arrow_bytes(task: Task, **options: Any) -> int:
    """Return the size in bytes of all values, computed with Arrow."""
    import pyarrow.compute as pc

    got = seen = 0
    with ours(task) as consumer:
        while got < task.records:
            table = consumer.poll_arrow(timeout=SECONDS, **options)
            seen += pc.sum(pc.binary_length(table.column("value"))).as_py()
            got += table.num_rows
    return seen


def confluent(task: Task, offset: int = 0) -> Any:
    """Return a consumer of confluent-kafka with its fastest settings that is assigned all partitions."""
    import confluent_kafka as ck

    from benchmarks.confluent import CONSUMER

    consumer = ck.Consumer({"bootstrap.servers": task.bootstrap} | CONSUMER)
    consumer.assign([ck.TopicPartition(task.topic, number, offset) for number in range(task.partitions)])
    return consumer


def confluent_records(task: Task) -> int:
    """confluent-kafka with `consume()`, with each value read."""
    consumer = confluent(task)
    got = seen = 0
    while got < task.records:
        batch = consumer.consume(CHUNK, timeout=SECONDS)
        for message in batch:
            seen += len(message.value())
        got += len(batch)
    consumer.close()
    return seen


def confluent_value(task: Task) -> int:
    """confluent-kafka, the values to an Arrow column."""
    import confluent_kafka as ck
    import pyarrow as pa

    def values(batch: Any) -> Any:
        return pa.array(list(map(ck.Message.value, batch)), pa.binary())

    return confluent_arrow_bytes(task, values)


def confluent_arrow(task: Task) -> int:
    """confluent-kafka, the same columns as ours to Arrow."""
    import confluent_kafka as ck
    import pyarrow as pa

    from ottla.records.arrow import SCHEMA

    def columns(batch: Any) -> Any:
        times = list(map(ck.Message.timestamp, batch))
        arrays: list[Any] = [
            pa.array(list(map(ck.Message.key, batch)), pa.binary()),
            pa.array(list(map(ck.Message.value, batch)), pa.binary()),
            pa.array(list(map(ck.Message.topic, batch)), pa.string()),
            pa.array(list(map(ck.Message.partition, batch)), pa.int32()),
            pa.array(list(map(ck.Message.offset, batch)), pa.int64()),
            pa.array([time for _, time in times], pa.int64()).cast(pa.timestamp("ms", tz="UTC")),
            pa.array([kind for kind, _ in times], pa.int32()),
        ]
        return pa.Table.from_arrays(arrays, schema=SCHEMA).column("value")

    return confluent_arrow_bytes(task, columns)


def confluent_arrow_bytes(task: Task, convert: Callable[[Any], Any]) -> int:
    """Bytes of all values, by Arrow."""
    import pyarrow.compute as pc

    consumer = confluent(task)
    got = seen = 0
    while got < task.records:
        batch = consumer.consume(CHUNK, timeout=SECONDS)
        seen += pc.sum(pc.binary_length(convert(batch))).as_py()
        got += len(batch)
    consumer.close()
    return seen


def kafka_python(task: Task) -> int:
    """kafka-python with `poll()`, with each value read."""
    import kafka

    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "group_id": None}
    consumer = kafka.KafkaConsumer(bootstrap_servers=task.bootstrap, **settings)
    consumer.assign([kafka.TopicPartition(task.topic, number) for number in range(task.partitions)])
    got = seen = 0
    while got < task.records:
        for batch in consumer.poll(timeout_ms=1000 * SECONDS, max_records=CHUNK).values():
            for message in batch:
                seen += len(message.value)
            got += len(batch)
    consumer.close()
    return seen


def ottla_idle(task: Task) -> int:
    """Ours, without records to read."""
    with ours(task, reset="latest") as consumer:
        return idle(lambda: consumer.poll(IDLE_POLL_SECONDS))


def confluent_idle(task: Task) -> int:
    """confluent-kafka, without records to read."""
    import confluent_kafka as ck

    consumer = confluent(task, ck.OFFSET_END)
    seen = idle(lambda: consumer.consume(CHUNK, timeout=IDLE_POLL_SECONDS))
    consumer.close()
    return seen


def idle(poll: Callable[[], Any]) -> int:
    """Poll for a fixed time. The cost of connecting is not counted."""
    poll()
    begun, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - begun < IDLE_SECONDS:
        assert not poll()
    Meter.cpu = time.process_time() - used
    return 0


class Meter:
    """Measures processor seconds of a part of a task, for tasks in which only that part counts."""

    cpu: float | None = None


def measured(work: Callable[[Task], int], task: Task) -> dict[str, float]:
    """Run the task, and return elapsed seconds, processor seconds, and the size of the values in bytes."""
    Meter.cpu = None
    begun, used = time.perf_counter(), time.process_time()
    seen = work(task)
    cpu, wall = time.process_time() - used, time.perf_counter() - begun
    return {"wall": wall, "cpu": cpu if Meter.cpu is None else Meter.cpu, "bytes": seen}


def main() -> None:
    work = globals()[sys.argv[1]]
    for line in sys.stdin:
        bootstrap, topic, partitions, records = line.split()
        found = measured(work, Task(bootstrap, topic, int(partitions), int(records)))
        print(json.dumps(found), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
