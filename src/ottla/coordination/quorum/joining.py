"""A replica sees to it that the record of the voters is right about it: where it is, and that it votes if it is to (KIP-853, KIP-1186).

Who follows asks the leader, in place of a fetch, once it has all that the leader told of: else it would go by voters of long ago. What is
refused is asked again after a fetch's patience. Who leads changes the record itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.coordination.quorum import membership
from ottla.coordination.quorum.state import State
from ottla.coordination.quorum.voters import ReplicaKey
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.update_raft_voter import KRaftVersionFeature as ToldFeature
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.coordination.quorum.raft import Raft


class Presence(NamedTuple):
    """What a replica wants the record to say of it."""

    endpoints: tuple[Endpoint, ...] = ()
    """Where it is reached; nothing where it does not know that itself, and the record stays as it is."""
    kraft_versions: tuple[int, int] = (0, 1)
    joins: bool = False
    """Whether it comes to vote without being asked."""


NOTHING = Presence()


def wanted(raft: Raft) -> Message | None:
    """What it would have the leader change now."""
    if raft.now < raft.ask_at or raft.log.kraft_version < 1 or not is_up_to_date(raft):
        return None
    request = correction(raft) if raft.is_voter else entry(raft) if raft.presence.joins else None
    if request is not None:
        raft.ask_at = raft.now + raft.config.fetch_timeout_ms / 1000
    return request


def is_up_to_date(raft: Raft) -> bool:
    """Whether it has all that the leader of this epoch told it is committed."""
    return raft.has_fetched and 0 <= raft.leaders_watermark <= raft.log.end and raft.fetching is None


def entry(raft: Raft) -> Message | None:
    """That it comes to vote, or first that its directory of before goes: a node votes with one."""
    me, there = raft.me, raft.voters.voters.get(raft.me.id)
    if there is not None:
        return RemoveRaftVoterRequest(raft.cluster_id, me.id, there.voter_directory_id)
    if not raft.presence.endpoints:
        return None
    timeout_ms = raft.config.request_timeout_ms
    # It could not fetch while it waits for an answer, and its own fetch may be what the commit waits for.
    return AddRaftVoterRequest(raft.cluster_id, timeout_ms, *me, listeners(raft.presence), ack_when_committed=False)


def correction(raft: Raft) -> UpdateRaftVoterRequest | None:
    """What the record is to say of a voter; None where it does."""
    if not raft.presence.endpoints or said(raft.voters.voters[raft.me.id]) == said(voter(raft.me, raft.presence)):
        return None
    feature = ToldFeature(*raft.presence.kraft_versions)
    return UpdateRaftVoterRequest(raft.cluster_id, raft.epoch, *raft.me, listeners(raft.presence), feature)


def correct_itself(raft: Raft) -> None:
    """Change the record of a leader who is elsewhere than it says."""
    assert raft.state is State.LEADER
    if not raft.is_voter or raft.now < raft.ask_at or membership.reason_to_wait(raft) is not None:
        return
    request = correction(raft)
    if request is not None:
        raft.ask_at = raft.now + raft.config.fetch_timeout_ms / 1000
        membership.change_voters(raft, None, request)


def voter(me: ReplicaKey, presence: Presence) -> Voter:
    return Voter(*me, list(presence.endpoints), KRaftVersionFeature(*presence.kraft_versions))


def said(one: Voter) -> tuple[frozenset[tuple[str, str, int]], tuple[int, int]]:
    """What matters of a voter's entry; listeners have no order, and names of them no case."""
    feature = one.k_raft_version_feature
    places = frozenset((each.name.upper(), each.host, each.port) for each in one.endpoints)
    return places, (feature.min_supported_version, feature.max_supported_version)


def listeners(presence: Presence) -> list[Listener]:
    return [Listener(each.name, each.host, each.port) for each in presence.endpoints]
