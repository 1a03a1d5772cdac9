"""Who votes changes by one at a time (KIP-853): a record in the log says who votes from there on, committed or not.

Two majorities have a voter in common only if the sets differ by one. So the leader begins no change before the last one is committed, and none
before a record of its own epoch is: the change of a leader before it may still come to light. Who is to vote has said before, where the
others would ask it, by which rules it can; and it has copied the log, or the quorum would wait for it. A leader that takes itself out leads
until that is committed, without its own disk being counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.coordination.quorum.events import Answer, AppendControl
from ottla.coordination.quorum.state import State
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import CurrentLeader, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.protocol.schema import ZERO_UUID, Message

if TYPE_CHECKING:
    from ottla.coordination.quorum.raft import Raft

Request = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
FEATURE = "kraft.version"
"""The rules that the voters go by; those with which they change are level 1."""
CAUGHT_UP_SPAN = 3600.0
"""Seconds for which it counts that a replica had all; what it lacks since then it fetches like any voter."""


class Change(NamedTuple):
    """A set of voters that is on its way into the log, and who waits for it: nobody, where the leader itself wants it."""

    ticket: int | None
    request: Request
    deadline: float
    voters_end: int | None = None
    """Of the set before, behind which its own record ends; None as long as the new voter is asked what it can."""


class Refusal(NamedTuple):
    code: int
    sentence: str


def change_voters(raft: Raft, ticket: int | None, request: Request) -> None:
    """Append another set of voters, and answer once it is committed, or refuse; who is to come is asked first."""
    refused = refusal(raft, request)
    if refused is None:
        if isinstance(request, AddRaftVoterRequest):
            refused = ask_newcomer(raft, ticket, request)
        else:
            refused = change_at_once(raft, ticket, request)
    if refused is not None:
        tell(raft, ticket, request, refused)


def append(raft: Raft, change: Change, voters: VoterSet) -> None:
    raft.change = change._replace(voters_end=raft.log.voters_end)
    assert raft.leadership is not None
    raft.leadership.let_others_vote(raft.voters, raft.now)
    raft.do(AppendControl(raft.epoch, (voters.record(),)))


def refusal(raft: Raft, request: Request) -> Refusal | None:
    """Why nothing is changed now, in the order of Kafka's checks."""
    if request.cluster_id not in (None, raft.cluster_id):
        return Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {raft.cluster_id}")
    if raft.state is not State.LEADER:
        return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"node {raft.me} does not lead the quorum; ask who does")
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return Refusal(ErrorCode.INVALID_REQUEST, "a voter is a node and a directory: both must be told")
    return without_a_place(raft, request) or reason_to_wait(raft)


def without_a_place(raft: Raft, request: Request) -> Refusal | None:
    """That the others could not ask a new voter for its vote; nothing is known of that where this one does not know its own place."""
    wanted = [each.name for each in raft.presence.endpoints[:1]]
    if not isinstance(request, AddRaftVoterRequest) or not wanted:
        return None
    told = [each.name for each in request.listeners]
    if wanted[0].upper() in map(str.upper, told):
        return None
    return Refusal(
        ErrorCode.INVALID_REQUEST,
        f"node {request.voter_id} is told to listen as {', '.join(told) or 'nothing'}, and voters ask each other by {wanted[0]}: name "
        "that listener of it, too",
    )


def reason_to_wait(raft: Raft) -> Refusal | None:
    """Why a leader changes nothing before something else is over."""
    if raft.change is not None:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way; try again")
    if not raft.has_committed:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, "the leader was just elected and has committed nothing; try again")
    if raft.log.kraft_version < 1:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, "voters are fixed at kraft.version 0; upgrade that feature to 1")
    if raft.log.voters_end > raft.high_watermark:
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet; try again")
    return None


def change_at_once(
    raft: Raft, ticket: int | None, request: RemoveRaftVoterRequest | UpdateRaftVoterRequest
) -> Refusal | None:
    voters = other_voters(raft, request)
    if isinstance(voters, Refusal):
        return voters
    append(raft, Change(ticket, request, raft.now + raft.config.request_timeout_ms / 1000), voters)
    return None


def other_voters(raft: Raft, request: RemoveRaftVoterRequest | UpdateRaftVoterRequest) -> VoterSet | Refusal:
    """Who is to vote where nobody comes, or why that cannot be."""
    key, voters = ReplicaKey(request.voter_id, request.voter_directory_id), raft.voters
    is_last = isinstance(request, RemoveRaftVoterRequest) and len(voters) == 1
    if not voters.has(key) or is_last:
        alone = ", or votes alone" * isinstance(request, RemoveRaftVoterRequest)
        return Refusal(ErrorCode.VOTER_NOT_FOUND, f"node {key} does not vote with that directory{alone}")
    if isinstance(request, RemoveRaftVoterRequest):
        return voters.without(key.id)
    feature = request.k_raft_version_feature
    known = KRaftVersionFeature(feature.min_supported_version, feature.max_supported_version)
    return voters.with_voter(Voter(*key, endpoints(request.listeners), known))


# who comes


def ask_newcomer(raft: Raft, ticket: int | None, request: AddRaftVoterRequest) -> Refusal | None:
    """Ask it where the others would what it can, or say why not."""
    node = request.voter_id
    if node in raft.voters.ids:
        key = ReplicaKey(node, request.voter_directory_id)
        return Refusal(ErrorCode.DUPLICATE_VOTER, f"node {key} votes already; remove its old directory first")
    if not raft.peers.is_ready(node, raft.now):
        return Refusal(ErrorCode.REQUEST_TIMED_OUT, f"node {node} was asked just now and did not answer; try again")
    raft.change = Change(ticket, request, raft.now + request.timeout_ms / 1000)
    raft.send(node, ApiVersionsRequest("ottla", "0"))  # Kafka's refuse who has no name
    return None


def newcomer(raft: Raft) -> AddRaftVoterRequest | None:
    """How somebody is to vote who is asked just now what it can."""
    change = raft.change
    if change is None or change.voters_end is not None or not isinstance(change.request, AddRaftVoterRequest):
        return None
    return change.request


def newcomer_lost(raft: Raft, node: int, code: int = ErrorCode.NETWORK_EXCEPTION) -> None:
    """A node does not say what it can."""
    asked = newcomer(raft)
    if asked is not None and asked.voter_id == node:
        places = ", ".join(f"{each.host}:{each.port}" for each in asked.listeners) or "nowhere"
        sentence = (
            f"node {node}, which is told to be at {places}, does not say what it can ({name_of(code)}); is it there?"
        )
        finish(raft, Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence))


def newcomer_answered(raft: Raft, node: int, response: ApiVersionsResponse) -> None:
    """Have it vote if it can, and has the log."""
    asked, change = newcomer(raft), raft.change
    if asked is None or change is None or asked.voter_id != node:
        return
    if response.error_code:
        newcomer_lost(raft, node, response.error_code)
        return
    key, level = ReplicaKey(node, asked.voter_directory_id), raft.log.kraft_version
    told = next((each for each in response.supported_features if each.name == FEATURE), None)
    if told is None or not told.min_version <= level <= told.max_version:
        known = "none" if told is None else f"{told.min_version} to {told.max_version}"
        sentence = f"node {key} knows of {FEATURE} {known}, and the voters go by {level}: run another release of it"
        finish(raft, Refusal(ErrorCode.INVALID_REQUEST, sentence))
    elif not is_caught_up(raft, key):
        sentence = f"node {key} has not copied the log yet; try again when it has"
        finish(raft, Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence))
    else:
        known_versions = KRaftVersionFeature(told.min_version, told.max_version)
        append(raft, change, raft.voters.with_voter(Voter(*key, endpoints(asked.listeners), known_versions)))


def endpoints(listeners: Sequence[Listener]) -> list[Endpoint]:
    return [Endpoint(each.name, each.host, each.port) for each in listeners]


def is_caught_up(raft: Raft, key: ReplicaKey) -> bool:
    """Whether a replica without a vote has the log."""
    assert raft.leadership is not None
    known = raft.leadership.replicas.get(key)
    return known is not None and known.caught_up_at > raft.now - CAUGHT_UP_SPAN


def look_at_change(raft: Raft) -> None:
    """Answer for the change that is under way, if it is there, or its time is over."""
    change, log = raft.change, raft.log
    if change is None:
        return
    is_written = change.voters_end is not None and log.voters_end > change.voters_end
    # A voter that is elsewhere now fetches nothing while it waits, and its own fetch may be what the commit waits for.
    early = isinstance(change.request, UpdateRaftVoterRequest) or (
        isinstance(change.request, AddRaftVoterRequest) and not change.request.ack_when_committed
    )
    if is_written and (early or log.voters_end <= raft.high_watermark):
        finish(raft, None)
    elif raft.now >= change.deadline:
        if change.voters_end is None:
            newcomer_lost(raft, change.request.voter_id, ErrorCode.REQUEST_TIMED_OUT)
            return
        sentence = "the voters have not committed the change yet, and may still"
        finish(raft, Refusal(ErrorCode.REQUEST_TIMED_OUT, sentence))


def finish(raft: Raft, refused: Refusal | None) -> None:
    """Nobody waits for the change any more."""
    change, raft.change = raft.change, None
    if change is not None:
        tell(raft, change.ticket, change.request, refused)


def tell(raft: Raft, ticket: int | None, request: Message, refused: Refusal | None) -> None:
    if ticket is not None:
        raft.do(Answer(ticket, response_to(raft, request, refused)))


def response_to(raft: Raft, request: Message, refused: Refusal | None) -> Message:
    code, sentence = refused or (ErrorCode.NONE, None)
    match request:
        case AddRaftVoterRequest():
            return AddRaftVoterResponse(0, code, sentence)
        case RemoveRaftVoterRequest():
            return RemoveRaftVoterResponse(0, code, sentence)
    where: list[Any] = raft.told.endpoints
    _, host, port = where[0] if where else (0, "", 0)
    return UpdateRaftVoterResponse(0, code, CurrentLeader(raft.told.leader_id, raft.epoch, host, port))
