"""Measure the cost of metrics: of a broker that is scraped every second, with the smallest requests, and of clients.

A client always counts. In its turns without metrics, the recording methods are replaced by functions that do nothing,
so the cost of these calls remains in the result. `python -m benchmarks.metrics_cost clients 15` runs only the second
part, with 15 pairs of turns instead of nine.
"""

from __future__ import annotations

import statistics
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from benchmarks.brokers import ottla_broker
from benchmarks.duel import duel, report
from benchmarks.small_requests import WARM, small
from benchmarks.tracing_cost import TOPIC, Turn, consume, produce, used
from ottla import Admin, NewTopic, Producer
from ottla.client.metrics.fetch_sensors import PollSensors
from ottla.client.metrics.network_sensors import NodeSensors
from ottla.client.metrics.producer_sensors import ProducerSensors
from ottla.free_ports import free_port

ROUNDS = 9
EVERY_SECONDS = 1.0
AIMS = ("≥ 0.99", "≤ 1.01", "≤ 1.01", "", "")
SINGLE = 5_000
"""The number of records that are sent one at a time, each with a wait for its acknowledgement."""
RECORDING: tuple[tuple[type, str], ...] = (
    (NodeSensors, "received"),
    (ProducerSensors, "leaving"),
    (PollSensors, "begin"),
    (PollSensors, "end"),
)
"""The recording methods that clients call, in addition to those of sensors."""
MAKING = ("connection_states", "metrics.registry", "consumer.group.partition_exchange", "consumer.offsets.commits")
"""The modules that create sensors."""


class Silent:
    """A sensor that does nothing."""

    def record(self, value: float) -> None:
        """Do nothing."""

    def mark(self, now: float, samples: int) -> None:
        """Do nothing."""


@contextmanager
def read_each_second(address: str) -> Iterator[None]:
    """Scrape the metrics every second. Prometheus does it less often."""
    over = threading.Event()

    def read() -> None:
        while not over.wait(EVERY_SECONDS):
            urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def disabled_metrics() -> Iterator[None]:
    """Disable the metrics of clients that are created meanwhile."""
    with ExitStack() as patches:
        for kind, name in RECORDING:
            patches.enter_context(patch.object(kind, name, do_nothing))
        for module in MAKING:
            patches.enter_context(patch(f"ottla.client.{module}.Sensor", Silent))
        yield


def do_nothing(*_: Any) -> None:
    """Replace a recording method."""


def send_singly(server: str, traced: bool) -> None:
    """Send one record per request, the highest cost per record for metrics that count requests."""
    with Producer(bootstrap_servers=server, linger_ms=0) as producer:
        for _ in range(SINGLE):
            producer.send(TOPIC, bytes(100)).result(60)


def compare_clients(pairs: int) -> None:
    """Print a line for each kind of work with the ratio of processor time of the whole process."""
    with ottla_broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, 1)])
        for turn in (produce, consume, send_singly):
            turn(broker.bootstrap, False)
            pair = [in_turns(turn, broker.bootstrap, first=number % 2 == 0) for number in range(pairs)]
            counted, silent = zip(*pair, strict=True)
            ratios = sorted(one / other for one, other in pair)
            print(
                f"{turn.__name__}: {min(counted):.3f} s of a processor, {min(silent):.3f} s without metrics, of the best turns;"
                f" ratio {min(counted) / min(silent):.3f}, of pairs {statistics.median(ratios):.3f}"
                f" ({ratios[0]:.3f} to {ratios[-1]:.3f}; aim ≤ 1.01)",
                flush=True,
            )


def in_turns(turn: Turn, server: str, *, first: bool) -> tuple[float, float]:
    """Return the seconds of processor time with metrics and without.

    With `first`, the turn with metrics comes first.
    """
    seconds = {}
    for counts in (first, not first):
        with nullcontext() if counts else disabled_metrics():
            seconds[counts] = used(turn, server, False)
    return seconds[True], seconds[False]


def main(pairs: int = ROUNDS) -> None:
    compare_broker()
    compare_clients(pairs)


def compare_broker() -> None:
    address = f"127.0.0.1:{free_port()}"
    with ottla_broker(f"metrics.listen={address}") as counted, ottla_broker() as plain, read_each_second(address):
        servers = [counted._replace(name="with metrics"), plain._replace(name="without")]
        for server in servers:
            for _ in range(WARM):
                small(server)
        report("Metrics", servers, list(zip(duel(servers, small, rounds=ROUNDS), AIMS, strict=True)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["clients"]:
        compare_clients(*map(int, sys.argv[2:] or [str(ROUNDS)]))
    else:
        main()
