"""Call a function for each record, concurrently, with retries and dead letters.

poll ──► Schedule: lanes keep the order ──► function ──┬─ returned ──► finished
              ▲                                        └─ raised ──► retry later, or dead letter ──► finished
              └─ what to commit: the lowest unfinished offset, and the finished ones above it

`Schedule` decides and is pure; `Worker` runs functions in threads, `ottla.aio.Worker` in tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

HOME = {
    "Backoff": "ottla.client.work.state.backoff",
    "Worker": "ottla.client.work.worker",
    "work": "ottla.client.work.worker",
}

__all__ = [*HOME]

if TYPE_CHECKING:
    from ottla.client.work.state.backoff import Backoff as Backoff
    from ottla.client.work.worker import Worker as Worker
    from ottla.client.work.worker import work as work


__getattr__ = loader_of(__name__, HOME)
