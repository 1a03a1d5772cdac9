"""The state of one transactional id. Frozen: each step creates a new value."""

from __future__ import annotations

from msgspec import Struct

from ottla.coordination.transactions.state import IDLE, PREVIOUS, TransactionState
from ottla.model import TopicPartition

NO_PRODUCER = -1
NO_EPOCH = -1
MAX_EPOCH = 32_767
EXHAUSTED = MAX_EPOCH - 1
"""The last epoch that a producer is given; one more is reserved to fence it."""
GRACE_S = 30.0
"""The time in seconds for which a transaction that another coordinator started is not aborted by its start time, because that coordinator's wall clock may be wrong."""
V2 = 2
"""The `transaction.version` from which on each transaction has its own epoch (KIP-890)."""


class Transaction(Struct, frozen=True, kw_only=True):
    """A transactional id, its producer, and the transaction that is or was under way."""

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER
    """The producer id of the last transaction, if the epochs of that id are exhausted."""
    next_producer_id: int = NO_PRODUCER
    """The producer id of the next transaction, if the epochs of the present id are exhausted."""
    last_epoch: int = NO_EPOCH
    """The producer's epoch before the last change, which it may send again. Not stored in the log, as in Kafka."""
    is_fenced: bool = False
    """True if the coordinator aborted the last transaction, not its producer. Not stored in the log."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    started_at: float | None = None
    """`started_ms` by the monotonic clock; None if it was read from the log."""
    updated_ms: int
    version: int = 0
    """The `transaction.version` of its client."""

    @property
    def is_exhausted(self) -> bool:
        """True if this producer id has no epoch left."""
        return self.producer_epoch >= EXHAUSTED

    @property
    def is_idle(self) -> bool:
        return self.state in IDLE

    def has_timed_out(self, now: float, wall_ms: int, known_at: float) -> bool:
        """Return True if the transaction is open for longer than its producer's timeout.

        An adjustment of the wall clock makes no difference. Of a transaction that was read from the log only the start time by another broker's wall clock is known, and
        the two clocks may differ by hours. So that time is not used before this coordinator has known the transaction for GRACE_S. The
        transaction is at least as old as `known_at`.
        """
        if self.state != TransactionState.ONGOING:
            return False
        if self.started_at is not None:
            return (now - self.started_at) * 1000 > self.timeout_ms
        known_s = now - known_at
        by_calendar = known_s > GRACE_S and wall_ms - self.started_ms > self.timeout_ms
        return by_calendar or known_s * 1000 > self.timeout_ms

    def has_expired(self, wall_ms: int, expiration_ms: int) -> bool:
        """Return True if the id was unused for long enough to be deleted."""
        return self.is_idle and wall_ms - self.updated_ms >= expiration_ms

    def check(self) -> None:
        assert self.producer_id >= 0
        assert NO_EPOCH <= self.producer_epoch <= MAX_EPOCH
        assert not self.partitions or not self.is_idle, "only an ongoing transaction has partitions"
        assert self.state not in (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT) or self.started_ms >= 0


def can_follow(before: Transaction | None, after: Transaction) -> bool:
    """Return True if the table of transitions allows this one."""
    return before is None or before.state in PREVIOUS[after.state]
