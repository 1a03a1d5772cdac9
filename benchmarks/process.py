"""Measure exactly-once processing: ours next to the same loop in confluent-kafka, on the same broker (ours).

Throughput: records of 100 bytes per second with a commit every 100 ms. Latency: from a producer through the processor
and its transaction to a read_committed consumer, at 1,000 records per second and a commit every 10 ms.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import confluent_kafka as ck

from benchmarks import confluent
from benchmarks._processor import FORMS, copy_by_confluent, copy_by_ottla
from benchmarks.brokers import Running, ottla_broker
from benchmarks.confluent import new_topic
from benchmarks.duel import Line, report
from benchmarks.race import Contender, race

SIZE = 100
RECORDS = 400_000
COMMIT_MS = 100
RATE = 1000
TIMED = 10_000
WARM = 2_000
"""The number of records at the start that are not timed."""
QUICK_COMMIT_MS = 10


def contenders(server: Running, source: str) -> Iterator[Contender]:
    """Yield the contenders that copy. Ratios are relative to the last one."""
    for form, title in FORMS.items():
        work = partial(copied, server, partial(copy_by_ottla, form), source)
        yield Contender(f"ottla.process, {title}", work, server.process)
    yield Contender("confluent-kafka", partial(copied, server, copy_by_confluent, source), server.process)


def copied(server: Running, copy: Callable[..., None], source: str) -> int:
    """Copy the whole source to a new topic."""
    copy(server.bootstrap, source, new_topic(server), COMMIT_MS, RECORDS)
    return RECORDS


def latencies(server: Running, way: str) -> list[float]:
    """Return the milliseconds from producer to reader, with the processor in a process of its own."""
    source, target = new_topic(server), new_topic(server)
    spans: list[float] = []
    with running(server, way, source, target):
        reader = threading.Thread(target=receive, args=(server, target, spans))
        reader.start()
        send(server, source)
        reader.join()
    return spans[WARM:]


@contextmanager
def running(server: Running, way: str, source: str, target: str) -> Iterator[None]:
    """Run a processor until the end of the block."""
    command = [sys.executable, "-m", "benchmarks._processor", way, server.bootstrap, source, target]
    with subprocess.Popen([*command, str(QUICK_COMMIT_MS)]) as process:
        try:
            yield
        finally:
            process.kill()


def send(server: Running, topic: str) -> None:
    """Send a record each millisecond, with its send time."""
    producer = ck.Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 0, "acks": "all", "log_level": 3})
    producer.list_topics(topic)
    begin = time.perf_counter()
    for number in range(TIMED):
        left = begin + number / RATE - time.perf_counter()
        if left > 0:
            time.sleep(left)
        producer.produce(topic, time.perf_counter_ns().to_bytes(8, "big").ljust(SIZE), partition=0)
        producer.poll(0)
    producer.flush()


def receive(server: Running, topic: str, spans: list[float]) -> None:
    """Read the committed records one by one."""
    settings: dict[str, Any] = {"bootstrap.servers": server.bootstrap, "group.id": topic, "log_level": 3}
    consumer = ck.Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    while len(spans) < TIMED:
        message = consumer.poll(60)
        assert message is not None, f"nothing came for a minute after {len(spans)} records"
        value = message.value()
        assert value is not None, message.error()
        spans.append((time.perf_counter_ns() - int.from_bytes(value[:8], "big")) / 1e6)
    consumer.close()


def quantile_lines(server: Running) -> list[tuple[Line, str]]:
    """Return the rows of p50 and p99 for both."""
    found = [statistics.quantiles(latencies(server, way), n=100) for way in ("records", "confluent")]
    return [
        (Line(f"p{percent} ms", [quantiles[percent - 1] for quantiles in found], [found[0][percent - 1] / found[1][percent - 1]]), aim)
        for percent, aim in ((50, ""), (99, "< 20"))
    ]  # fmt: skip


def main() -> None:
    with ottla_broker("group.initial.rebalance.delay.ms=0") as server:
        source = new_topic(server)
        confluent.fill(server, source, SIZE, RECORDS)
        race(f"exactly once, {SIZE} bytes, aim ≥ 3", list(contenders(server, source)), rounds=3)
        names = [Running(name, server.bootstrap, server.process) for name in ("ottla.process", "confluent-kafka")]
        report(f"producer to reader at {RATE:,} records/s, a commit each 10 ms", names, quantile_lines(server))


if __name__ == "__main__":
    main()
