"""A worker in a process of its own, to be killed or stopped. It appends the value of each record to a file.

python -m tests.client.work.victim ADDRESS TOPIC PATH threads|asyncio|processes consumer|share
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from functools import partial
from typing import Any

import ottla
from tests.client.work.running import spend

CONCURRENCY = 8
PROCESSES = 2
COMMIT_INTERVAL_MS = 20


def seconds() -> float:
    return random.uniform(0.0, 0.005)


def finish(path: str, record: ottla.ConsumerRecord) -> None:
    """Append the value to the file in one write, or fail."""
    if random.random() < 0.02:
        raise ConnectionError("at random")
    output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(output, (record.value or b"") + b"\n")
    finally:
        os.close(output)


def work(path: str, record: ottla.ConsumerRecord) -> None:
    """Work for some time, then finish. A process imports it by its name."""
    spend(seconds())
    finish(path, record)


def main(address: str, topic: str, path: str, way: str, kind: str) -> None:
    """Work until a signal arrives. Each call takes some milliseconds, and some fail."""

    async def work_async(record: ottla.ConsumerRecord) -> None:
        loop = asyncio.get_running_loop()
        is_done = loop.create_future()
        loop.call_later(seconds(), is_done.set_result, None)
        await is_done
        finish(path, record)

    settings: dict[str, Any] = {
        "bootstrap_servers": address,
        "group": topic,
        "concurrency": PROCESSES if way == "processes" else CONCURRENCY,
        "commit_interval_ms": COMMIT_INTERVAL_MS,
        "retries": ottla.Backoff(50, base=0.01, cap=0.1),
    }
    if kind == "share":
        settings["share"] = True
    else:
        settings["group_instance_id"] = "victim"  # takes over from the killed one without a session timeout
    print("started", flush=True)
    if way == "processes":
        settings["processes"] = PROCESSES
    if way in ("threads", "processes"):
        ottla.work(topic, partial(work, path), **settings)
    else:
        asyncio.run(ottla.aio.work(topic, work_async, **settings))
    print("ended well", flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main(*sys.argv[1:6])
