"""The clients for asyncio: the same cores, driven by the event loop.

    async with ottla.aio.Consumer(bootstrap_servers="127.0.0.1:9092", group_id="billing") as consumer:
        consumer.subscribe(["hello"])
        async for record in consumer:
            ...

Consumer and producer use no executor, and no thread except the one that sends a group's heartbeats. The admin's calls
wait in a thread. The names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

HOME = {
    "Admin": "ottla.aio.admin",
    "Consumer": "ottla.aio.consumer",
    "Producer": "ottla.aio.producer",
    "ShareConsumer": "ottla.aio.share_consumer",
    "Processor": "ottla.aio.processor",
    "process": "ottla.aio.processor",
    "Worker": "ottla.aio.worker",
    "work": "ottla.aio.worker",
}

__all__ = [*HOME]

if TYPE_CHECKING:
    from ottla.aio.admin import Admin as Admin
    from ottla.aio.consumer import Consumer as Consumer
    from ottla.aio.processor import Processor as Processor
    from ottla.aio.processor import process as process
    from ottla.aio.producer import Producer as Producer
    from ottla.aio.share_consumer import ShareConsumer as ShareConsumer
    from ottla.aio.worker import Worker as Worker
    from ottla.aio.worker import work as work


__getattr__ = loader_of(__name__, HOME)


def __dir__() -> list[str]:
    return list(__all__)
