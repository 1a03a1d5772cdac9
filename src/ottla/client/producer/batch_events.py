"""The events of batches: what the sender tells of them, as facts, and what is made of these when somebody reads.

The facts are taken at once, since a batch changes and its bytes should not be kept for the sake of an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.client.network.client_request import ClientResponse
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
    topic, partition = batch.tp
    waited_ms = since(batch.created, now)
    events.tell_facts(DRAINED, (topic, partition, batch.count, batch.size_bytes, waited_ms, batch.attempts))


def drained(topic: str, partition: int, records: int, size_bytes: int, waited_ms: float, attempts: int) -> BatchDrained:
    return BatchDrained(TopicPartition(topic, partition), records, size_bytes, waited_ms, attempts)


def tell_sent(events: EventStream, node_id: int, batches: Sequence[ProducerBatch]) -> None:
    """They leave in one request."""
    size_bytes = 0
    places: list[Any] = []
    for batch in batches:
        size_bytes += batch.size_bytes
        places += batch.tp
    events.tell_facts(SENT, (node_id, size_bytes, *places))


def sent(node_id: int, size_bytes: int, *places: Any) -> ProduceSent:
    """Of `places` each topic is followed by a partition of it."""
    partitions = tuple(TopicPartition(*place) for place in zip(places[::2], places[1::2], strict=True))
    return ProduceSent(node_id, partitions, size_bytes)


def tell_completed(events: EventStream, response: ClientResponse, asked: float) -> None:
    """The request has its answer, or will have none."""
    error = response.error or (response.reason if response.disconnected else "")
    events.tell_facts(COMPLETED, (response.node_id, since(asked, response.received), error and str(error)))


def tell_finished(events: EventStream, batch: ProducerBatch, error: Any, base_offset: int, now: float) -> None:
    """It has its outcome: an error, remarks about single records, or None."""
    if error is None:
        topic, partition = batch.tp
        events.tell_facts(ACKNOWLEDGED, (topic, partition, base_offset, batch.count, since(batch.created, now)))
    else:
        events.tell(BatchFailed(batch.tp, batch.count, reason(error)))


def acknowledged(topic: str, partition: int, base_offset: int, records: int, took_ms: float) -> Acknowledged:
    return Acknowledged(TopicPartition(topic, partition), base_offset, records, took_ms)


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


DRAINED, SENT = maker(BatchDrained, drained), maker(ProduceSent, sent)
COMPLETED, ACKNOWLEDGED = maker(ProduceCompleted), maker(Acknowledged, acknowledged)
