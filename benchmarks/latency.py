"""Measure the latency from `produce` to the consumer at 1,000 and 2,000 records per second without linger: p50 and
p99.

Ours runs next to Apache Kafka and kfake.
"""

from __future__ import annotations

import statistics
import threading
import time
from functools import partial

import confluent_kafka as ck

from benchmarks.broker import warm_up
from benchmarks.brokers import Running, everybody
from benchmarks.confluent import new_topic
from benchmarks.duel import Figures, duel, report

RATES = (1_000, 2_000)
RECORDS = 10_000
WARM = 1_000
"""The number of records at the start that are not counted."""
AIMS = ("≤ 1.1 × kfake", "≤ 1.1 × kfake")


def latencies(server: Running, rate: int) -> Figures:
    """Return quantiles of the latency in milliseconds."""
    topic = new_topic(server)
    spans: list[float] = []
    reader = threading.Thread(target=receive, args=(server, topic, spans))
    reader.start()
    send(server, topic, rate)
    reader.join()
    quantiles = statistics.quantiles(spans[WARM:], n=100)
    return {"p50 ms": quantiles[49], "p99 ms": quantiles[98]}


def send(server: Running, topic: str, rate: int) -> None:
    """Send `rate` records per second, each with its send time."""
    producer = ck.Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 0, "acks": "all", "log_level": 3})
    producer.list_topics(topic)
    begin = time.perf_counter()
    for number in range(RECORDS):
        left = begin + number / rate - time.perf_counter()
        if left > 0:
            time.sleep(left)
        producer.produce(topic, time.perf_counter_ns().to_bytes(8, "big"), partition=0)
        producer.poll(0)
    producer.flush()


def receive(server: Running, topic: str, spans: list[float]) -> None:
    """Read all records one by one."""
    consumer = ck.Consumer({"bootstrap.servers": server.bootstrap, "group.id": "latency", "log_level": 3})
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    while len(spans) < RECORDS:
        message = consumer.poll(30)
        assert message is not None, f"nothing came for 30 seconds after {len(spans)} records"
        value = message.value()
        assert value is not None, message.error()
        spans.append((time.perf_counter_ns() - int.from_bytes(value, "big")) / 1e6)
    consumer.close()


def main() -> None:
    with everybody() as servers:
        for server in servers:
            warm_up(server)
        for rate in RATES:
            lines = duel(servers, partial(latencies, rate=rate))
            report(f"from producer to consumer at {rate:,} records/s", servers, list(zip(lines, AIMS, strict=True)))


if __name__ == "__main__":
    main()
