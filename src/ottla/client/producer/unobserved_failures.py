"""Failures that were not observed: of records without a callback, with futures that were discarded.

Costs nothing per record: whether a future still exists is derived from the reference count of the batch's result.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import NamedTuple, Protocol

from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.errors import UndeliveredError

MOST_PENDING = 1_000
"""The largest number of failed batches remembered while their futures exist."""


class HasResult(Protocol):
    """A batch, or a substitute."""

    @property
    def result(self) -> ProduceRequestResult: ...


class RejectedRows(NamedTuple):
    """Rows that were rejected before they got into a batch."""

    result: ProduceRequestResult


class FailedRecords(NamedTuple):
    """Records of one batch that failed without a callback."""

    batch: HasResult
    records: int
    error: Exception


def count_references(batch: HasResult) -> int:
    """Return the number of references to the result, including that of the batch."""
    return sys.getrefcount(batch.result)


BATCH_REFERENCES = count_references(RejectedRows(ProduceRequestResult("", -1)))
"""The count if only the batch refers to the result."""


class UnobservedFailures:
    """Collected by the sender, raised by `flush` and `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: deque[FailedRecords] = deque()
        self._count = 0
        self._first: Exception | None = None

    def record_failure(self, batch: HasResult, reported: int, count: int) -> None:
        """Record a failed batch of `count` records; callbacks reported `reported` of them."""
        error = batch.result.error_of(0)
        if error is None or reported >= count:
            return
        with self._lock:
            self._pending.append(FailedRecords(batch, count - reported, error))
            if len(self._pending) > MOST_PENDING:
                self._count_unobservable()
                if len(self._pending) > MOST_PENDING:
                    self._pending.popleft()

    def take_error(self) -> UndeliveredError | None:
        """Return the failures that cannot be observed any more, once; None if there are none."""
        with self._lock:
            self._count_unobservable()
            count, first, self._count, self._first = self._count, self._first, 0, None
        return None if first is None else UndeliveredError(count, first)

    def _count_unobservable(self) -> None:
        """Count unobservable failures, drop observed ones, and keep those with existing futures."""
        for _ in range(len(self._pending)):
            failure = self._pending.popleft()
            if failure.batch.result.seen:
                continue
            if count_references(failure.batch) > BATCH_REFERENCES:
                self._pending.append(failure)
                continue
            self._count += failure.records
            self._first = self._first or failure.error
