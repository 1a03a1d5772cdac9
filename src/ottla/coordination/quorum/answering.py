"""What a replica answers to those who ask it, in the order of Kafka's checks. Whatever an answer promises is wished for before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordination.quorum import membership, wire
from ottla.coordination.quorum.events import Answer, AnswerPiece, AnswerRecords, Tell
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.state import State
from ottla.coordination.quorum.voters import ReplicaKey
from ottla.coordination.quorum.voters_record import Endpoint
from ottla.coordination.quorum.waiting import WaitingFetch
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.protocol.messages.end_quorum_epoch import RequestPartitionData as EndData
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from ottla.protocol.messages.vote import RequestPartitionData as VoteData
from ottla.protocol.messages.vote import VoteRequest
from ottla.protocol.schema import ZERO_UUID, Message

if TYPE_CHECKING:
    from ottla.coordination.quorum.raft import Raft

OfVoters = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
LONGEST_ID = 22
"""How long a cluster's id is in base64; a stranger's is not told any further."""
Request = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest | FetchSnapshotRequest


def answer(raft: Raft, ticket: int, request: Message) -> None:
    """Answer it now, or keep it."""
    if isinstance(request, OfVoters):
        membership.change_voters(raft, ticket, request)
        return
    assert isinstance(request, Request)
    if request.cluster_id not in (None, raft.cluster_id):
        raft.do(Tell(of_another_cluster(raft, request)))
        raft.do(Answer(ticket, wire.whole_refusal(request, ErrorCode.INCONSISTENT_CLUSTER_ID)))
        return
    partition = wire.only(request)
    if partition is None:
        raft.do(Answer(ticket, wire.whole_refusal(request, ErrorCode.INVALID_REQUEST)))
        return
    match request:
        case VoteRequest():
            code, granted = vote(raft, request, partition)
            raft.do(Answer(ticket, raft.told.vote(code, granted=granted)))
        case BeginQuorumEpochRequest():
            code = begin(raft, request)
            raft.do(Answer(ticket, raft.told.begin(code)))
        case EndQuorumEpochRequest():
            code = end(raft, request, partition)
            raft.do(Answer(ticket, raft.told.end(code)))
        case FetchRequest():
            fetch(raft, ticket, request, partition)
        case FetchSnapshotRequest():
            fetch_snapshot(raft, ticket, request)


def of_another_cluster(raft: Raft, request: Request) -> str:
    """What to say of who was refused."""
    number, other = wire.asker(request), (request.cluster_id or "")[:LONGEST_ID]
    who = f"node {number}" if number >= 0 else "somebody"
    return (
        f"{who} of another cluster ({other!r}) asks this node, which is of {raft.cluster_id}: look at its "
        "meta.properties, and at the addresses of controllers in its settings"
    )


# votes


def vote(raft: Raft, request: VoteRequest, asked: VoteData) -> tuple[int, bool]:
    """An error and whether the vote is granted."""
    illegal = asked.last_offset_epoch >= asked.replica_epoch + asked.pre_vote
    if illegal or asked.last_offset < 0 or asked.last_offset_epoch < 0:
        return ErrorCode.INVALID_REQUEST, False
    if (code := refusal(raft, asked.replica_id, asked.replica_epoch)) is not None:
        return code, False
    if asked.replica_epoch > raft.epoch:
        raft.become_unattached(asked.replica_epoch)
    if not is_me(raft, request.voter_id, asked.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY, False
    who = ReplicaKey(asked.replica_id, asked.replica_directory_id)
    up_to_date = position_of(asked.last_offset_epoch, asked.last_offset) >= raft.log.position
    if asked.pre_vote:
        return ErrorCode.NONE, up_to_date and would_vote(raft)
    granted = may_vote(raft, who, up_to_date=up_to_date)
    if granted:
        raft.vote_for(who)
    return ErrorCode.NONE, granted


def position_of(epoch: int, end: int) -> tuple[int, int]:
    """By which logs are compared, as `LogShape.position`."""
    return epoch, end


def would_vote(raft: Raft) -> bool:
    """Whether it knows of no leader who lives: a follower whom its leader has answered does (KIP-996)."""
    return raft.state is not State.LEADER and not (raft.state is State.FOLLOWER and raft.has_fetched)


def may_vote(raft: Raft, who: ReplicaKey, *, up_to_date: bool) -> bool:
    """Whether a vote for it breaks no promise."""
    if raft.state not in (State.UNATTACHED, State.PROSPECTIVE):
        return False
    if raft.voted is not None:
        return raft.voted.is_same(who)
    return raft.leader_id is None and up_to_date


def refusal(raft: Raft, node: int, epoch: int) -> int | None:
    """Why one voter does not hear another; None where it does."""
    if epoch < raft.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if node < 0 else None


def is_me(raft: Raft, id_: int, directory_id: object) -> bool:
    """Whether this replica is meant; older versions do not say who."""
    return id_ in (-1, raft.me.id) and directory_id in (ZERO_UUID, raft.me.directory_id)


# leaders that come and go


def begin(raft: Raft, request: BeginQuorumEpochRequest) -> int:
    """Somebody was elected, and is followed from now on."""
    told = request.topics[0].partitions[0]
    if (code := refusal(raft, told.leader_id, told.leader_epoch)) is not None:
        return code
    endpoints = [Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints]
    raft.learn(told.leader_id, told.leader_epoch, endpoints)
    if not is_me(raft, request.voter_id, told.voter_directory_id):
        return ErrorCode.INVALID_VOTER_KEY
    return ErrorCode.NONE


def end(raft: Raft, request: EndQuorumEpochRequest, told: EndData) -> int:
    """The leader goes: whom it would have next begins at once, the others later, one after the other."""
    if (code := refusal(raft, told.leader_id, told.leader_epoch)) is not None:
        return code
    endpoints = [Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints]
    raft.learn(told.leader_id, told.leader_epoch, endpoints)
    if raft.state is State.FOLLOWER and raft.leader_id == told.leader_id:
        raft.deadline = raft.now + successor_backoff(raft, told)
        raft.has_fetched = False  # whoever asks whether there is a leader hears of none any more
    return ErrorCode.NONE


def successor_backoff(raft: Raft, told: EndData) -> float:
    """How long to wait before the election, in seconds."""
    candidates = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in told.preferred_candidates]
    candidates = candidates or [ReplicaKey(id_) for id_ in told.preferred_successors]
    place = next((place for place, key in enumerate(candidates) if key.is_same(raft.me)), len(candidates))
    longest = raft.config.election_backoff_max_ms / 1000
    if place == 0 and candidates:
        return 0.0
    return longest if place >= len(candidates) else longest / 2.0 ** (len(candidates) - 1 - place)


# the log


def leaders_refusal(raft: Raft, epoch: int) -> int | None:
    """Why this one does not answer as the leader of that epoch; None where it does."""
    if epoch < raft.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > raft.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if raft.state is not State.LEADER:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if raft.leaving else None


def fetch(raft: Raft, ticket: int, request: FetchRequest, asked: FetchPartition) -> None:
    """Answer a fetch, or keep it until there is something to say."""
    offset, epoch, leader_epoch = asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch
    if request.max_wait_ms < 0 or offset < 0 or not 0 <= epoch <= leader_epoch:
        raft.do(Answer(ticket, raft.told.fetch(ErrorCode.INVALID_REQUEST)))
        return
    if raft.state is State.LEADER and leader_epoch == raft.epoch and is_part_of(raft.log, offset, epoch):
        note_fetch(raft, request, offset)
    if not answer_fetch(raft, ticket, request):
        raft.waiting.append(WaitingFetch(ticket, request, raft.now + request.max_wait_ms / 1000))


def is_part_of(log: LogShape, offset: int, epoch: int) -> bool:
    """Whether who ends there has a part of this log, and nothing else."""
    return not log.needs_snapshot(offset, epoch) and log.parting(offset, epoch) is None


def answer_fetch(raft: Raft, ticket: int, request: FetchRequest, *, patient: bool = True) -> bool:
    """Whether it was answered; what finds nothing waits, where it has time for that."""
    asked = request.topics[0].partitions[0]
    offset, epoch, told, log = asked.fetch_offset, asked.last_fetched_epoch, raft.told, raft.log
    if (code := leaders_refusal(raft, asked.current_leader_epoch)) is not None:
        raft.do(Answer(ticket, told.fetch(code)))
        return True
    if log.needs_snapshot(offset, epoch):
        raft.do(Answer(ticket, told.fetch(0, raft.high_watermark, log.start, snapshot=log.snapshot)))
        return True
    if (parting := log.parting(offset, epoch)) is not None:
        raft.do(Answer(ticket, told.fetch(0, raft.high_watermark, log.start, diverging=parting)))
        return True
    # Who does not tell how much it knows to be committed says the greatest number there is.
    tells_more = asked.high_watermark < min(raft.high_watermark, log.end)
    if patient and offset >= log.end and request.max_wait_ms and not tells_more:
        return False
    response = told.fetch(0, raft.high_watermark, log.start)
    raft.do(
        AnswerRecords(ticket, response, offset, request.max_bytes) if offset < log.end else Answer(ticket, response)
    )
    return True


def note_fetch(raft: Raft, request: FetchRequest, offset: int) -> None:
    """Whoever fetches has all before on the disk."""
    assert raft.leadership is not None
    id_ = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
    key = ReplicaKey(id_, request.topics[0].partitions[0].replica_directory_id)
    if id_ >= 0 and id_ != raft.me.id:
        raft.leadership.fetched(raft.voters.known(key), offset, raft.log.end, raft.voters, raft.now)
        raft.look_at_progress()


def look_at_waiting(raft: Raft) -> None:
    """Answer the fetches for which there is something by now, or whose time is over."""
    waiting, raft.waiting = raft.waiting, []
    for each in waiting:
        if not answer_fetch(raft, each.ticket, each.request, patient=raft.now < each.deadline):
            raft.waiting.append(each)


def fetch_snapshot(raft: Raft, ticket: int, request: FetchSnapshotRequest) -> None:
    """A piece of a snapshot; whether there is such a one, whoever has the files knows."""
    asked = request.topics[0].partitions[0]
    wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    code = leaders_refusal(raft, asked.current_leader_epoch)
    if code is None and asked.position < 0:
        code = ErrorCode.POSITION_OUT_OF_RANGE
    response = raft.told.snapshot(code or 0, wanted, asked.position)
    if code is not None:
        raft.do(Answer(ticket, response))
        return
    assert raft.leadership is not None
    if request.replica_id >= 0 and request.replica_id != raft.me.id:
        key = ReplicaKey(request.replica_id, asked.replica_directory_id)
        raft.leadership.heard(raft.voters.known(key), raft.voters, raft.now)
    raft.do(AnswerPiece(ticket, response, wanted, asked.position, request.max_bytes))
