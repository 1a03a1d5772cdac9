"""A worker in a process of its own, to be killed or stopped. It appends the value of each record to a file.

python -m tests.client.work.victim ADDRESS TOPIC PATH threads|asyncio consumer|share
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from typing import Any

import ottla
from tests.client.work.running import spend

CONCURRENCY = 8
COMMIT_INTERVAL_MS = 20


def main(address: str, topic: str, path: str, way: str, kind: str) -> None:
    """Work until a signal arrives. Each call takes some milliseconds, and some fail."""
    output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def seconds() -> float:
        return random.uniform(0.0, 0.005)

    def finish(record: ottla.ConsumerRecord) -> None:
        if random.random() < 0.02:
            raise ConnectionError("at random")
        os.write(output, (record.value or b"") + b"\n")

    def work(record: ottla.ConsumerRecord) -> None:
        spend(seconds())
        finish(record)

    async def work_async(record: ottla.ConsumerRecord) -> None:
        loop = asyncio.get_running_loop()
        is_done = loop.create_future()
        loop.call_later(seconds(), is_done.set_result, None)
        await is_done
        finish(record)

    settings: dict[str, Any] = {
        "bootstrap_servers": address,
        "group": topic,
        "concurrency": CONCURRENCY,
        "commit_interval_ms": COMMIT_INTERVAL_MS,
        "retries": ottla.Backoff(50, base=0.01, cap=0.1),
    }
    if kind == "share":
        settings["share"] = True
    else:
        settings["group_instance_id"] = "victim"  # takes over from the killed one without a session timeout
    print("started", flush=True)
    if way == "threads":
        ottla.work(topic, work, **settings)
    else:
        asyncio.run(ottla.aio.work(topic, work_async, **settings))
    print("ended well", flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main(*sys.argv[1:6])
