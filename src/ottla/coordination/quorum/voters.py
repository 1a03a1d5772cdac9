"""Who votes on the metadata, and how many of them are most (KIP-853). Values; a change makes another set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from ottla.protocol.schema import ZERO_UUID


class ReplicaKey(NamedTuple):
    """A node and the directory it keeps the log in: with another disk it is another replica, which has promised nothing."""

    id: int
    directory_id: UUID = ZERO_UUID
    """Zero where it is not known: by the rules of kraft.version 0 a number says all."""

    def is_same(self, other: ReplicaKey) -> bool:
        """Whether both may be meant; who does not tell a directory is known by the number."""
        return self.id == other.id and (self.directory_id == other.directory_id or ZERO_UUID in (self[1], other[1]))

    def __str__(self) -> str:
        return str(self.id)


class VoterSet:
    """All who vote, by their numbers."""

    __slots__ = ("voters",)

    def __init__(self, voters: Iterable[Voter]) -> None:
        self.voters = {each.voter_id: each for each in voters}

    @classmethod
    def of(cls, *keys: ReplicaKey) -> VoterSet:
        """Voters of whom no more is known."""
        return cls(Voter(key.id, key.directory_id, [], KRaftVersionFeature(0, 1)) for key in keys)

    def __len__(self) -> int:
        return len(self.voters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self.voters == other.voters

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"VoterSet({sorted(self.voters)})"

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self.voters)

    @property
    def keys(self) -> list[ReplicaKey]:
        return [ReplicaKey(each.voter_id, each.voter_directory_id) for each in self.voters.values()]

    @property
    def majority(self) -> int:
        """As many as two decisions cannot find without one who takes part in both."""
        return len(self.voters) // 2 + 1

    def has(self, key: ReplicaKey) -> bool:
        """Whether that replica votes; another directory of the same node does not."""
        found = self.voters.get(key.id)
        return found is not None and ReplicaKey(key.id, found.voter_directory_id).is_same(key)

    def known(self, key: ReplicaKey) -> ReplicaKey:
        """The voter that is meant; where it is none, the key as it is."""
        return next((each for each in self.keys if each.is_same(key)), key)

    def others(self, me: ReplicaKey) -> list[int]:
        return [id_ for id_ in self.voters if id_ != me.id]

    def endpoints(self, id_: int) -> list[Endpoint]:
        """Where a voter is; nothing where it does not vote."""
        found = self.voters.get(id_)
        return list(found.endpoints) if found else []

    def with_voter(self, voter: Voter) -> VoterSet:
        """One more, or one that is elsewhere now."""
        return VoterSet([*(each for each in self.voters.values() if each.voter_id != voter.voter_id), voter])

    def without(self, id_: int) -> VoterSet:
        return VoterSet(each for each in self.voters.values() if each.voter_id != id_)

    def record(self) -> VotersRecord:
        """As the log has it."""
        return VotersRecord(0, [self.voters[id_] for id_ in sorted(self.voters)])


NOBODY = VoterSet(())
