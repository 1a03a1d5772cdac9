"""A picture of a producer: a box for each part, with the part's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.cli.live import panel
from ottla.cli.tracing.consumer_picture import requests_of, share_bar
from ottla.client.admin.group_timeline import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.client.producer.snapshot import AccumulatorView, ProducerSnapshot, QueueView

MOST_QUEUES = 6
"""The number of partitions shown by default."""
WHOLE = 500
"""The number of partitions shown if all are requested."""


class ProducerTotals:
    """Counts of a producer's results."""

    def __init__(self) -> None:
        self.acknowledged = self.retried = self.failed = self.requests = 0
        self.slowest_ms = 0.0

    def count(self, event: Any) -> None:
        from ottla.client.producer import events

        match event:
            case events.Acknowledged(records=records):
                self.acknowledged += records
            case events.BatchFailed(records=records):
                self.failed += records
            case events.Retried():
                self.retried += 1
            case events.ProduceCompleted(took_ms=took_ms):
                self.requests += 1
                self.slowest_ms = max(self.slowest_ms, took_ms)


def draw_producer(seen: ProducerSnapshot, totals: ProducerTotals, *, whole: bool = False) -> RenderableType:
    """Return the picture, in a record's order: memory and queues, sender, requests, results; some or all partitions."""
    from rich.console import Group
    from rich.table import Table

    most = WHOLE if whole else MOST_QUEUES
    boxes = Table.grid(expand=True)
    boxes.add_column(ratio=1)
    boxes.add_column(ratio=1)
    boxes.add_row(
        panel("RecordAccumulator", accumulator_lines(seen.accumulator, most), folds=whole),
        panel("Sender", queue_lines(seen.in_flight_batches, most, "no batch is in flight"), folds=whole),
    )
    boxes.add_row(
        panel("NetworkClient", network_lines(seen, totals), folds=whole),
        panel("TransactionManager", transaction_lines(seen), folds=whole),
    )
    return Group(boxes, panel("outcomes", [outcome_lines(totals)], folds=whole))


def accumulator_lines(accumulator: AccumulatorView, most: int) -> list[str]:
    taken = accumulator.total_bytes - accumulator.available_bytes
    memory = (
        f"{taken / 2**20:.1f} of {accumulator.total_bytes / 2**20:.0f} MiB {share_bar(taken / accumulator.total_bytes)}"
    )
    waiting = f", {accumulator.waiting} calls wait" if accumulator.waiting else ""
    return [f"memory      {memory}{waiting}", *queue_lines(accumulator.queues, most, "no record is queued")]


def queue_lines(queues: tuple[QueueView, ...], most: int, none: str) -> list[str]:
    """Return a line for each of the first `most` partitions."""
    lines = [
        f"{queue.partition}  {counted(queue.records, 'record')} in {counted(queue.batches, 'batch', 'batches')}, {queue.oldest_ms:.0f} ms"
        + (f", sent {queue.attempts} times" if queue.attempts else "")
        for queue in queues[:most]
    ]
    rest = len(queues) - len(lines)
    return [*lines, *([f"and {rest} more"] if rest else [])] or [none]


def network_lines(seen: ProducerSnapshot, totals: ProducerTotals) -> list[str]:
    return [
        f"in flight   {requests_of(seen.in_flight_requests)}",
        f"answered    {totals.requests}, slowest {totals.slowest_ms:.0f} ms",
    ]


def transaction_lines(seen: ProducerSnapshot) -> list[str]:
    if seen.transactional_id is None:
        return ["no transactional.id"]
    return [f"id          {seen.transactional_id}", f"state       {seen.transaction_state}"]


def outcome_lines(totals: ProducerTotals) -> str:
    return f"{totals.acknowledged} records acknowledged, {totals.failed} failed; {totals.retried} batches sent again"
