"""A fetch session of one follower and one partition, as its leader keeps it: what the broker does with its own, over the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from ottla.broker.replica_manager.fetch_session import FetchedPartition, FetchSession, WatchedPartition
from ottla.coordination.replication.follower import FetchFrom
from ottla.errors import ErrorCode
from ottla.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

if TYPE_CHECKING:
    from tests.simulation.replica_broker import Answer

TOPIC = UUID(int=100)


class LedSession(FetchSession):
    """The leader's side of a session with one follower."""

    def __init__(self, source: WatchedPartition) -> None:
        super().__init__(1, uses_ids=True, privileged=True, now=0.0)
        self.number = 0
        """The number of the last request."""
        self.asks_for = FetchFrom(0, 0, 0)
        self._partition = FetchedPartition(None, TOPIC, FetchPartition(0))
        self.adopt([((TOPIC, 0), self._partition)])
        self.news[self._partition] = None
        self._partition.watch(source)

    def want(self, asked: FetchFrom) -> None:
        """Set the position that a request names."""
        self.asks_for = asked
        self._partition.wanted = FetchPartition(0, fetch_offset=asked.offset)
        self.mark_changed(self._partition)

    def set_answer(self, answer: Answer | None, *, lacks: bool) -> None:
        """Set the response; None is an error."""
        self._partition.lacks = lacks
        self.handle_response([(self._partition, response_of(answer))])


def response_of(answer: Answer | None) -> PartitionData:
    """An answer of the simulation as that of a broker."""
    if answer is None:
        return PartitionData(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1, records=b"")
    parting = answer.parting
    return PartitionData(
        0,
        high_watermark=answer.watermark,
        diverging_epoch=None if parting is None else EpochEndOffset(*parting),
        records=b"some" if answer.batches else b"",
    )
