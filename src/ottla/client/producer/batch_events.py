"""Events of batches: recorded as plain facts by the sender, and converted when the trace is read.

The facts are copied at once, because a batch changes and its data should not be kept alive by an event.
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


def record_drained(events: EventStream, batch: ProducerBatch, now: float) -> None:
    """Record that a batch was drained and sealed."""
    topic, partition = batch.tp
    waited_ms = elapsed_ms(batch.created, now)
    events.publish_facts(DRAINED, (topic, partition, batch.count, batch.size_bytes, waited_ms, batch.attempts))


def make_drained(
    topic: str, partition: int, records: int, size_bytes: int, waited_ms: float, attempts: int
) -> BatchDrained:
    return BatchDrained(TopicPartition(topic, partition), records, size_bytes, waited_ms, attempts)


def record_sent(events: EventStream, node_id: int, batches: Sequence[ProducerBatch]) -> None:
    """Record that batches are sent in one request."""
    size_bytes = 0
    places: list[Any] = []
    for batch in batches:
        size_bytes += batch.size_bytes
        places += batch.tp
    events.publish_facts(SENT, (node_id, size_bytes, *places))


def make_sent(node_id: int, size_bytes: int, *places: Any) -> ProduceSent:
    """Create the event; `places` alternates topics and partitions."""
    partitions = tuple(TopicPartition(*place) for place in zip(places[::2], places[1::2], strict=True))
    return ProduceSent(node_id, partitions, size_bytes)


def record_completed(events: EventStream, response: ClientResponse, sent_at: float) -> None:
    """Record the response or the failure of a request."""
    error = response.error or (response.reason if response.disconnected else "")
    events.publish_facts(COMPLETED, (response.node_id, elapsed_ms(sent_at, response.received), error and str(error)))


def record_finished(events: EventStream, batch: ProducerBatch, error: Any, base_offset: int, now: float) -> None:
    """Record the result of a batch: an error, errors by record, or None."""
    if error is None:
        topic, partition = batch.tp
        events.publish_facts(ACKNOWLEDGED, (topic, partition, base_offset, batch.count, elapsed_ms(batch.created, now)))
    else:
        events.publish(BatchFailed(batch.tp, batch.count, describe_error(error)))


def make_acknowledged(topic: str, partition: int, base_offset: int, records: int, took_ms: float) -> Acknowledged:
    return Acknowledged(TopicPartition(topic, partition), base_offset, records, took_ms)


def describe_error(error: Any) -> str:
    """Return the error of a batch as text."""
    if isinstance(error, dict):
        return "; ".join(f"record {index}: {remark}" for index, remark in error.items())
    return str(error)


def make_retried(batch: ProducerBatch, error: Any, now: float) -> Retried:
    """Create the event of a batch that was returned to its queue."""
    return Retried(batch.tp, str(error), batch.attempts, max(0.0, batch.retry_at - now) * 1000)


def elapsed_ms(moment: float, now: float) -> float:
    """Return the difference in milliseconds."""
    return (now - moment) * 1000


DRAINED, SENT = maker(BatchDrained, make_drained), maker(ProduceSent, make_sent)
COMPLETED, ACKNOWLEDGED = maker(ProduceCompleted), maker(Acknowledged, make_acknowledged)
