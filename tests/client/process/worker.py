"""A processor in a process of its own, to be killed or stopped.

python -m tests.client.process.worker ADDRESS [plain|asyncio [COMMIT_INTERVAL_MS]]
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import ottla

READS: dict[str, Any] = {
    "group_id": "copiers",
    "group_instance_id": "one",  # so that the next member does not wait for the session to expire
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "isolation_level": "read_committed",
    "max_poll_records": 200,
}
WRITES: dict[str, Any] = {"transactional_id": "copier"}


def copy(record: ottla.ConsumerRecord) -> bytes:
    """Process a record and print it for the waiting test."""
    print(record.offset, flush=True)
    return bytes(record.value or b"")


def plain(servers: str, **how: Any) -> None:
    """In calls that block."""
    with (
        ottla.Consumer(bootstrap_servers=servers, **READS) as consumer,
        ottla.Producer(bootstrap_servers=servers, **WRITES) as producer,
    ):
        ottla.process(consumer, producer, copy, **how)


async def awaited(servers: str, **how: Any) -> None:
    """In an event loop."""
    async with (
        ottla.aio.Consumer(bootstrap_servers=servers, **READS) as consumer,
        ottla.aio.Producer(bootstrap_servers=servers, **WRITES) as producer,
    ):
        await ottla.aio.process(consumer, producer, copy, **how)


def main(servers: str, way: str = "plain", interval_ms: str = "10") -> None:
    """Copy `in` to `out`, exactly once."""
    logging.getLogger("ottla").setLevel(logging.CRITICAL)
    how = {"topics": ["in"], "to": "out", "commit_interval_ms": float(interval_ms)}
    if way == "plain":
        plain(servers, **how)
    else:
        asyncio.run(awaited(servers, **how))


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("ended well", flush=True)
