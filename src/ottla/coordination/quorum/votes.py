"""The votes of one election, or of one that is only asked about."""

from __future__ import annotations

from ottla.coordination.quorum.voters import VoterSet


class Votes:
    """Who has granted and who has refused, of those who vote."""

    def __init__(self, voters: VoterSet) -> None:
        self.voters = voters
        self.granted: set[int] = set()
        self.refused: set[int] = set()
        self.gone: set[int] = set()
        """At whose address nobody listens."""

    def count(self, voter: int, *, granted: bool) -> None:
        """A voter's word; the last one counts, and of others nobody hears."""
        if voter in self.voters.ids:
            (self.granted if granted else self.refused).add(voter)
            (self.refused if granted else self.granted).discard(voter)

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        """Whether too few are left."""
        return len(self.voters) - len(self.refused) < self.voters.majority

    @property
    def could_be_won(self) -> bool:
        """Whether most are there, for all that is known."""
        return len(self.voters) - len(self.gone) >= self.voters.majority

    @property
    def silent(self) -> list[int]:
        return [voter for voter in self.voters.ids if voter not in self.granted | self.refused]
