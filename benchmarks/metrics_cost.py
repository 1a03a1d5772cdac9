"""What it costs a broker that its requests are counted and its figures read once a second: beside itself without, on the smallest requests."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.brokers import ottla_broker
from benchmarks.duel import duel, report
from benchmarks.small_requests import WARM, small
from ottla.free_ports import free_port

ROUNDS = 9
EVERY_SECONDS = 1.0
AIMS = ("≥ 0.99", "≤ 1.01", "≤ 1.01", "", "")


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


def main() -> None:
    address = f"127.0.0.1:{free_port()}"
    with ottla_broker(f"metrics.listen={address}") as counted, ottla_broker() as plain, read_each_second(address):
        servers = [counted._replace(name="with metrics"), plain._replace(name="without")]
        for server in servers:
            for _ in range(WARM):
                small(server)
        report("Metrics", servers, list(zip(duel(servers, small, rounds=ROUNDS), AIMS, strict=True)))


if __name__ == "__main__":
    main()
