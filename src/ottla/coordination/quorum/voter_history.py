"""Who votes by which record of the log, so that a cut takes back what it cuts off."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.quorum.control_records import KRaftVersionRecord
from ottla.coordination.quorum.voters import NOBODY, VoterSet
from ottla.coordination.quorum.voters_record import VotersRecord
from ottla.protocol.schema import Message


class VoterRules(NamedTuple):
    """What is so from one record of the log to the next."""

    end: int
    """The offset behind that record."""
    voters: VoterSet
    voters_end: int
    """The offset behind the record that said who votes, which may be an earlier one."""
    kraft_version: int


class VoterHistory:
    """What a log's records, and before them a snapshot or the settings, say of its voters; the last counts, committed or not."""

    def __init__(self, voters: VoterSet = NOBODY, kraft_version: int = 0, start: int = 0) -> None:
        """What is so before the first record of the log, which begins at `start`."""
        self._rules = [VoterRules(start, voters, start, kraft_version)]

    @property
    def newest(self) -> VoterRules:
        return self._rules[-1]

    def note(self, record: Message | None, end: int) -> None:
        """Take in a control record that ends at an offset; most say nothing of voters."""
        match record:
            case VotersRecord():
                self._rules.append(self.newest._replace(end=end, voters=VoterSet(record.voters), voters_end=end))
            case KRaftVersionRecord():
                self._rules.append(self.newest._replace(end=end, kraft_version=record.k_raft_version))

    def cut(self, end: int) -> None:
        """The log ends there now."""
        while len(self._rules) > 1 and self.newest.end > end:
            self._rules.pop()
