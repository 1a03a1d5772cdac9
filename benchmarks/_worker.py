"""Ottla's side of the benchmark of work loops: a worker in a process of its own.

python -m benchmarks._worker ADDRESS TOPIC threads|asyncio empty RECORDS
    Prints the tasks per second from the first to the last record of the topic, which all exist before it starts.
python -m benchmarks._worker ADDRESS TOPIC threads|asyncio timed RECORDS
    Prints `ready` for the first record, which is not counted, and at the end the p99 in milliseconds from the send time in
    each value to the start of the function. Records with the key `FAILING` always fail, and are not counted.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import ottla

FAILING = b"failing"
CONCURRENCY = 10
WARM = 0.2
"""The part of the timed records that is not counted."""

Function = Callable[[ottla.ConsumerRecord], None]


def run(address: str, topic: str, way: str, function: Function, workers: list[Any]) -> None:
    """Run a worker until the function stops it."""
    settings: dict[str, Any] = {
        "bootstrap_servers": address,
        "group": topic,
        "concurrency": CONCURRENCY,
        "retries": ottla.Backoff(1_000_000, base=0.1, cap=1.0),
    }
    if way == "threads":
        workers.append(ottla.Worker(topic, function, **settings))
        workers[0].run()
        return

    async def call(record: ottla.ConsumerRecord) -> None:
        function(record)

    async def main() -> None:
        workers.append(ottla.aio.Worker(topic, call, **settings))
        await workers[0].run()

    asyncio.run(main())


def measure_empty(address: str, topic: str, way: str, records: int) -> float:
    """Return tasks per second."""
    workers: list[Any] = []
    times: list[float] = []
    last = records - 1

    def empty(record: ottla.ConsumerRecord) -> None:
        if record.offset in (0, last):
            times.append(time.perf_counter())
            if record.offset:
                workers[0].stop()

    run(address, topic, way, empty, workers)
    return last / (times[-1] - times[0])


def measure_timed(address: str, topic: str, way: str, records: int) -> float:
    """Return the p99 in milliseconds."""
    workers: list[Any] = []
    spans: list[float] = []

    def timed(record: ottla.ConsumerRecord) -> None:
        now = time.perf_counter_ns()
        if record.offset == 0:
            print("ready", flush=True)
            return
        if record.key == FAILING:
            raise RuntimeError("this key always fails")
        assert record.value is not None
        spans.append((now - int.from_bytes(record.value, "big")) / 1e6)
        if len(spans) == records:
            workers[0].stop()
            workers[0].stop()  # without waiting for retries

    run(address, topic, way, timed, workers)
    return statistics.quantiles(spans[int(records * WARM) :], n=100)[98]


def main(address: str, topic: str, way: str, kind: str, records: str) -> None:
    logging.disable(logging.ERROR)  # the log lines of the failing key
    measure = {"empty": measure_empty, "timed": measure_timed}[kind]
    print(measure(address, topic, way, int(records)))


if __name__ == "__main__":
    main(*sys.argv[1:])
