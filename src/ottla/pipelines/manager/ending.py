"""Ends queries after their current batch, if it completes soon.

`StreamingQuery.stop` interrupts a batch. With exactly-once that only costs work; with at-least-once its rows are
written twice, and the reported offsets are those before the batch. So a batch that is nearly complete gets the time to
be committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

PATIENCE = 3.0
"""The seconds that all batches together may take."""
PAUSE = 0.02


class RunningQuery(Protocol):
    """The used part of Spark's StreamingQuery."""

    @property
    def isActive(self) -> bool: ...
    @property
    def status(self) -> dict[str, Any]: ...
    @property
    def lastProgress(self) -> Any: ...
    def stop(self) -> None: ...


def end_queries(
    queries: Sequence[RunningQuery],
    until: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Stop each query when it is between two batches, or at the clock's `until`."""
    until = clock() + PATIENCE if until is None else until
    for query in queries:
        before = last_batch(query)
        while is_at_a_batch(query) and last_batch(query) == before and clock() < until:
            wait(PAUSE)
        query.stop()


def end_all(enders: Iterable[Callable[[], None]], is_java_ending: Callable[[], bool]) -> None:
    """Call each function; ignore errors if Spark's Java process is ending too, as `is_java_ending` reports.

    systemd, `timeout` and others end all processes of a service at once. Each pipeline continues from its checkpoint.
    """
    for each in enders:
        try:
            each()
        except Exception:  # a Java process that is ending causes many: refused connections, errors without a text
            if not is_java_ending():
                raise


def is_at_a_batch(query: RunningQuery) -> bool:
    return query.isActive and bool(query.status["isTriggerActive"])


def last_batch(query: RunningQuery) -> str | None:
    """Return the start of the last reported batch, which is committed by then."""
    progress = query.lastProgress
    return None if progress is None else str(progress["timestamp"])
