"""Measure the cost of ACLs and the effect of quotas.

ACLs: a producer at our broker with 10,000 rules, and at one without an authorizer. Quotas: the latency of a moderate
client next to a greedy one with a quota, compared with its latency alone.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import librdkafka
from benchmarks.brokers import Running
from benchmarks.confluent import new_topic
from benchmarks.race import Contender, race
from benchmarks.small_requests import pipeline, request, settle
from ottla import Admin, Broker
from ottla.client.admin import AclBinding, ClientQuotaEntity
from tests.broker.wire import Wire

RULES = 10_000
RECORDS = 400_000
REQUESTS = 20_000
WINDOW = 50
GREEDY_BYTES = 5_000_000
POLITE = 1_500
PAUSE = 0.002


@contextmanager
def broker(name: str, **settings: Any) -> Iterator[Running]:
    """Start our broker in a process of its own."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder, Broker(folder, process=True, **settings) as running:
        yield Running(name, running.bootstrap_servers, running.pid)


@contextmanager
def broker_with_rules() -> Iterator[Running]:
    """Start a broker with `RULES` ACLs, four of which allow every user to run the benchmark."""
    settings: dict[str, Any] = {
        "listen": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "users": {"admin": "s3cret"},
        "authorizer_class_name": "standard",
        "super_users": "User:admin",
    }
    with TemporaryDirectory(prefix="ottla-bench-") as folder, Broker(folder, process=True, **settings) as running:
        rules = [AclBinding("topic", f"topic-{number}", "User:ANONYMOUS", "read") for number in range(RULES - 4)]
        rules += [
            AclBinding("topic", "bench-", "User:*", "all", pattern_type="prefixed"),
            AclBinding("topic", "small-", "User:*", "all", pattern_type="prefixed"),
            AclBinding("cluster", "kafka-cluster", "User:*", "all"),
            AclBinding("group", "*", "User:*", "all"),
        ]
        with Admin(running.client_settings("admin")) as admin:
            for start in range(0, RULES, 1000):
                admin.create_acls(rules[start : start + 1000])
        yield Running(f"{RULES:,} rules", running.addresses["PLAINTEXT"], running.pid)


def fill(server: Running) -> int:
    """Fill a topic with librdkafka."""
    return librdkafka.fill(server, new_topic(server), 1024, RECORDS)


def small(server: Running, serial: Iterator[int]) -> int:
    """Send requests of one record for each of six partitions, with many in flight."""
    topic = f"small-{next(serial)}"
    with Wire(server.bootstrap) as wire:
        wire.socket.settimeout(60)
        wire.create(topic, 6)
        frame = request(topic)
        answer_bytes = settle(wire, frame)
        pipeline(wire.socket, frame * WINDOW, answer_bytes * WINDOW, REQUESTS // WINDOW)
    return REQUESTS


def moderate_client(server: Running) -> tuple[float, float]:
    """Return p50 and p99 in milliseconds of a client that produces one record at a time and waits for the response."""
    spans = []
    with Wire(server.bootstrap, "polite") as wire:
        topic = f"polite-{time.monotonic_ns()}"
        wire.create(topic)
        for _ in range(POLITE):
            clock = time.perf_counter()
            assert not wire.produce(topic, bytes(100)).error_code
            spans.append((time.perf_counter() - clock) * 1000)
            time.sleep(PAUSE)
    quantiles = statistics.quantiles(spans, n=100)
    return quantiles[49], quantiles[98]


GREEDY = """
import sys, confluent_kafka as ck
producer = ck.Producer({"bootstrap.servers": sys.argv[1], "client.id": "greedy", "log_level": 3, "linger.ms": 5})
print("ready", flush=True)
while True:
    try:
        producer.produce("greedy", bytes(10_000), partition=0)
    except BufferError:
        producer.poll(0.1)
"""


@contextmanager
def greedy_client(server: Running) -> Iterator[None]:
    """Run a client that sends as much as it can."""
    command = [sys.executable, "-c", GREEDY, server.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


def measure_latency() -> None:
    """Measure the latency alone, next to a greedy client, and next to a greedy client with a quota."""
    for title, limit in (("without a quota", None), (f"with one of {GREEDY_BYTES / 1e6:.0f} MB/s", GREEDY_BYTES)):
        with broker("ottla") as server, Admin(bootstrap_servers=server.bootstrap) as admin:
            if limit:
                admin.alter_client_quotas({ClientQuotaEntity(client_id="greedy"): {"producer_byte_rate": limit}})
            moderate_client(server)
            alone = moderate_client(server)
            with greedy_client(server):
                beside = moderate_client(server)
            print(
                f"polite beside greedy {title}: p50 {alone[0]:.2f} → {beside[0]:.2f} ms, p99 {alone[1]:.2f} → {beside[1]:.2f} ms"
            )


def main() -> None:
    measure_latency()
    with broker_with_rules() as strict, broker("no authorizer") as lax:
        sides = (strict, lax)
        race(
            "produce 1 KiB",
            [Contender(each.name, partial(fill, each), each.process) for each in sides],
        )
        serial = iter(range(1_000_000))
        race(
            "small requests",
            [Contender(each.name, partial(small, each, serial), each.process) for each in sides],
            unit="requests/s",
        )


if __name__ == "__main__":
    main()
