"""Measure 500 clients that log in at once with TLS and SCRAM-SHA-512, ours next to Apache Kafka.

The figures are the time until all are logged in, and the response times of another client meanwhile.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.brokers import Running
from benchmarks.duel import Figures, duel, report
from benchmarks.secured import Secured, both
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import Wire

COUNT = 500
WARM = 3
"""The number of warm-up turns, in which a JVM reaches its full speed."""
PAUSE = 0.002
AIMS = ("≤ 1", "≤ 1", "≤ 1; < 20 ms")


def logged_in(side: Secured) -> Figures:
    """Return the figures of one turn."""
    command = [sys.executable, "-m", "benchmarks._logins", side.by_login, side.authority, str(COUNT)]
    with (
        Wire(side.plain.bootstrap) as wire,
        subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        spans: list[float] = []
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        while process.poll() is None:
            spans.append(send_request(wire))
            time.sleep(PAUSE)
        seconds = float(process.stdout.read())
    quantiles = statistics.quantiles(spans, n=100)
    return {"until all are in, s": seconds, "others, p50 ms": quantiles[49], "others, p99 ms": quantiles[98]}


def send_request(wire: Wire) -> float:
    """Return the milliseconds until the response."""
    clock = time.perf_counter()
    wire.ask(MetadataRequest([]))
    return (time.perf_counter() - clock) * 1000


def main() -> None:
    with both() as sides:
        by_server = {side.plain: side for side in sides}

        def turn(server: Running) -> Figures:
            return logged_in(by_server[server])

        for _ in range(WARM):
            for server in by_server:
                turn(server)
        found = duel(list(by_server), turn, rounds=5)
        report(f"{COUNT} logins at once", list(by_server), list(zip(found, AIMS, strict=True)))


if __name__ == "__main__":
    main()
