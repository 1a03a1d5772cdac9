"""Events of a producer, as `Producer.trace()` returns them, each with its time.

Values only; the text of each is a log line.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import TopicPartition
from ottla.trace import maker


class BatchBegun(NamedTuple):
    """A new batch was started at the end of its partition's queue."""

    partition: TopicPartition

    def __str__(self) -> str:
        return f"batch of {self.partition} started"


def make_begun(topic: str, partition: int) -> BatchBegun:
    return BatchBegun(TopicPartition(topic, partition))


BEGUN = maker(BatchBegun, make_begun)
"""Constructor of this frequent event."""


class BatchDrained(NamedTuple):
    """The sender has taken a batch from its queue. No more records are added."""

    partition: TopicPartition
    records: int
    size_bytes: int
    """The compressed size."""
    waited_ms: float
    """Milliseconds since the batch was started."""
    attempts: int

    def __str__(self) -> str:
        again = f", sent {self.attempts} times before" if self.attempts else ""
        return f"{self.records} records of {self.partition} drained after {self.waited_ms:.0f} ms, {self.size_bytes} bytes{again}"


class ProduceSent(NamedTuple):
    """A Produce request is sent, with at most one batch per partition."""

    node_id: int
    partitions: tuple[TopicPartition, ...]
    size_bytes: int

    def __str__(self) -> str:
        return f"produce sent to node {self.node_id}: {', '.join(map(str, self.partitions))}, {self.size_bytes} bytes"


class ProduceCompleted(NamedTuple):
    """A Produce request has a response, or has failed. The results of its batches are separate events."""

    node_id: int
    took_ms: float
    error: str
    """The reason for a missing response; "" if there is one."""

    def __str__(self) -> str:
        return f"produce to node {self.node_id} completed after {self.took_ms:.0f} ms" + (
            self.error and f": {self.error}"
        )


class Acknowledged(NamedTuple):
    """A batch is written to as many replicas as `acks` requires."""

    partition: TopicPartition
    base_offset: int
    """The offset of its first record; -1 if unknown: with acks=0, or for a duplicate batch."""
    records: int
    took_ms: float
    """Milliseconds since the batch was started."""

    def __str__(self) -> str:
        where = "" if self.base_offset < 0 else f" from {self.base_offset}"
        return f"{self.records} records of {self.partition}{where} acknowledged after {self.took_ms:.0f} ms"


class Retried(NamedTuple):
    """A batch is returned to its queue for a retry."""

    partition: TopicPartition
    error: str
    """Kafka's name of the error, or the reason for the missing response."""
    attempts: int
    """The number of attempts so far."""
    backoff_ms: float

    def __str__(self) -> str:
        return f"{self.partition} retried in {self.backoff_ms:.0f} ms after {self.attempts} attempts: {self.error}"


class BatchSplit(NamedTuple):
    """The broker rejected a batch as too large; it is returned to its queue as two."""

    partition: TopicPartition
    records: int

    def __str__(self) -> str:
        return f"{self.records} records of {self.partition} are too many for the broker: split in two"


class BatchFailed(NamedTuple):
    """The records of a batch have failed; their futures have the error."""

    partition: TopicPartition
    records: int
    error: str

    def __str__(self) -> str:
        return f"{self.records} records of {self.partition} failed: {self.error}"


class TransactionChanged(NamedTuple):
    """The transaction state has changed, with Kafka's names."""

    before: str
    state: str
    error: str
    """The error that caused it; "" if there is none."""

    def __str__(self) -> str:
        return f"{self.before} -> {self.state}" + (self.error and f": {self.error}")


class CoordinatorAsked(NamedTuple):
    """A request to a coordinator is sent. Only one is in flight at a time."""

    api: str
    node_id: int

    def __str__(self) -> str:
        return f"{self.api} sent"


class CoordinatorAnswered(NamedTuple):
    """A coordinator request has a response, or has failed."""

    api: str
    error: str
    """Kafka's name of the error, or the reason for the missing response; "" on success."""

    def __str__(self) -> str:
        return f"{self.api} answered: {self.error or 'ok'}"


FREQUENT = (BatchBegun, BatchDrained, ProduceSent, ProduceCompleted)
"""Frequent events, omitted in a timeline."""
