"""What a producer tells of itself while it works: `Producer.trace()` hands these out, each with its time.

Values only; the text of each is a line for people.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import TopicPartition
from ottla.trace import maker


class BatchBegun(NamedTuple):
    """A record found no batch with room, and a new one is at the back of its partition's queue."""

    partition: TopicPartition

    def __str__(self) -> str:
        return f"batch of {self.partition} begun"


def begun(topic: str, partition: int) -> BatchBegun:
    return BatchBegun(TopicPartition(topic, partition))


BEGUN = maker(BatchBegun, begun)
"""By which it is told."""


class BatchDrained(NamedTuple):
    """The sender has taken a batch out of its queue: no record is added any more."""

    partition: TopicPartition
    records: int
    size_bytes: int
    """As it travels: compressed."""
    waited_ms: float
    """Since it was begun; it was sent before where `attempts` is more than 0."""
    attempts: int

    def __str__(self) -> str:
        again = f", sent {self.attempts} times before" if self.attempts else ""
        return f"{self.records} records of {self.partition} taken after {self.waited_ms:.0f} ms, {self.size_bytes} bytes{again}"


class ProduceSent(NamedTuple):
    """A broker is given batches, one of a partition at most."""

    node_id: int
    partitions: tuple[TopicPartition, ...]
    size_bytes: int

    def __str__(self) -> str:
        return f"produce sent to node {self.node_id}: {', '.join(map(str, self.partitions))}, {self.size_bytes} bytes"


class ProduceCompleted(NamedTuple):
    """The broker has answered, or will not; what became of each batch is told by itself."""

    node_id: int
    took_ms: float
    error: str
    """Why there is no answer; nothing when there is one."""

    def __str__(self) -> str:
        return f"produce to node {self.node_id} completed after {self.took_ms:.0f} ms" + (
            self.error and f": {self.error}"
        )


class Acknowledged(NamedTuple):
    """A batch is written, on as many copies as `acks` asks for."""

    partition: TopicPartition
    base_offset: int
    """Of its first record; -1 where nobody tells it: with acks=0, or of a batch that was known to be there."""
    records: int
    took_ms: float
    """Since the batch was begun."""

    def __str__(self) -> str:
        where = "" if self.base_offset < 0 else f" from {self.base_offset}"
        return f"{self.records} records of {self.partition}{where} acknowledged after {self.took_ms:.0f} ms"


class Retried(NamedTuple):
    """A batch goes back to the front of its queue."""

    partition: TopicPartition
    error: str
    """Kafka's name, or why there was no answer."""
    attempts: int
    """How often it was sent."""
    backoff_ms: float

    def __str__(self) -> str:
        return (
            f"{self.partition} to be sent again in {self.backoff_ms:.0f} ms, sent {self.attempts} times: {self.error}"
        )


class BatchSplit(NamedTuple):
    """The broker finds a batch too large, and it goes back as two."""

    partition: TopicPartition
    records: int

    def __str__(self) -> str:
        return f"{self.records} records of {self.partition} are too many for the broker: split in two"


class BatchFailed(NamedTuple):
    """The records of a batch are given up, and their futures tell it."""

    partition: TopicPartition
    records: int
    error: str

    def __str__(self) -> str:
        return f"{self.records} records of {self.partition} failed: {self.error}"


class TransactionChanged(NamedTuple):
    """The state of the producer's numbers and transaction, by Kafka's names."""

    before: str
    state: str
    error: str
    """What led there, if something went wrong."""

    def __str__(self) -> str:
        return f"{self.before} -> {self.state}" + (self.error and f": {self.error}")


class CoordinatorAsked(NamedTuple):
    """A question about numbers or the transaction leaves, one at a time."""

    api: str
    node_id: int

    def __str__(self) -> str:
        return f"{self.api} sent"


class CoordinatorAnswered(NamedTuple):
    """Its answer is here, or will not come."""

    api: str
    error: str
    """Kafka's name, or why there is no answer; nothing when all is well."""

    def __str__(self) -> str:
        return f"{self.api} answered: {self.error or 'all is well'}"


FREQUENT = (BatchBegun, BatchDrained, ProduceSent, ProduceCompleted)
"""Those that a time line can do without."""
