"""The contents of a transaction: its partitions, and how far brokers know of them.

queued ─► new ─► request to add it (AddPartitionsToTxn) ─► added: batches may be sent
   └───────────── version 2: the broker adds it with its first batch ──────────┘
"""

from __future__ import annotations

from ottla.model import TopicPartition


class TransactionContents:
    """The partitions, and whether there is anything to end."""

    def __init__(self) -> None:
        self.taking_part: set[TopicPartition] = set()
        """The partitions with queued records. The set object never changes, because the sender reads it without a lock.
        """
        self.new: set[TopicPartition] = set()
        """Partitions that were not sent to the coordinator yet."""
        self.partitions: set[TopicPartition] = set()
        """Partitions with batches that may be sent."""
        self.started = False
        """True if the transaction contains anything."""
        self.reached = False
        """True if a broker may know of the transaction."""

    def add_partition(self, tp: TopicPartition, *, implicit: bool) -> None:
        """Add a partition; with `implicit` its broker adds it by itself.

        Is called again if an exception ended it: `taking_part`, which marks it as done, comes last.
        """
        if tp not in self.partitions:
            (self.partitions if implicit else self.new).add(tp)
        self.started = True
        self.taking_part.add(tp)

    def take_new_partitions(self) -> set[TopicPartition]:
        """Return the partitions that must be sent to the coordinator now."""
        new, self.new = self.new, set()
        return new

    def clear(self) -> None:
        """Clear it after the transaction has ended."""
        for partitions in (self.taking_part, self.partitions, self.new):
            partitions.clear()
        self.started = self.reached = False

    def check(self) -> None:
        assert not self.partitions & self.new
        assert self.taking_part >= self.partitions | self.new
