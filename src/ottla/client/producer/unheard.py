"""Failures that nobody was told of: the records came without a callback, and nobody asks their futures.

Costs a record nothing: whether somebody still can ask is told by who holds the batch's result, which its futures do.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import NamedTuple, Protocol

from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.errors import UndeliveredError

MOST_PENDING = 1_000
"""So many failed batches are remembered whose futures somebody holds; that is enough to have asked one of them."""


class HasResult(Protocol):
    """A batch, or what stands for it."""

    @property
    def result(self) -> ProduceRequestResult: ...


class Refused(NamedTuple):
    """Rows that never got into a batch."""

    result: ProduceRequestResult


class Failure(NamedTuple):
    """Records of one batch that failed without a callback."""

    batch: HasResult
    records: int
    error: Exception


def holders(batch: HasResult) -> int:
    """How many hold the result, the batch itself among them."""
    return sys.getrefcount(batch.result)


NOBODY = holders(Refused(ProduceRequestResult("", -1)))
"""What it is when only the batch does."""


class UnheardFailures:
    """Gathered by the sender, told by `flush` and `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: deque[Failure] = deque()
        self._count = 0
        self._first: Exception | None = None

    def note(self, batch: HasResult, heard: int, count: int) -> None:
        """A batch of `count` records has failed, and `heard` of them were told of by callbacks."""
        error = batch.result.error_of(0)
        if error is None or heard >= count:
            return
        with self._lock:
            self._pending.append(Failure(batch, count - heard, error))
            if len(self._pending) > MOST_PENDING:
                self._sort_out()
                if len(self._pending) > MOST_PENDING:
                    self._pending.popleft()

    def take(self) -> UndeliveredError | None:
        """What nobody can ask for any more, once; None when there is nothing."""
        with self._lock:
            self._sort_out()
            count, first, self._count, self._first = self._count, self._first, 0, None
        return None if first is None else UndeliveredError(count, first)

    def _sort_out(self) -> None:
        """Count what nobody will ask for, forget what was asked for, keep what somebody may still ask for."""
        for _ in range(len(self._pending)):
            failure = self._pending.popleft()
            if failure.batch.result.seen:
                continue
            if holders(failure.batch) > NOBODY:
                self._pending.append(failure)
                continue
            self._count += failure.records
            self._first = self._first or failure.error
