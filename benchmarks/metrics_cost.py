"""What it costs that there are metrics: a broker's, read once a second, beside itself without, on the smallest requests; and those of clients.

A client always counts. So its turns without are turns in which what records does nothing: the calls of nothing stay in them.
`python -m benchmarks.metrics_cost clients 15` for the second alone, and for other than nine pairs of turns.
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
"""Records of which each is sent alone and waited for."""
RECORDING: tuple[tuple[type, str], ...] = (
    (NodeSensors, "received"),
    (ProducerSensors, "leaving"),
    (PollSensors, "begin"),
    (PollSensors, "end"),
)
"""What clients call as they work, beside sensors themselves."""
MAKING = ("connection_states", "metrics.registry", "consumer.group.partition_exchange", "consumer.offsets.commits")
"""Where sensors are made."""


class Silent:
    """In place of a sensor."""

    def record(self, value: float) -> None:
        """Nothing."""

    def mark(self, now: float, samples: int) -> None:
        """Nothing."""


@contextmanager
def read_each_second(address: str) -> Iterator[None]:
    """As Prometheus does, which asks less often."""
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
def silence() -> Iterator[None]:
    """Clients that are made meanwhile count nothing."""
    with ExitStack() as patches:
        for kind, name in RECORDING:
            patches.enter_context(patch.object(kind, name, nothing))
        for module in MAKING:
            patches.enter_context(patch(f"ottla.client.{module}.Sensor", Silent))
        yield


def nothing(*_: Any) -> None:
    """In place of what records."""


def singly(server: str, traced: bool) -> None:
    """A request for each record, which is the dearest for whoever counts requests."""
    with Producer(bootstrap_servers=server, linger_ms=0) as producer:
        for _ in range(SINGLE):
            producer.send(TOPIC, bytes(100)).result(60)


def of_clients(pairs: int) -> None:
    """A line for each kind of work: the ratio of processor time, of the whole process."""
    with ottla_broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, 1)])
        for turn in (produce, consume, singly):
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
    """Seconds of processor time with metrics and without; `first`: with them first."""
    seconds = {}
    for counts in (first, not first):
        with nullcontext() if counts else silence():
            seconds[counts] = used(turn, server, False)
    return seconds[True], seconds[False]


def main(pairs: int = ROUNDS) -> None:
    of_broker()
    of_clients(pairs)


def of_broker() -> None:
    address = f"127.0.0.1:{free_port()}"
    with ottla_broker(f"metrics.listen={address}") as counted, ottla_broker() as plain, read_each_second(address):
        servers = [counted._replace(name="with metrics"), plain._replace(name="without")]
        for server in servers:
            for _ in range(WARM):
                small(server)
        report("Metrics", servers, list(zip(duel(servers, small, rounds=ROUNDS), AIMS, strict=True)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["clients"]:
        of_clients(*map(int, sys.argv[2:] or [str(ROUNDS)]))
    else:
        main()
