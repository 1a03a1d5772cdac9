"""Requests that change the voters (KIP-853): their validation, the changed set of voters, and their responses.

The functions are pure. `Raft` decides when a change may start, and appends it to the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import CurrentLeader, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import KRaftVersionFeature as SupportedKRaftVersions
from ottla.protocol.schema import Message

VoterRequest = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
VoterResponse = AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse
FEATURE = "kraft.version"
"""The feature of which the level decides how voters are stored; they can be changed from level 1 on."""


class OwnEntry(NamedTuple):
    """The correct entry of this replica in the VotersRecord, according to its settings."""

    endpoints: tuple[Endpoint, ...] = ()
    """The addresses of this replica. If they are unknown the tuple is empty, and the replica does not correct its entry."""
    kraft_versions: tuple[int, int] = (0, 1)
    auto_join: bool = False
    """True if the replica requests to be added as a voter without a command of an operator (KIP-1186)."""

    def listeners(self) -> list[Listener]:
        return [Listener(each.name, each.host, each.port) for each in self.endpoints]

    def differs_from(self, entry: Voter) -> bool:
        """Return True if an entry has other addresses or versions than this one. Order and case of the listener names are ignored."""
        feature = entry.k_raft_version_feature
        versions = feature.min_supported_version, feature.max_supported_version
        return (comparable(entry.endpoints), versions) != (comparable(self.endpoints), self.kraft_versions)


UNKNOWN_ENTRY = OwnEntry()


def comparable(endpoints: Iterable[Endpoint]) -> frozenset[tuple[str, str, int]]:
    return frozenset((each.name.upper(), each.host, each.port) for each in endpoints)


class VoterChange(NamedTuple):
    """A change of the voters in progress."""

    ticket: int | None
    """The ticket of the request (`RequestReceived`); None if the leader corrects its own entry."""
    request: VoterRequest
    deadline: float
    previous_voters_end: int | None = None
    """`LogShape.voters_end` before the change was appended.

    None if it is not appended yet, because the new voter has not sent its ApiVersions response.
    """


class Rejection(NamedTuple):
    """The error code and message with which a request is rejected; the voters do not change."""

    code: int
    message: str


def endpoints_of(listeners: Sequence[Listener]) -> list[Endpoint]:
    return [Endpoint(each.name, each.host, each.port) for each in listeners]


def changed_voters(voters: VoterSet, request: RemoveRaftVoterRequest | UpdateRaftVoterRequest) -> VoterSet | Rejection:
    """Return the voters after a removal or an update."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    is_last = isinstance(request, RemoveRaftVoterRequest) and len(voters) == 1
    if not voters.has(key) or is_last:
        or_alone = ", or it is the only voter" if isinstance(request, RemoveRaftVoterRequest) else ""
        return Rejection(ErrorCode.VOTER_NOT_FOUND, f"node {key} is not a voter with that directory{or_alone}")
    if isinstance(request, RemoveRaftVoterRequest):
        return voters.without(key.id)
    feature = request.k_raft_version_feature
    versions = KRaftVersionFeature(feature.min_supported_version, feature.max_supported_version)
    return voters.with_voter(Voter(*key, endpoints_of(request.listeners), versions))


def added_voter(request: AddRaftVoterRequest, response: ApiVersionsResponse, kraft_version: int) -> Voter | Rejection:
    """Return the entry of a new voter, given its ApiVersions response."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    feature = next((each for each in response.supported_features if each.name == FEATURE), None)
    if feature is None or not feature.min_version <= kraft_version <= feature.max_version:
        supported = "no level" if feature is None else f"levels {feature.min_version} to {feature.max_version}"
        return Rejection(
            ErrorCode.INVALID_REQUEST,
            f"node {key} supports {supported} of {FEATURE}, and the quorum runs level {kraft_version}: "
            "run another release on that node",
        )
    versions = KRaftVersionFeature(feature.min_version, feature.max_version)
    return Voter(*key, endpoints_of(request.listeners), versions)


def missing_listener(request: VoterRequest, own: OwnEntry) -> Rejection | None:
    """Return a rejection if a new voter does not have the listener over which the voters connect to each other.

    This is the leader's first listener. The check is skipped if the leader does not know its own addresses.
    """
    required = [each.name for each in own.endpoints[:1]]
    if not isinstance(request, AddRaftVoterRequest) or not required:
        return None
    given = [each.name for each in request.listeners]
    if required[0].upper() in map(str.upper, given):
        return None
    return Rejection(
        ErrorCode.INVALID_REQUEST,
        f"node {request.voter_id} has the listeners {', '.join(given) or '(none)'}, and voters reach each other by "
        f"{required[0]}: name that listener of the node as well",
    )


def update_of(cluster_id: str, epoch: int, me: ReplicaKey, own: OwnEntry) -> UpdateRaftVoterRequest:
    """Return the request that corrects a voter's own entry."""
    return UpdateRaftVoterRequest(cluster_id, epoch, *me, own.listeners(), SupportedKRaftVersions(*own.kraft_versions))


def response_to(request: VoterRequest, rejection: Rejection | None, leader: CurrentLeader) -> Message:
    """Return the response to a change of the voters. `rejection` is None if the change has succeeded."""
    code, message = rejection or (ErrorCode.NONE, None)
    match request:
        case AddRaftVoterRequest():
            return AddRaftVoterResponse(0, code, message)
        case RemoveRaftVoterRequest():
            return RemoveRaftVoterResponse(0, code, message)
    return UpdateRaftVoterResponse(0, code, leader)
