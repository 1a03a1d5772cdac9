"""How queries are ended: after the batch they are at, if that is done soon.

Spark breaks a batch off where it is. Exactly once that costs work alone; at least once its rows are there twice, and who has just seen
the rows arrive is told offsets from before them. So a batch that is nearly done gets the time to be noted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

PATIENCE = 3.0
"""Seconds that batches get, all together."""
PAUSE = 0.02


class Query(Protocol):
    """What is asked of Spark's StreamingQuery."""

    @property
    def isActive(self) -> bool: ...
    @property
    def status(self) -> dict[str, Any]: ...
    @property
    def lastProgress(self) -> Any: ...
    def stop(self) -> None: ...


def end(
    queries: Sequence[Query],
    until: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Stop them, each once it is between two batches, or at `until` of the clock."""
    until = clock() + PATIENCE if until is None else until
    for query in queries:
        begun = last_batch(query)
        while is_at_a_batch(query) and last_batch(query) == begun and clock() < until:
            wait(PAUSE)
        query.stop()


def end_all(enders: Iterable[Callable[[], None]], goes: Callable[[], bool]) -> None:
    """Call each, and leave what Spark's Java no longer does where that goes at the same moment: `goes` tells.

    systemd, `timeout` and others end all processes of a service at once. Each pipeline goes on where it was.
    """
    for each in enders:
        try:
            each()
        except (
            Exception
        ):  # whatever comes of a Java process that goes: refused connections, errors that have no text any more
            if not goes():
                raise


def is_at_a_batch(query: Query) -> bool:
    return query.isActive and bool(query.status["isTriggerActive"])


def last_batch(query: Query) -> str | None:
    """When the last one began that was told of: it is noted as done by then."""
    progress = query.lastProgress
    return None if progress is None else str(progress["timestamp"])
