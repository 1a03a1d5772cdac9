"""The events of batches: what the sender tells of them, as facts, and what is made of these when somebody reads.

The facts are taken at once, since a batch changes and its bytes should not be kept for the sake of an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.client.client_response import ClientResponse
from ottla.client.producer.events import (
    Acknowledged,
    BatchDrained,
    BatchFailed,
    ProduceCompleted,
    ProduceSent,
    Retried,
)
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.model import TopicPartition
from ottla.trace import EventStream, maker


def tell_drained(events: EventStream, batch: ProducerBatch, now: float) -> None:
    """It was taken out of its queue, and sealed."""
    events.tell_of(
        DRAINED, batch.tp.topic, batch.tp.partition, batch.count, batch.size_bytes, batch.created, now, batch.attempts
    )


def drained(
    topic: str, partition: int, records: int, size_bytes: int, created: float, now: float, attempts: int
) -> Any:
    return BatchDrained(TopicPartition(topic, partition), records, size_bytes, since(created, now), attempts)


def tell_sent(events: EventStream, node_id: int, batches: Sequence[ProducerBatch]) -> None:
    """They leave in one request."""
    events.tell_of(
        SENT, node_id, sum(batch.size_bytes for batch in batches), *(part for batch in batches for part in batch.tp)
    )


def sent(node_id: int, size_bytes: int, *places: Any) -> Any:
    """Of `places` each topic is followed by a partition of it."""
    partitions = tuple(TopicPartition(*place) for place in zip(places[::2], places[1::2], strict=True))
    return ProduceSent(node_id, partitions, size_bytes)


def tell_completed(events: EventStream, response: ClientResponse, asked: float) -> None:
    """The request has its answer, or will have none."""
    error = response.error or (response.reason if response.disconnected else "")
    events.tell_of(COMPLETED, response.node_id, asked, response.received, error and str(error))


def completed(node_id: int, asked: float, received: float, error: str) -> Any:
    return ProduceCompleted(node_id, since(asked, received), error)


def tell_finished(events: EventStream, batch: ProducerBatch, error: Any, base_offset: int, now: float) -> None:
    """It has its outcome: an error, remarks about single records, or None."""
    if error is None:
        events.tell_of(ACKNOWLEDGED, batch.tp.topic, batch.tp.partition, base_offset, batch.count, batch.created, now)
    else:
        events.tell(BatchFailed(batch.tp, batch.count, reason(error)))


def acknowledged(topic: str, partition: int, base_offset: int, records: int, created: float, now: float) -> Any:
    return Acknowledged(TopicPartition(topic, partition), base_offset, records, since(created, now))


def reason(error: Any) -> str:
    """Why a batch failed, as text."""
    if isinstance(error, dict):
        return "; ".join(f"record {index}: {remark}" for index, remark in error.items())
    return str(error)


def retried(batch: ProducerBatch, error: Any, now: float) -> Retried:
    """It is in its queue again."""
    return Retried(batch.tp, str(error), batch.attempts, max(0.0, batch.retry_at - now) * 1000)


def since(moment: float, now: float) -> float:
    """Milliseconds."""
    return (now - moment) * 1000


DRAINED, SENT, COMPLETED, ACKNOWLEDGED = maker(drained), maker(sent), maker(completed), maker(acknowledged)
