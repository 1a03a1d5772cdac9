"""What is in a transaction: the partitions that take part, and how much of it brokers may know.

queued for ─► new ─► asked to be taken in (AddPartitionsToTxn) ─► in: batches may be sent
    └───────────────── version 2: the broker takes it in with its first batch ──────────┘
"""

from __future__ import annotations

from ottla.model import TopicPartition


class TransactionContents:
    """Partitions, and whether there is anything to be ended."""

    def __init__(self) -> None:
        self.taking_part: set[TopicPartition] = set()
        """The partitions that something was queued for. It stays the same set: who sends looks into it without a lock."""
        self.new: set[TopicPartition] = set()
        """Those of them that no broker was told of."""
        self.partitions: set[TopicPartition] = set()
        """Those of them whose batches may be sent."""
        self.started = False
        """Whether there is anything in the transaction."""
        self.reached = False
        """Whether a broker may know of it."""

    def add(self, tp: TopicPartition, *, implicit: bool) -> None:
        """Something is queued for a partition; `implicit` where its broker takes it in unasked.

        Called again if an exception ended it: `taking_part`, which says that it is done, comes last.
        """
        if tp not in self.partitions:
            (self.partitions if implicit else self.new).add(tp)
        self.started = True
        self.taking_part.add(tp)

    def take_new(self) -> set[TopicPartition]:
        """Those that a broker has to be told of, which is about to be done."""
        new, self.new = self.new, set()
        return new

    def clear(self) -> None:
        """The transaction has ended."""
        for partitions in (self.taking_part, self.partitions, self.new):
            partitions.clear()
        self.started = self.reached = False

    def check(self) -> None:
        assert not self.partitions & self.new
        assert self.taking_part >= self.partitions | self.new
