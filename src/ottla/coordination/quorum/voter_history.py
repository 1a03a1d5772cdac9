"""The voters after each record that changed them. When the log is truncated, the earlier voters apply again."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.control_records import KRaftVersionRecord
from ottla.coordination.quorum.voters import NO_VOTERS, VoterSet
from ottla.coordination.quorum.voters_record import VotersRecord
from ottla.protocol.schema import Message


class VoterRules(NamedTuple):
    """The voters and the kraft.version that apply after a record, until another record changes them."""

    end: int
    """The offset after the record that set these values."""
    voters: VoterSet
    voters_end: int
    """The offset after the last VotersRecord, which may be an earlier record."""
    kraft_version: int


class VoterHistory:
    """The voters according to the settings or a snapshot, then to each record of the log.

    The last record applies, even if it is not committed.
    """

    def __init__(self, voters: VoterSet = NO_VOTERS, kraft_version: int = 0, start: int = 0) -> None:
        """`voters` and `kraft_version` apply before the first record of the log, which has the offset `start`."""
        self._rules = [VoterRules(start, voters, start, kraft_version)]

    @property
    def newest(self) -> VoterRules:
        return self._rules[-1]

    def apply(self, record: Message | None, end: int) -> None:
        """Apply a control record that ends at offset `end`; most kinds do not change the voters."""
        match record:
            case VotersRecord():
                self._rules.append(self.newest._replace(end=end, voters=VoterSet(record.voters), voters_end=end))
            case KRaftVersionRecord():
                self._rules.append(self.newest._replace(end=end, kraft_version=record.k_raft_version))

    def truncate(self, end: int) -> None:
        """Remove the changes by records at offset `end` and later."""
        while len(self._rules) > 1 and self.newest.end > end:
            self._rules.pop()
