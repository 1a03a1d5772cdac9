"""The state of a cluster at each offset of its metadata, by an independent rule: a transaction is invisible before its end."""

from __future__ import annotations

from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ottla.coordination.cluster.topic import PartitionState
from ottla.protocol.schema import Message

ENDS = EndTransactionRecord | AbortTransactionRecord
Seen = tuple[tuple[PartitionState, ...], frozenset[int]]
"""The partitions of the topic, and the brokers that are fenced."""


def seen(metadata: ClusterMetadata) -> Seen:
    topic = metadata.topics.get("t")
    fenced = frozenset(number for number, each in metadata.registrations.items() if each.fenced)
    return () if topic is None else topic.partitions, fenced


class CommittedStates:
    """Grows by what is committed, and never changes otherwise."""

    def __init__(self) -> None:
        self.unfinished: list[Message] = []
        """The transaction that is open, from its beginning on."""
        self._metadata = ClusterMetadata()
        self._seen: list[Seen] = [seen(self._metadata)]

    def commit(self, record: Message) -> list[Message]:
        """The records that become state by it."""
        counting: list[Message] = []
        if isinstance(record, BeginTransactionRecord) or (self.unfinished and not isinstance(record, ENDS)):
            self.unfinished.append(record)
        else:
            if not isinstance(record, AbortTransactionRecord):
                counting = self.unfinished[1:] or [record]
            self.unfinished = []
        for each in counting:
            self._metadata.replay(each)
        self._seen.append(seen(self._metadata))
        return counting

    def at(self, offset: int) -> Seen | None:
        """Return the state after all records below the offset; None if that is not committed."""
        return self._seen[offset] if offset < len(self._seen) else None
