"""Writes the end of a transaction where its partition is led: here, or at another broker."""

from __future__ import annotations

from ottla.broker.coordinators.commitment import Commitment
from ottla.broker.coordinators.end_markers import EndMarkers, TransactionEnd
from ottla.broker.coordinators.markers_elsewhere import MarkersElsewhere, Told
from ottla.broker.partitions.leadership import Leadership
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

NOT_HERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class MarkerWriter:
    """A marker counts once it is committed: the coordinator forgets the transaction then."""

    def __init__(self, here: EndMarkers, commitment: Commitment) -> None:
        self._here = here
        self._commitment = commitment
        self.elsewhere: MarkersElsewhere | None = None
        """The other brokers; None where this is the only one."""

    def write(self, place: TopicPartition, end: TransactionEnd, told: Told) -> None:
        """`told` is called with NONE when the marker is where it belongs, else with why not; at once where nothing is waited for."""
        written = self._here.write_led(place, end)
        if written.code in NOT_HERE and self.elsewhere is not None:
            self.elsewhere.send(place, end, told)
        elif written.uncommitted is None:
            told(written.code)
        else:
            leadership, end_offset = written.uncommitted
            self._commitment.wait([written.uncommitted], lambda: told(outcome_of(leadership, end_offset)))


def outcome_of(leadership: Leadership, end_offset: int) -> int:
    code = leadership.outcome(end_offset)
    return ErrorCode.REQUEST_TIMED_OUT if code is None else code
