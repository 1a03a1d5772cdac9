"""A running producer at one moment: what waits in its accumulator, and what is on its way.

May be taken from any thread, and takes nothing away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.network.request_view import RequestView, by_node, copied
from ottla.client.producer.producer_batch import ProducerBatch, load_of
from ottla.client.producer.producer_core import ProducerCore
from ottla.model import TopicPartition


class QueueView(NamedTuple):
    """Batches of one partition."""

    partition: TopicPartition
    batches: int
    records: int
    oldest_ms: float
    """Since the oldest of them was begun."""
    attempts: int
    """How often the one that was sent most often was sent, without an outcome."""


class AccumulatorView(NamedTuple):
    """`RecordAccumulator`: a queue of batches for each partition, and their memory."""

    queues: tuple[QueueView, ...]
    total_bytes: int
    available_bytes: int
    waiting: int
    """Calls of `send` that wait for memory."""


class ProducerSnapshot(NamedTuple):
    """All parts of a producer."""

    client_id: str
    accumulator: AccumulatorView
    in_flight_batches: tuple[QueueView, ...]
    """`Sender`: batches that were sent and have no outcome."""
    in_flight_requests: Mapping[int, tuple[RequestView, ...]]
    """`NetworkClient`: requests by the node they are for."""
    transactional_id: str | None
    transaction_state: str | None
    """None without a `transactional.id`."""


def take_snapshot(core: ProducerCore) -> ProducerSnapshot:
    """The parts as they are."""
    now, sender, pool = core.clock.monotonic(), core.sender, core.parts.pool
    queues = copied(core.accumulator.queues)
    on_their_way = by_partition(copied(sender.batches.listed))
    transactional = core.transactional
    return ProducerSnapshot(
        core.client_id,
        AccumulatorView(views_of(queues, now), pool.total_bytes, pool.available_bytes, pool.queued),
        views_of(on_their_way, now),
        by_node(copied(sender.in_flight_requests), now),
        core.config.transactional_id,
        None if transactional is None else transactional.machine.status.state.value,
    )


def by_partition(batches: Iterable[ProducerBatch]) -> dict[TopicPartition, list[ProducerBatch]]:
    """Each partition's in their order."""
    partitions: dict[TopicPartition, list[ProducerBatch]] = {}
    for batch in sorted(batches, key=lambda batch: batch.order):
        partitions.setdefault(batch.tp, []).append(batch)
    return partitions


def views_of(queues: Mapping[TopicPartition, list[ProducerBatch]], now: float) -> tuple[QueueView, ...]:
    """Of batches in their order the first is the oldest."""
    return tuple(view_of(tp, batches, now) for tp, batches in sorted(queues.items()))


def view_of(tp: TopicPartition, batches: list[ProducerBatch], now: float) -> QueueView:
    records, attempts = load_of(batches)
    return QueueView(tp, len(batches), records, (now - batches[0].created) * 1000, attempts)
