"""The voters at each point of the log, so that truncating the log restores earlier voters."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.control_records import KRaftVersionRecord
from ottla.coordination.quorum.voters import NO_VOTERS, VoterSet
from ottla.coordination.quorum.voters_record import VotersRecord
from ottla.protocol.schema import Message


class VoterRules(NamedTuple):
    """The rules from one record of the log to the next."""

    end: int
    """The offset after that record."""
    voters: VoterSet
    voters_end: int
    """The offset after the last VotersRecord, which may be an earlier record."""
    kraft_version: int


class VoterHistory:
    """The voters by the settings, a snapshot and the records of the log. The last source wins, committed or not."""

    def __init__(self, voters: VoterSet = NO_VOTERS, kraft_version: int = 0, start: int = 0) -> None:
        """Start with the rules that hold before the first record of the log, at offset `start`."""
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
        """Drop the rules of records at `end` or after it."""
        while len(self._rules) > 1 and self.newest.end > end:
            self._rules.pop()
