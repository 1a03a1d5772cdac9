"""What can happen to transactions. Every time in them is by the wall, in ms; ids are drawn by whoever asks."""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.transactions.transaction import NO_EPOCH, NO_PRODUCER
from ottla.errors import ErrorCode
from ottla.model import TopicPartition


class ProducerRequested(Struct, frozen=True):
    """A producer with a transactional id begins, or goes on after an error if it names its id and epoch (KIP-360)."""

    ticket: int
    transactional_id: str
    timeout_ms: int
    fresh_producer_id: int
    """Used where a new one is needed (`Transactions.wants_producer_id`)."""
    wall_ms: int
    producer_id: int = NO_PRODUCER
    epoch: int = NO_EPOCH


class PartitionsAdded(Struct, frozen=True):
    """A producer is about to write to these partitions."""

    ticket: int
    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    wall_ms: int
    version: int = 0
    """The `transaction.version` that the client speaks."""


class EndRequested(Struct, frozen=True):
    """A producer wants its transaction committed or aborted."""

    ticket: int
    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool
    fresh_producer_id: int
    wall_ms: int
    version: int = 0


class MarkersWritten(Struct, frozen=True):
    """Every partition of a prepared transaction bears its marker."""

    ticket: int
    transactional_id: str
    wall_ms: int


class TimePassed(Struct, frozen=True):
    """Time to abort what takes too long and to forget ids that nobody uses. The reply is how many of each."""

    ticket: int
    wall_ms: int
    expiration_ms: int
    """`transactional.id.expiration.ms`."""


Event = ProducerRequested | PartitionsAdded | EndRequested | MarkersWritten | TimePassed


class Answer(Struct, frozen=True):
    """What a producer is told."""

    code: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER
    epoch: int = NO_EPOCH
