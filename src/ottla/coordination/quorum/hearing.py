"""What follows from the answers that a replica gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.coordination.quorum import membership, wire
from ottla.coordination.quorum.events import Append, Fail, KeepPiece, Tell
from ottla.coordination.quorum.log_shape import SnapshotId
from ottla.coordination.quorum.state import State
from ottla.coordination.quorum.voters_record import Endpoint
from ottla.coordination.replication.epochs import EpochEnd
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterResponse
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochResponse
from ottla.protocol.messages.fetch import FetchResponse, PartitionData
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotResponse, PartitionSnapshot
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterResponse
from ottla.protocol.messages.vote import VoteResponse
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.coordination.quorum.raft import Raft

OfVoters = AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse
NO_SNAPSHOT = frozenset((ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE))
"""It was replaced meanwhile: the next fetch tells of another."""


def hear(raft: Raft, by: int, response: Message) -> None:
    """An answer that was awaited."""
    if isinstance(response, OfVoters):
        return  # the log will say whether it is so, and if it does not it is asked for again
    if isinstance(response, ApiVersionsResponse):
        membership.newcomer_answered(raft, by, response)
        return
    code: int = getattr(response, "error_code", 0)
    partition = None if code else wire.only(response)
    if partition is None:
        refused(raft, by, response, code)
        return
    raft.peers.strangers.discard(by)
    if not is_news(raft, response, partition):
        if partition.error_code:
            raft.lost(by)
        return
    follows = raft.state is State.FOLLOWER and raft.leader_id == by
    if isinstance(response, VoteResponse) and raft.votes is not None:
        raft.count(by, granted=partition.vote_granted)
    elif isinstance(response, EndQuorumEpochResponse):
        raft.unaware.discard(by)
    elif isinstance(response, FetchResponse) and follows:
        fetched(raft, partition)
    elif isinstance(response, FetchSnapshotResponse) and follows and raft.fetching is not None:
        piece_came(raft, partition)


def refused(raft: Raft, by: int, response: Message, code: int) -> None:
    """An answer that is about no partition."""
    if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
        estranged(raft, by)
    elif code == ErrorCode.UNSUPPORTED_VERSION and raft.state is State.PROSPECTIVE:
        raft.become_candidate()  # it cannot be asked beforehand
    else:
        raft.lost(by)


def estranged(raft: Raft, by: int) -> None:
    """A node of another cluster is as one that is away; where too few are left without all such, it is this one that is in the wrong place.

    Kafka's only logs it: one that was put among others must not end them.
    """
    raft.peers.strangers.add(by)
    known = raft.voters.ids or frozenset(raft.bootstrap)
    sentence = (
        f"{f'node {by}' if by >= 0 else 'who is asked'} is of another cluster than this node, which is of {raft.cluster_id}: look at "
        "cluster.id in the meta.properties of both, and at the addresses of controllers in their settings"
    )
    most = raft.voters.majority if raft.voters.ids else 1
    if len(known - raft.peers.strangers) < most:
        raft.do(Fail(sentence))
        return
    raft.do(Tell(sentence))
    raft.lost(by)


def is_news(raft: Raft, response: Message, partition: Any) -> bool:
    """Learn who leads; whether what else the answer says is to be heard."""
    leader = getattr(partition, "current_leader", partition)
    if leader is None:
        return not partition.error_code
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    epoch, code = leader.leader_epoch, partition.error_code
    if epoch < raft.epoch:
        return False
    was = raft.epoch, raft.leader_id, raft.state
    raft.learn(leader_id, epoch, endpoints_of(response, leader_id))
    if was[0] != raft.epoch:
        return False
    return not code or (isinstance(response, FetchSnapshotResponse) and code in NO_SNAPSHOT)


def endpoints_of(response: Any, leader_id: int | None) -> Sequence[Endpoint]:
    return [Endpoint("", each.host, each.port) for each in response.node_endpoints if each.node_id == leader_id]


def fetched(raft: Raft, partition: PartitionData) -> None:
    """The leader has answered a fetch."""
    raft.heard_leader()
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging is not None and diverging.epoch >= 0:
        raft.cut(EpochEnd(diverging.epoch, diverging.end_offset))
        return
    if snapshot is not None and snapshot.end_offset >= 0:
        raft.begin_snapshot(SnapshotId(snapshot.end_offset, snapshot.epoch))
        return
    raft.leaders_watermark = max(raft.leaders_watermark, partition.high_watermark)
    if partition.records is not None and len(partition.records):
        raft.writing = True
        raft.do(Append(partition.records, raft.epoch))
    else:
        raft.commit(min(raft.leaders_watermark, raft.log.end))


def piece_came(raft: Raft, piece: PartitionSnapshot) -> None:
    """A piece of the snapshot that is being fetched, or that it is not there any more."""
    raft.heard_leader()
    wanted = raft.fetching
    assert wanted is not None
    data = piece.unaligned_records
    position = wanted.position + len(data)
    last = position >= piece.size
    if piece.error_code or piece.position != wanted.position or not (len(data) or last):
        raft.fetching = None
        return
    raft.fetching = None if last else wanted._replace(position=position)
    raft.writing = last
    raft.do(KeepPiece(wanted.snapshot, wanted.position, data, last))
