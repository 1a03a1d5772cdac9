"""The events of transactions. Times are wall-clock times in ms; random ids are part of an event."""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.transactions.transaction import NO_EPOCH, NO_PRODUCER
from ottla.errors import ErrorCode
from ottla.model import TopicPartition


class ProducerRequested(Struct, frozen=True):
    """InitProducerId: a producer with a transactional id starts, or continues after an error if it sends its id and epoch (KIP-360)."""

    ticket: int
    transactional_id: str
    timeout_ms: int
    new_producer_id: int
    """Used where a new one is needed (`Transactions.can_need_producer_id`)."""
    wall_ms: int
    producer_id: int = NO_PRODUCER
    epoch: int = NO_EPOCH


class PartitionsAdded(Struct, frozen=True):
    """AddPartitionsToTxn or AddOffsetsToTxn: a producer is about to write to these partitions."""

    ticket: int
    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    wall_ms: int
    version: int = 0
    """The `transaction.version` that the client speaks."""


class EndRequested(Struct, frozen=True):
    """EndTxn: a producer commits or aborts its transaction."""

    ticket: int
    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool
    new_producer_id: int
    wall_ms: int
    version: int = 0


class MarkersWritten(Struct, frozen=True):
    """Every partition of a prepared transaction has its marker."""

    ticket: int
    transactional_id: str
    wall_ms: int


class TimePassed(Struct, frozen=True):
    """Abort transactions that timed out, and delete expired ids. The reply is the number of each."""

    ticket: int
    wall_ms: int
    expiration_ms: int
    """`transactional.id.expiration.ms`."""


Event = ProducerRequested | PartitionsAdded | EndRequested | MarkersWritten | TimePassed


class Answer(Struct, frozen=True):
    """The response to a producer."""

    code: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER
    epoch: int = NO_EPOCH
