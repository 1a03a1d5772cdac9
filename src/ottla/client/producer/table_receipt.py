"""The result of a table that was sent."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ottla.client.interface.arguments import checked_timeout
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.model import TopicPartition


class TableReceipt:
    """The batches in which the rows of a table are sent."""

    def __init__(self) -> None:
        self._batches: list[tuple[ProduceRequestResult, int]] = []

    def __repr__(self) -> str:
        return f"TableReceipt({self.rows} rows in {len(self._batches)} batches)"

    def add(self, result: ProduceRequestResult, rows: int) -> None:
        """Add a batch with the next `rows` rows."""
        self._batches.append((result, rows))

    @property
    def rows(self) -> int:
        """The number of rows sent."""
        return sum(rows for _, rows in self._batches)

    @property
    def futures(self) -> list[RecordFuture]:
        """The future of each batch's first row."""
        return [RecordFuture(result, 0, -1, -1, -1) for result, _ in self._batches]

    def done(self) -> bool:
        """Return True if every row has a result."""
        return all(leaf.done for result, _ in self._batches for leaf in iter_leaves(result))

    def result(self, timeout: float | None = None) -> dict[TopicPartition, list[range]]:
        """Return the offsets of the rows in each partition, waiting up to `timeout` seconds in total.

        Raises the first error.

        Without offsets (`acks=0`) the list of a partition is empty.
        """
        deadline = None if timeout is None else time.monotonic() + checked_timeout(timeout)
        offsets: dict[TopicPartition, list[range]] = {}
        for result, rows in self._batches:
            wait_for_result(result, deadline)
            for leaf in iter_leaves(result):
                error = leaf.error_of(0)
                if error is not None:
                    leaf.seen = True
                    raise error
            spans = offsets.setdefault(TopicPartition(result.topic, result.partition), [])
            spans.extend(range(base, base + count) for base, count in result.iter_spans(rows) if base >= 0)
        return offsets


def wait_for_result(result: ProduceRequestResult, deadline: float | None) -> None:
    """Wait until all rows of a batch have results, also after a split."""
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    RecordFuture(result, 0, -1, -1, -1).exception(left)
    for _, part in result.parts:
        wait_for_result(part, deadline)


def iter_leaves(result: ProduceRequestResult) -> Iterator[ProduceRequestResult]:
    """Yield the batch itself, or the parts it was split into."""
    if not result.parts:
        yield result
    for _, part in result.parts:
        yield from iter_leaves(part)
