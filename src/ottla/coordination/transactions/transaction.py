"""What the coordinator knows of one transactional id. Frozen: each step makes a new one."""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.transactions.state import IDLE, PREVIOUS, TransactionState
from ottla.model import TopicPartition

NO_PRODUCER = -1
NO_EPOCH = -1
MAX_EPOCH = 32_767
EXHAUSTED = MAX_EPOCH - 1
"""The last epoch that a producer is given; one more is kept for fencing it."""
GRACE_S = 30.0
"""So long a producer has to end what it began under another coordinator, whose calendar may have been wrong."""
V2 = 2
"""`transaction.version` from which on each transaction has an epoch of its own (KIP-890)."""


class Transaction(Struct, frozen=True, kw_only=True):
    """A transactional id, its producer, and the transaction that is or was under way."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER
    """Who wrote the last transaction, where the epochs of that id are used up."""
    next_producer_id: int = NO_PRODUCER
    """Who takes over once the present transaction is ended, for the same reason."""
    last_epoch: int = NO_EPOCH
    """The producer's epoch before the last change, which it may send again. Not kept in the log, as in Kafka."""
    is_fenced: bool = False
    """True if the coordinator aborted the last transaction, not its producer. Not kept in the log."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    begun_at: float | None = None
    """The moment that `started_ms` tells of, by the clock that never goes back; None where it was read from a log."""
    updated_ms: int
    version: int = 0
    """The `transaction.version` of its client."""

    @property
    def is_exhausted(self) -> bool:
        """Whether this producer id has no epoch left to give."""
        return self.producer_epoch >= EXHAUSTED

    @property
    def is_idle(self) -> bool:
        return self.state in IDLE

    def has_timed_out(self, now: float, wall_ms: int, known_at: float) -> bool:
        """Whether it has been under way for longer than its producer asked for.

        A calendar that is put right meanwhile makes no difference. Of what another process began nothing but the calendar's
        time is told, and the two calendars may be hours apart: nobody is given up by it whom this coordinator has not known
        for GRACE_S. It has been under way since `known_at` at the least, whatever the calendar says.
        """
        if self.state != TransactionState.ONGOING:
            return False
        if self.begun_at is not None:
            return (now - self.begun_at) * 1000 > self.timeout_ms
        known_s = now - known_at
        by_calendar = known_s > GRACE_S and wall_ms - self.started_ms > self.timeout_ms
        return by_calendar or known_s * 1000 > self.timeout_ms

    def has_expired(self, wall_ms: int, expiration_ms: int) -> bool:
        """Whether nobody used the id for so long that it is forgotten."""
        return self.is_idle and wall_ms - self.updated_ms >= expiration_ms

    def check(self) -> None:
        assert self.producer_id >= 0
        assert NO_EPOCH <= self.producer_epoch <= MAX_EPOCH
        assert not self.partitions or not self.is_idle, "only what is under way has partitions"
        assert self.state not in (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT) or self.started_ms >= 0


def may_follow(before: Transaction | None, after: Transaction) -> bool:
    """Whether the table lets one state follow the other."""
    return before is None or before.state in PREVIOUS[after.state]
