"""The state of a running producer at one time: its accumulator, and its batches and requests in flight.

May be taken from any thread; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.network.request_view import PendingRequestView, copy_safely, group_by_node
from ottla.client.producer.producer_batch import ProducerBatch, load_of
from ottla.client.producer.producer_core import ProducerCore
from ottla.model import TopicPartition


class QueueView(NamedTuple):
    """The batches of one partition."""

    partition: TopicPartition
    batches: int
    records: int
    oldest_ms: float
    """Milliseconds since the oldest batch was started."""
    attempts: int
    """The largest number of attempts of one of the batches."""


class AccumulatorView(NamedTuple):
    """`RecordAccumulator`: a queue of batches for each partition, and their memory."""

    queues: tuple[QueueView, ...]
    total_bytes: int
    available_bytes: int
    waiting: int
    """Calls of `send` that wait for memory."""


class ProducerSnapshot(NamedTuple):
    """The state of all components of a producer."""

    client_id: str
    accumulator: AccumulatorView
    in_flight_batches: tuple[QueueView, ...]
    """`Sender`: batches in flight."""
    in_flight_requests: Mapping[int, tuple[PendingRequestView, ...]]
    """`NetworkClient`: requests by node id."""
    transactional_id: str | None
    transaction_state: str | None
    """None without a `transactional.id`."""


def take_snapshot(core: ProducerCore) -> ProducerSnapshot:
    """Return the current state."""
    now, sender, pool = core.clock.monotonic(), core.sender, core.parts.pool
    queues = copy_safely(core.accumulator.queues)
    on_their_way = by_partition(copy_safely(sender.batches.list_batches))
    transactional = core.transactional
    return ProducerSnapshot(
        core.client_id,
        AccumulatorView(views_of(queues, now), pool.total_bytes, pool.available_bytes, pool.queued),
        views_of(on_their_way, now),
        group_by_node(copy_safely(sender.in_flight_requests), now),
        core.config.transactional_id,
        None if transactional is None else transactional.machine.status.state.value,
    )


def by_partition(batches: Iterable[ProducerBatch]) -> dict[TopicPartition, list[ProducerBatch]]:
    """Group batches by partition, in order."""
    partitions: dict[TopicPartition, list[ProducerBatch]] = {}
    for batch in sorted(batches, key=lambda batch: batch.order):
        partitions.setdefault(batch.tp, []).append(batch)
    return partitions


def views_of(queues: Mapping[TopicPartition, list[ProducerBatch]], now: float) -> tuple[QueueView, ...]:
    """Describe the queues; the first batch of each is the oldest."""
    return tuple(view_of(tp, batches, now) for tp, batches in sorted(queues.items()))


def view_of(tp: TopicPartition, batches: list[ProducerBatch], now: float) -> QueueView:
    records, attempts = load_of(batches)
    return QueueView(tp, len(batches), records, (now - batches[0].created) * 1000, attempts)
