"""The events of batches, made of the batches."""

from __future__ import annotations

from collections.abc import Iterable
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


def drained(batch: ProducerBatch, now: float) -> BatchDrained:
    """It was taken out of its queue, and sealed."""
    return BatchDrained(batch.tp, batch.count, batch.size_bytes, since(batch.created, now), batch.attempts)


def sent(node_id: int, batches: Iterable[ProducerBatch]) -> ProduceSent:
    """They leave in one request."""
    return ProduceSent(node_id, tuple(batch.tp for batch in batches), sum(batch.size_bytes for batch in batches))


def completed(response: ClientResponse, asked: float) -> ProduceCompleted:
    """The request has its answer, or will have none."""
    error = response.error or (response.reason if response.disconnected else "")
    return ProduceCompleted(response.node_id, since(asked, response.received), str(error))


def retried(batch: ProducerBatch, error: Any, now: float) -> Retried:
    """It is in its queue again."""
    return Retried(batch.tp, str(error), batch.attempts, max(0.0, batch.retry_at - now) * 1000)


def finished(batch: ProducerBatch, error: Any, base_offset: int, now: float) -> Acknowledged | BatchFailed:
    """It has its outcome: an error, remarks about single records, or None."""
    if error is None:
        return Acknowledged(batch.tp, base_offset, batch.count, since(batch.created, now))
    text = (
        "; ".join(f"record {index}: {remark}" for index, remark in error.items()) if isinstance(error, dict) else error
    )
    return BatchFailed(batch.tp, batch.count, str(text))


def since(moment: float, now: float) -> float:
    """Milliseconds."""
    return (now - moment) * 1000
