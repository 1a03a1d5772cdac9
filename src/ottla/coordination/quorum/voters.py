"""The voters of the metadata quorum (KIP-853), as immutable values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from ottla.protocol.schema import ZERO_UUID


class ReplicaKey(NamedTuple):
    """The identity of a replica: a node id and the id of its log directory.

    A node with a new disk is another replica, because its earlier votes and records are lost.
    """

    id: int
    directory_id: UUID = ZERO_UUID
    """The zero UUID if it is unknown. The voters of kraft.version 0 have no directory ids; their node ids identify them."""

    def is_same(self, other: ReplicaKey) -> bool:
        """Return True if both keys may identify the same replica. If one has no directory id, only the node ids are compared."""
        return self.id == other.id and (self.directory_id == other.directory_id or ZERO_UUID in (self[1], other[1]))

    def __str__(self) -> str:
        return str(self.id)


class VoterSet:
    """All voters, by node number."""

    __slots__ = ("voters",)

    def __init__(self, voters: Iterable[Voter]) -> None:
        self.voters = {each.voter_id: each for each in voters}

    @classmethod
    def of(cls, *keys: ReplicaKey) -> VoterSet:
        """Return a set of voters without endpoints."""
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
        """The number of voters that is needed to elect a leader or to commit a record: more than half.

        Any two majorities of the same set have a voter in common.
        """
        return len(self.voters) // 2 + 1

    def has(self, key: ReplicaKey) -> bool:
        """Return True if the replica is a voter. A replica with another directory id of the same node is not one."""
        found = self.voters.get(key.id)
        return found is not None and ReplicaKey(key.id, found.voter_directory_id).is_same(key)

    def known(self, key: ReplicaKey) -> ReplicaKey:
        """Return the key with the directory id of the voters' record; return `key` itself if it is no voter."""
        return next((each for each in self.keys if each.is_same(key)), key)

    def others(self, me: ReplicaKey) -> list[int]:
        return [id_ for id_ in self.voters if id_ != me.id]

    def endpoints(self, id_: int) -> list[Endpoint]:
        """Return the addresses of a voter; an empty list if the node is no voter."""
        found = self.voters.get(id_)
        return list(found.endpoints) if found else []

    def with_voter(self, voter: Voter) -> VoterSet:
        """Return the set with a voter added or replaced."""
        return VoterSet([*(each for each in self.voters.values() if each.voter_id != voter.voter_id), voter])

    def without(self, id_: int) -> VoterSet:
        return VoterSet(each for each in self.voters.values() if each.voter_id != id_)

    def record(self) -> VotersRecord:
        """Return the record that the log stores."""
        return VotersRecord(0, [self.voters[id_] for id_ in sorted(self.voters)])


NO_VOTERS = VoterSet(())
