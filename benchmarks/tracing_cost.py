"""Measure the cost of a client's event listeners, and of another process that reads its events through its socket.

Each is compared with the same client without it, in turns, by the processor time of the client's process. The settings
are the client's defaults (batches of 16 KiB), so that there are many events. `python -m benchmarks.tracing_cost 9` runs
nine rounds instead of seven.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.brokers import ottla_broker
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.tracing.greeting import connect_and_read_hello
from ottla.tracing.trace_socket import VARIABLE

ROUNDS = 7
RECORDS, SIZE = 1_000_000, 100
READ = 3 * RECORDS
"""The number of records in a turn of reading, which is faster. The first round of writing produces them."""
TOPIC = "traced"
WAIT = 120
Turn = Callable[[str, bool], None]
"""(bootstrap, has a listener)."""


def produce(server: str, traced: bool) -> None:
    value = bytes(SIZE)
    with Producer(bootstrap_servers=server) as producer, producer.trace() if traced else nullcontext():
        for _ in range(RECORDS):
            producer.send(TOPIC, value)
        producer.flush(WAIT)


def consume(server: str, traced: bool) -> None:
    left = READ
    with Consumer(bootstrap_servers=server) as consumer, consumer.trace() if traced else nullcontext():
        consumer.assign([TopicPartition(TOPIC, 0)])
        consumer.seek_to_beginning(TopicPartition(TOPIC, 0))
        while left > 0:
            left -= len(consumer.poll(timeout=WAIT))


def used(turn: Turn, server: str, traced: bool) -> float:
    """Return the seconds of processor time."""
    gc.collect()
    begin = time.process_time()
    turn(server, traced)
    return time.process_time() - begin


@contextmanager
def watched() -> Iterator[None]:
    """Start a process that reads all events of each client created meanwhile."""
    with TemporaryDirectory(prefix="ottla-watched-") as folder:
        os.environ[VARIABLE] = folder
        command = [sys.executable, "-m", "benchmarks.tracing_cost", "watch", folder]
        watcher = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert watcher.stdout is not None
            watcher.stdout.readline()
            yield
        finally:
            del os.environ[VARIABLE]
            watcher.kill()
            watcher.wait()


def watch(folder: str) -> None:
    """Read the events of the one client in the folder, from the first one."""
    print("ready", flush=True)
    while True:
        for path in Path(folder).glob("*.sock"):
            with suppress(ConnectionRefusedError):  # the socket exists, but does not listen yet
                connection, _ = connect_and_read_hello(path, WAIT)
                while connection.recv(1 << 20):
                    pass
                return
        time.sleep(0.001)


def main(rounds: int = ROUNDS) -> None:
    with ottla_broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, 1)])
        for turn in (produce, consume):
            turn(broker.bootstrap, False)
            quiet, heard, looked_at = [], [], []
            for _ in range(rounds):
                quiet.append(used(turn, broker.bootstrap, False))
                heard.append(used(turn, broker.bootstrap, True))
                with watched():
                    looked_at.append(used(turn, broker.bootstrap, False))
            print(f"{turn.__name__}: {statistics.median(quiet):.3f} s of a processor", flush=True)
            print_result("listened to", heard, quiet)
            print_result("watched", looked_at, quiet)


def print_result(how: str, on: list[float], off: list[float]) -> None:
    ratios = sorted(one / other for one, other in zip(on, off, strict=True))
    print(
        f"    {how}: {statistics.median(on):.3f} s; ratio {statistics.median(ratios):.3f}"
        f" ({ratios[0]:.3f} to {ratios[-1]:.3f}; aim ≤ 1.05)",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        watch(sys.argv[2])
    else:
        main(*map(int, sys.argv[1:]))
