"""What became of a table that was sent."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ottla.client.interface.arguments import checked_timeout
from ottla.client.producer.future import RecordFuture
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.model import TopicPartition


class TableReceipt:
    """The batches that a table's rows travel in."""

    def __init__(self) -> None:
        self._batches: list[tuple[ProduceRequestResult, int]] = []

    def __repr__(self) -> str:
        return f"TableReceipt({self.rows} rows in {len(self._batches)} batches)"

    def add(self, result: ProduceRequestResult, rows: int) -> None:
        """Note a batch with the first `rows` rows not noted so far."""
        self._batches.append((result, rows))

    @property
    def rows(self) -> int:
        """How many rows were sent."""
        return sum(rows for _, rows in self._batches)

    @property
    def futures(self) -> list[RecordFuture]:
        """The future of each batch's first row."""
        return [RecordFuture(result, 0, -1, -1, -1) for result, _ in self._batches]

    def done(self) -> bool:
        """Whether every row has its outcome."""
        return all(leaf.done for result, _ in self._batches for leaf in leaves(result))

    def result(self, timeout: float | None = None) -> dict[TopicPartition, list[range]]:
        """The offsets of the rows in each partition, waiting up to `timeout` seconds in all; raises the first error.

        Without offsets to report (`acks=0`) a partition's list is empty.
        """
        deadline = None if timeout is None else time.monotonic() + checked_timeout(timeout)
        offsets: dict[TopicPartition, list[range]] = {}
        for result, rows in self._batches:
            settle(result, deadline)
            for leaf in leaves(result):
                error = leaf.error_of(0)
                if error is not None:
                    leaf.seen = True
                    raise error
            spans = offsets.setdefault(TopicPartition(result.topic, result.partition), [])
            spans.extend(range(base, base + count) for base, count in result.spans(rows) if base >= 0)
        return offsets


def settle(result: ProduceRequestResult, deadline: float | None) -> None:
    """Wait until all of a batch's rows have their outcome, also when it was split."""
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    RecordFuture(result, 0, -1, -1, -1).exception(left)
    for _, part in result.parts:
        settle(part, deadline)


def leaves(result: ProduceRequestResult) -> Iterator[ProduceRequestResult]:
    """The batch itself, or the pieces it was split into."""
    if not result.parts:
        yield result
    for _, part in result.parts:
        yield from leaves(part)
