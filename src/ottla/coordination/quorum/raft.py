"""A controller's replica of the metadata log: a voter of the quorum, or an observer that may become one.

KIP-595, KIP-630, KIP-853, KIP-996, KIP-1186. The replica is a pure state machine: it has no clock, no network and no log of its
own. `Raft.step` takes an event and returns actions (module `events`). The driver carries out the actions in their order and
reports the results as further events. The module `state` has the diagram of the states.

**Elections.** An epoch has at most one leader: a leader needs the votes of a majority, and a replica votes once per epoch. An
elected leader has every committed record, because a replica votes only for a candidate of which the log is at least as up to date
as its own: the epochs of the last records are compared, then the end offsets. An election has these steps:

1. A voter waits for a leader. A FOLLOWER waits for a fetch timeout after each response of the leader, an UNATTACHED replica for an
   election timeout. The wait is shorter after the leader has resigned or its process has ended. Then the voter becomes PROSPECTIVE.
2. PROSPECTIVE requests pre-votes of the other voters. A pre-vote is no promise: nothing is persisted, and the epoch stays the same.
   A leader grants no pre-vote, nor does a follower that receives responses of its leader. Therefore a replica that returns from a
   network partition does not disturb a working quorum. Without a majority the voter returns to FOLLOWER or UNATTACHED.
3. With pre-votes of a majority, or if a voter does not support pre-votes, it becomes CANDIDATE: it increases the epoch by 1,
   persists its vote for itself, and requests votes. If no majority grants them within an election timeout, it becomes PROSPECTIVE
   again. The timeout has a random part, so that candidates that took votes from each other do not try again at the same time.
4. A replica that receives a request of a later epoch enters that epoch first. It votes while it is UNATTACHED or PROSPECTIVE, knows
   no leader of the epoch, and has not voted for another candidate in it. The vote is persisted before the response is sent. The two
   do not have to be voters in each other's log, because the log of either may be out of date.
5. With votes of a majority the candidate becomes LEADER and persists that. It appends a LeaderChangeMessage, followed by the voters
   if the log does not have them yet, and sends BeginQuorumEpoch to the other voters. It commits nothing before that record.

**Resignation.** A leader resigns if its process shuts down, if a majority of the voters has not fetched for too long, if its own
removal from the voters is committed, or if another voter can be the active controller and it cannot. It becomes RESIGNED and
sends EndQuorumEpoch until every other voter has confirmed it. The request lists the preferred successors. The first successor
becomes PROSPECTIVE at once, the others after a wait that increases with their place. After an election timeout without a new
leader the resigned replica enters the next epoch as UNATTACHED. A leader that restarts does the same, without successors.

**Finding the leader.** Every response names the epoch and the leader that its sender knows. A replica without a leader sends its
fetches to the voters in turn, or to the bootstrap controllers if its log lists no voters, until a response names the leader. An
observer waits without a time limit and starts no election. The module `observer` does the same for brokers.

**Replication.** The other replicas fetch from the leader. The offset of a fetch confirms that the replica has flushed every record
before that offset. A replica with a diverging log truncates it. A replica that needs deleted records fetches a snapshot. The module
`leadership` defines which records are committed.

**Changes of the voters.** A VotersRecord takes effect when it is appended, before it is committed. A majority of the old voters and
one of the new voters are certain to overlap only if the two sets differ by at most one voter. Therefore the leader starts a change
only after the previous change is committed. It also waits until a record of its own epoch is committed, because until then it
cannot know whether the change of an earlier leader is committed. A new voter must support the quorum's kraft.version and must have
copied the log. A leader that removes itself leads until the removal is committed, but its own disk does not count for the majority.
A voter with wrong addresses in the VotersRecord sends UpdateRaftVoter to the leader; a leader corrects its own entry.

**Calling it.** At most one request per node is in flight. `Raft.wake_at` is the time at which the driver has to send a `Tick`. While
`Raft.state` is LEADER, the active controller appends its records in `Raft.epoch`, and the driver reports `LogChanged`. A record is
committed only when `AdvanceHighWatermark` includes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.control_records import ControlRecord, KRaftVersionRecord, LeaderChangeMessage
from ottla.coordination.quorum.control_records import Voter as ControlVoter
from ottla.coordination.quorum.events import (
    Action,
    AdvanceHighWatermark,
    AppendControlRecords,
    AppendFetched,
    Event,
    Halt,
    LeaderChanged,
    LogChanged,
    PeerConnected,
    PersistElectionState,
    ReportProblem,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SendRecords,
    SendRequest,
    SendResponse,
    SendSnapshotChunk,
    ShutDown,
    TruncateLog,
    WriteSnapshotChunk,
)
from ottla.coordination.quorum.leadership import LeaderState
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.request_tracker import RequestTracker
from ottla.coordination.quorum.state import TRANSITIONS, ElectionState, State
from ottla.coordination.quorum.voter_changes import (
    UNKNOWN_ENTRY,
    OwnEntry,
    Rejection,
    VoterChange,
    VoterRequest,
    VoterResponse,
    added_voter,
    changed_voters,
    endpoints_of,
    missing_listener,
    response_to,
    update_of,
)
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint
from ottla.coordination.replication.epochs import EpochEnd
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.protocol.messages.end_quorum_epoch import RequestPartitionData as EndData
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse, PartitionSnapshot
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.update_raft_voter import CurrentLeader, UpdateRaftVoterRequest
from ottla.protocol.messages.vote import RequestPartitionData as VoteData
from ottla.protocol.messages.vote import VoteRequest, VoteResponse
from ottla.protocol.schema import ZERO_UUID, Message

NEVER = float("inf")
LEADER_CHANGE_VERSION = 0
"""The version of LeaderChangeMessage. Apache Kafka 4.3 reads only version 0, and its controllers stop at any other."""
LOST_LEADER_DIVISOR = 4
"""A follower waits at most an election timeout divided by this number after the process of its leader has ended."""
MAX_ELECTION_TIMEOUT_MS = 4000
"""Failed elections increase the election timeout up to this value. A configured timeout that is greater is not changed."""
CAUGHT_UP_SECONDS = 3600.0
"""A new voter must have reached the end of the leader's log at some time within the last hour.

It fetches later records like any other voter.
"""
CLUSTER_ID_LENGTH = 22
"""The length of a cluster id in base64. The id of another cluster is logged up to this length."""
CLIENT_NAME = "ottla"
"""The client software name in ApiVersions; Apache Kafka rejects a request without one."""
IDLE_STATES = (State.UNATTACHED, State.FOLLOWER, State.RESIGNED)
SNAPSHOT_REPLACED = frozenset((ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE))
"""Errors of FetchSnapshot after the leader has deleted the snapshot. The response to the next fetch names a newer one."""
ReplicaRequest = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest | FetchSnapshotRequest


class HeldFetch(NamedTuple):
    """A fetch to which the leader responds when there are records or a new high watermark, or at the deadline."""

    ticket: int
    request: FetchRequest
    deadline: float


class SnapshotFetch(NamedTuple):
    """A snapshot that is being fetched, and the position of its next chunk."""

    snapshot: SnapshotId
    position: int


class Election:
    """The votes of one election, or the pre-votes before it."""

    def __init__(self, voters: VoterSet) -> None:
        self._voters = voters
        self.granted: set[int] = set()
        self._rejected: set[int] = set()
        self._ended: set[int] = set()

    def record_vote(self, voter: int, *, granted: bool) -> None:
        """Count a vote. The last vote of a voter counts; votes of other nodes are ignored."""
        if voter in self._voters.ids:
            (self.granted if granted else self._rejected).add(voter)
            (self._rejected if granted else self.granted).discard(voter)

    def record_ended(self, voter: int) -> None:
        """Record that the process of a voter has ended."""
        self._ended.add(voter)

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self._voters.majority

    @property
    def is_lost(self) -> bool:
        """True if so many voters have rejected that the others are no majority."""
        return len(self._voters) - len(self._rejected) < self._voters.majority

    @property
    def is_majority_alive(self) -> bool:
        """True if a majority of the voters has not been found to be stopped."""
        return len(self._voters) - len(self._ended) >= self._voters.majority

    @property
    def undecided(self) -> list[ReplicaKey]:
        """The voters that have not voted yet."""
        voted = self.granted | self._rejected
        return [key for key in self._voters.keys if key.id not in voted]


class Raft:
    """The state machine of one replica; the text at the start of this module explains it."""

    def __init__(
        self,
        me: ReplicaKey,
        cluster_id: str,
        log: LogShape,
        saved: ElectionState | None,
        config: QuorumConfig,
        now: float,
        chance: float,
        bootstrap: Sequence[int] = (),
        *,
        can_be_controller: bool = False,
        own_entry: OwnEntry = UNKNOWN_ENTRY,
    ) -> None:
        """Start as an unattached node. `saved` is the persisted election state. `bootstrap` are the nodes to fetch from if the log lists no voters.

        `can_be_controller` is True if this node can be the active controller while it leads the quorum. `chance` is a random
        number of [0, 1). `now` is a reading of a monotonic clock in seconds.
        """
        self.me = me
        self.cluster_id = cluster_id
        self.own_entry = own_entry
        self.can_be_controller = can_be_controller
        self.bootstrap = bootstrap
        self._config = config
        self._now, self._chance = now, chance
        self._actions: list[Action] = []
        # Position in the quorum.
        self.state = State.UNATTACHED
        self.epoch, self.leader_id, self._voted = ElectionState()
        self._leader_endpoints: list[Endpoint] = []  # used if the leader is no voter in this replica's log
        self._deadline = NEVER  # the time at which the state times out (`_apply_deadline`)
        self._failed_elections = 0  # consecutive elections that timed out although a majority may be running
        self._is_shutting_down = False
        # The log.
        self.log = log
        self.high_watermark = log.snapshot.end_offset
        self._is_writing = False  # from an action that changes the log until `LogChanged` reports its new end
        self._leader_high_watermark = -1
        # Other nodes.
        self._requests = RequestTracker(config)
        self._next_node = 0
        self._avoids_leader = False  # True if the leader did not respond: the next fetch is sent to another node
        self._can_be_controller: dict[int, bool] = {}  # by node id; `PeerConnected` has reported these nodes
        self._foreign_nodes: set[int] = set()  # nodes that belong to another cluster according to their last response
        # FOLLOWER.
        self._has_leader_answered = False  # True after a response to a fetch in this epoch
        self._snapshot_fetch: SnapshotFetch | None = None
        self._update_entry_at = (
            now  # the earliest time to send the next request that corrects, adds or removes this replica's entry
        )
        # PROSPECTIVE and CANDIDATE.
        self._election: Election | None = None
        # LEADER.
        self._leadership: LeaderState | None = None
        self._has_committed = False  # True after a record of this leader's epoch was committed
        self._held_fetches: list[HeldFetch] = []
        self._voter_change: VoterChange | None = None
        # RESIGNED.
        self._successors: Sequence[ReplicaKey] = ()
        self._unnotified: set[int] = set()  # voters that have not confirmed EndQuorumEpoch
        self._resume(saved or ElectionState())

    # --- What the driver uses ------------------------------------------------------------------------------------

    def step(self, event: Event, now: float, chance: float) -> list[Action]:
        """Return the actions that follow from an event, in order. `chance` is a new random number of [0, 1) each time."""
        self._now, self._chance = now, chance
        self._handle(event)
        for node in self._requests.expire(now):
            self._handle_failure(node)
        self._tick()
        actions, self._actions = self._actions, []
        return actions

    def _handle(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._handle_request(event.ticket, event.request)
            case ResponseReceived():
                self._can_be_controller.setdefault(event.by, False)
                if self._requests.finish_request(event.by, event.number):
                    self._handle_response(event.by, event.response)
            case RequestFailed():
                if self._requests.finish_request(event.by, event.number):
                    self._handle_failure(event.by)
                    self._record_ended(event)
            case PeerConnected():
                self._can_be_controller[event.node] = event.can_be_controller
            case LogChanged():
                self._handle_log_change(event.shape)
            case ShutDown():
                self._is_shutting_down = True
                if self.state is State.PROSPECTIVE:
                    self._withdraw()

    @property
    def wake_at(self) -> float:
        """The next moment at which a `Tick` changes something."""
        moments = [self._requests.wake_at(self._now), *(fetch.deadline for fetch in self._held_fetches)]
        if not self._is_shutting_down and not self._is_writing:
            moments.append(self._deadline)
        if self._voter_change is not None:
            moments.append(self._voter_change.deadline)
        if self._leadership is not None and len(self.voters) > 1:
            moments += [self._leadership.announce_at, self._leadership.check_at]
        return min(moments)

    @property
    def now(self) -> float:
        """The monotonic time of the last step."""
        return self._now

    @property
    def voters(self) -> VoterSet:
        return self.log.voters

    @property
    def is_voter(self) -> bool:
        return self.voters.has(self.me)

    @property
    def leadership(self) -> LeaderState | None:
        """The progress of the other replicas; None unless this replica leads."""
        return self._leadership

    @property
    def has_leader_answered(self) -> bool:
        """True if the leader of this epoch has answered a fetch."""
        return self._has_leader_answered

    @property
    def is_awaited(self) -> bool:
        """True if this process should not stop yet, because the other voters would have to wait for a timeout.

        They may have voted for this candidate, or they do not know yet that this leader has resigned.
        """
        return self.state is State.CANDIDATE or (self.state is State.RESIGNED and bool(self._unnotified))

    def endpoints_of(self, node: int) -> list[Endpoint]:
        """Return the known addresses of a voter, of the leader, or of a node that is about to become a voter."""
        found = self.voters.endpoints(node)
        if found:
            return found
        if node == self.leader_id:
            return self._leader_endpoints
        added = self._pending_addition
        return endpoints_of(added.listeners) if added is not None and added.voter_id == node else []

    def check(self) -> None:
        """Assert the invariants that hold between steps."""
        state = self.state
        assert (self._election is not None) == (state in (State.PROSPECTIVE, State.CANDIDATE))
        assert (self._leadership is not None) == (state is State.LEADER)
        assert state is not State.LEADER or self.leader_id == self.me.id
        assert state is not State.FOLLOWER or self.leader_id not in (None, self.me.id)
        assert state is not State.CANDIDATE or self._voted == self.me
        assert state is State.LEADER or not self._held_fetches
        assert self.epoch >= self.log.epoch
        assert self.high_watermark <= self.log.end or self._is_writing

    # --- Helpers -------------------------------------------------------------------------------------------------

    def _do(self, action: Action) -> None:
        self._actions.append(action)

    def _send(self, node: int, request: Message) -> None:
        self._do(SendRequest(node, self._requests.start_request(node, self._now), request))

    def _respond(self, ticket: int, response: Message) -> None:
        self._do(SendResponse(ticket, response))

    @property
    def _responses(self) -> wire.ResponseBuilder:
        """Builds responses that name the leader that is known now."""
        endpoints = self._leader_endpoints if self.leader_id is None else self.voters.endpoints(self.leader_id)
        return wire.ResponseBuilder(self.epoch, self.leader_id, endpoints or self._leader_endpoints)

    @property
    def _election_state(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self._voted)

    @property
    def _can_be_candidate(self) -> bool:
        """True if the replica may become leader.

        A node that cannot be the active controller may lead only until an active controller has written to the log. Later
        the cluster needs a leader that can decide changes of the metadata.
        """
        return self.is_voter and (self.can_be_controller or not self.log.holds_metadata)

    @property
    def _should_yield(self) -> bool:
        """True if this leader cannot be the active controller, and a voter with the complete log can."""
        if self._leadership is None or self.can_be_controller:
            return False
        able = (key for key in self.voters.keys if self._can_be_controller.get(key.id))
        return any(self._leadership.progress(key).end >= self.log.end for key in able)

    @property
    def _is_removed(self) -> bool:
        """True if this leader is no voter any more, and its removal is committed."""
        return self._has_committed and not self.is_voter and self.log.voters_end <= self.high_watermark

    def _fetch_deadline(self) -> float:
        return self._now + self._config.fetch_timeout_ms / 1000

    def _election_deadline(self) -> float:
        """Return the time at which an election timeout ends that starts now.

        The timeout has the configured length for the first two elections and doubles with each further failed election.
        """
        timeout_ms = self._config.election_timeout_ms
        grown_ms = timeout_ms << min(max(self._failed_elections - 1, 0), MAX_ELECTION_TIMEOUT_MS.bit_length())
        return self._now + max(timeout_ms, min(grown_ms, MAX_ELECTION_TIMEOUT_MS)) * (1 + self._chance) / 1000

    # --- State transitions ---------------------------------------------------------------------------------------

    def _resume(self, saved: ElectionState) -> None:
        """Enter the first state after a start, which follows from the persisted election state.

        A replica that was the leader is RESIGNED, and one that had voted for itself is CANDIDATE again, in the same epoch. If
        another voter is known as the leader, the replica is FOLLOWER; otherwise it is UNATTACHED. If the log has a later epoch
        than the persisted state, the replica is UNATTACHED in that epoch. A sole voter starts an election at once.
        """
        self.epoch, self.leader_id, self._voted = saved
        if saved.epoch < self.log.epoch:
            self._become_unattached(self.log.epoch)
        elif saved.leader_id == self.me.id:
            self.state, self._deadline = State.RESIGNED, self._election_deadline()
            self._voted = None
            self._unnotified = set(self.voters.others(self.me))
        elif saved.voted is not None and saved.voted.is_same(self.me) and self._can_be_candidate:
            self.state = State.CANDIDATE
            self._start_election()
        elif saved.leader_id is not None and saved.leader_id in self.voters.ids:
            self._follow()
        else:
            self._deadline = self._election_deadline()
        if self._can_be_candidate and len(self.voters) == 1 and self.state in IDLE_STATES:
            self._become_prospective()

    def _become_unattached(self, epoch: int, leader_id: int | None = None) -> None:
        """Enter an epoch without a known leader. The vote is kept if the epoch is the present one."""
        voted = self._voted if epoch == self.epoch else None
        self._enter(State.UNATTACHED, ElectionState(epoch, leader_id, voted))
        self._deadline = self._election_deadline()

    def _become_follower(self, epoch: int, leader_id: int) -> None:
        voted = self._voted if epoch == self.epoch else None
        self._enter(State.FOLLOWER, ElectionState(epoch, leader_id, voted))
        self._follow()

    def _follow(self) -> None:
        self.state = State.FOLLOWER
        self._deadline = self._fetch_deadline()
        self._has_leader_answered = self._avoids_leader = False

    def _become_prospective(self) -> None:
        """Start to request pre-votes. The epoch, the known leader and the vote stay the same."""
        self._enter(State.PROSPECTIVE, self._election_state)
        self._start_election()

    def _become_candidate(self) -> None:
        """Enter the next epoch with a vote for this replica, and start to request votes."""
        self._enter(State.CANDIDATE, ElectionState(self.epoch + 1, None, self.me))
        self._start_election()

    def _start_election(self) -> None:
        self._deadline = self._election_deadline()
        self._election = Election(self.voters)
        self._count_vote(self.me.id, granted=True)

    def _count_vote(self, voter: int, *, granted: bool) -> None:
        assert self._election is not None
        self._election.record_vote(voter, granted=granted)
        if self.state is State.PROSPECTIVE:
            if self._election.is_won:
                self._become_candidate()
            elif self._election.is_lost:
                self._withdraw()
        elif self._election.is_won:
            self._become_leader(self._election)

    def _time_out_election(self) -> None:
        """End an election that timed out. If a majority may be running, it may only be slow: the next timeout is longer."""
        assert self._election is not None
        self._failed_elections += self._election.is_majority_alive
        if self.state is State.PROSPECTIVE:
            self._withdraw()
        else:
            self._become_prospective()

    def _withdraw(self) -> None:
        """Leave PROSPECTIVE without a majority of pre-votes."""
        if self.leader_id is not None and self.leader_id != self.me.id:
            self._become_follower(self.epoch, self.leader_id)
        else:
            self._become_unattached(self.epoch)

    def _wait_for_other_candidate(self) -> None:
        """Grant votes and pre-votes to other voters from now on; this replica may not become leader.

        It stops waiting for its leader, but starts no election.
        """
        if self.state in (State.PROSPECTIVE, State.CANDIDATE):
            self._become_unattached(self.epoch)
        self._has_leader_answered, self._avoids_leader = False, True
        self._deadline = self._election_deadline()

    def _become_leader(self, election: Election) -> None:
        self._enter(State.LEADER, ElectionState(self.epoch, self.me.id, self._voted))
        self._deadline, self._failed_elections = NEVER, 0
        self._leadership = LeaderState(self.me, self.log.end, self._now, self._config)
        self._do(AppendControlRecords(self.epoch, tuple(self._first_records(election))))

    def _first_records(self, election: Election) -> list[ControlRecord]:
        """Return the first records of an epoch: the leader, and the voters if the log does not have them yet."""
        granting = [key for key in self.voters.keys if key.id in election.granted]
        records: list[ControlRecord] = [
            LeaderChangeMessage(
                LEADER_CHANGE_VERSION,
                self.me.id,
                [ControlVoter(key.id) for key in self.voters.keys],
                [ControlVoter(key.id) for key in granting],
            )
        ]
        if self.log.kraft_version and not self.log.voters_end:
            records += [KRaftVersionRecord(0, self.log.kraft_version), self.voters.record()]
        return records

    def _resign(self) -> None:
        """Become RESIGNED, and sort the preferred successors.

        Voters that can be the active controller are first, in each group those with more of the log.
        """
        assert self._leadership is not None
        successors = self._leadership.successors(self.voters)
        successors.sort(key=lambda key: not self._can_be_controller.get(key.id, False))
        self._enter(State.RESIGNED, ElectionState(self.epoch, self.me.id, None))
        self._successors = successors
        self._unnotified = {key.id for key in successors}
        self._deadline = self._election_deadline()

    def _enter(self, state: State, promised: ElectionState) -> None:
        """Enter a state with a new election state, which is persisted before any later action of the step is carried out."""
        assert state in TRANSITIONS[self.state], f"{self.state} → {state}"
        assert promised.epoch >= self.epoch
        before, self.state = self._election_state, state
        self.epoch, self.leader_id, self._voted = promised
        if promised != before:
            self._do(PersistElectionState(promised))
        if promised[:2] != before[:2] or state is State.RESIGNED:
            self._do(LeaderChanged(None if state is State.RESIGNED else promised.leader_id, promised.epoch))
            self._leader_endpoints, self._snapshot_fetch, self._leader_high_watermark = [], None, -1
        self._election = self._leadership = None
        self._has_committed = False
        self._reject_held_requests()
        self._requests.reset()

    def _reject_held_requests(self) -> None:
        """Reject the held fetches and the change of voters in progress, because this replica does not lead any more."""
        held, self._held_fetches = self._held_fetches, []
        for fetch in held:
            self._respond(fetch.ticket, self._responses.fetch_response(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self._finish_voter_change(
            Rejection(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"node {self.me} is not the leader any more; the next leader decides whether the change is kept",
            )
        )

    def _vote_for(self, candidate: ReplicaKey) -> None:
        assert self._voted is None or self._voted.is_same(candidate)
        if self._voted is None:
            self._voted = candidate
            self._do(PersistElectionState(self._election_state))
            self._deadline = self._election_deadline()

    def _learn_leader(self, leader_id: int | None, epoch: int, endpoints: Sequence[Endpoint] = ()) -> None:
        """Enter the epoch and follow the leader that another node has named. An earlier epoch is ignored."""
        if leader_id == self.me.id:
            leader_id = None  # a report about this replica itself is ignored, and only its epoch is used
        if epoch > self.epoch:
            if leader_id is None:
                self._become_unattached(epoch)
            else:
                self._become_follower(epoch, leader_id)
        elif epoch == self.epoch and leader_id is not None:
            if self.leader_id not in (None, leader_id):
                self._do(Halt(f"nodes {self.leader_id} and {leader_id} both lead the quorum in epoch {epoch}"))
                return
            # A PROSPECTIVE replica that knows the leader stays PROSPECTIVE: that leader may have stopped.
            if self.leader_id is None or self.state is State.UNATTACHED:
                self._become_follower(epoch, leader_id)
        if endpoints and self.leader_id == leader_id is not None:
            self._leader_endpoints = list(endpoints)

    # --- Requests of other nodes, checked in Kafka's order -------------------------------------------------------

    def _handle_request(self, ticket: int, request: Message) -> None:
        """Respond now, or hold the request. A vote is persisted by an action before the response."""
        if isinstance(request, VoterRequest):
            self._handle_voter_request(ticket, request)
            return
        assert isinstance(request, ReplicaRequest)
        if request.cluster_id not in (None, self.cluster_id):
            self._do(ReportProblem(self._foreign_request_problem(request)))
            self._respond(ticket, wire.error_response(request, ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        partition = wire.metadata_partition(request)
        if partition is None:
            self._respond(ticket, wire.error_response(request, ErrorCode.INVALID_REQUEST))
            return
        match request:
            case VoteRequest():
                code, granted = self._handle_vote(request, partition)
                self._respond(ticket, self._responses.vote_response(code, granted=granted))
            case BeginQuorumEpochRequest():
                code = self._handle_begin_quorum_epoch(request)
                self._respond(ticket, self._responses.begin_response(code))
            case EndQuorumEpochRequest():
                code = self._handle_end_quorum_epoch(request, partition)
                self._respond(ticket, self._responses.end_response(code))
            case FetchRequest():
                self._handle_fetch(ticket, request, partition)
            case FetchSnapshotRequest():
                self._handle_fetch_snapshot(ticket, request)

    def _foreign_request_problem(self, request: ReplicaRequest) -> str:
        number, cluster_id = wire.sender_id(request), (request.cluster_id or "")[:CLUSTER_ID_LENGTH]
        sender = f"node {number}" if number >= 0 else "a node"
        return (
            f"{sender} of another cluster ({cluster_id!r}) sends requests to this node of cluster {self.cluster_id}: check the "
            "meta.properties of that node, and the controller addresses in its settings"
        )

    def _handle_vote(self, request: VoteRequest, asked: VoteData) -> tuple[int, bool]:
        """Return an error code, and True if the vote or pre-vote is granted."""
        # The last record is of an earlier epoch than the one that a candidate has just started; a pre-vote starts none.
        is_illegal = asked.last_offset_epoch >= asked.replica_epoch + asked.pre_vote
        if is_illegal or asked.last_offset < 0 or asked.last_offset_epoch < 0:
            return ErrorCode.INVALID_REQUEST, False
        if (code := self._voter_error(asked.replica_id, asked.replica_epoch)) is not None:
            return code, False
        if asked.replica_epoch > self.epoch:
            self._become_unattached(asked.replica_epoch)
        if not self._is_addressed(request.voter_id, asked.voter_directory_id):
            return ErrorCode.INVALID_VOTER_KEY, False
        candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
        is_up_to_date = self._is_up_to_date(asked.last_offset_epoch, asked.last_offset)
        if asked.pre_vote:
            return ErrorCode.NONE, is_up_to_date and self._would_vote()
        granted = self._may_vote_for(candidate, is_up_to_date=is_up_to_date)
        if granted:
            self._vote_for(candidate)
        return ErrorCode.NONE, granted

    def _is_up_to_date(self, last_epoch: int, end: int) -> bool:
        """Return True if a log has every committed record of this log. Its last record is of `last_epoch`, and it ends at `end`."""
        return (last_epoch, end) >= self.log.position

    def _would_vote(self) -> bool:
        """Return True if a pre-vote may be granted: the replica neither leads nor receives responses of a leader (KIP-996)."""
        return self.state is not State.LEADER and not (self.state is State.FOLLOWER and self._has_leader_answered)

    def _may_vote_for(self, candidate: ReplicaKey, *, is_up_to_date: bool) -> bool:
        """Return True if the replica has not voted for another candidate in this epoch and knows no leader of it.

        A repeated request of the same candidate is granted again, because the first response may be lost.
        """
        if self.state not in (State.UNATTACHED, State.PROSPECTIVE):
            return False
        if self._voted is not None:
            return self._voted.is_same(candidate)
        return self.leader_id is None and is_up_to_date

    def _voter_error(self, node: int, epoch: int) -> int | None:
        """Return the error for a request of an earlier epoch or with an invalid node id; None if there is none."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.INVALID_REQUEST if node < 0 else None

    def _is_addressed(self, voter_id: int, directory_id: object) -> bool:
        """Return True if a request is meant for this replica; older versions do not name the receiver."""
        return voter_id in (-1, self.me.id) and directory_id in (ZERO_UUID, self.me.directory_id)

    def _handle_begin_quorum_epoch(self, request: BeginQuorumEpochRequest) -> int:
        """Follow the elected leader that sends this request."""
        announced = request.topics[0].partitions[0]
        if (code := self._voter_error(announced.leader_id, announced.leader_epoch)) is not None:
            return code
        endpoints = [Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints]
        self._learn_leader(announced.leader_id, announced.leader_epoch, endpoints)
        if not self._is_addressed(request.voter_id, announced.voter_directory_id):
            return ErrorCode.INVALID_VOTER_KEY
        return ErrorCode.NONE

    def _handle_end_quorum_epoch(self, request: EndQuorumEpochRequest, resigned: EndData) -> int:
        """Schedule an election after the leader has resigned; its preferred successors start first."""
        if (code := self._voter_error(resigned.leader_id, resigned.leader_epoch)) is not None:
            return code
        endpoints = [Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints]
        self._learn_leader(resigned.leader_id, resigned.leader_epoch, endpoints)
        if self.state is State.FOLLOWER and self.leader_id == resigned.leader_id:
            self._deadline = self._now + self._successor_backoff(resigned)
            self._has_leader_answered = False  # so that pre-votes are granted
        return ErrorCode.NONE

    def _successor_backoff(self, resigned: EndData) -> float:
        """Return the seconds to wait before this replica starts an election after the leader has resigned (KIP-595).

        The first successor does not wait. The last one, and a replica that is not listed, waits the longest.
        """
        successors = [
            ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in resigned.preferred_candidates
        ]
        successors = successors or [ReplicaKey(id_) for id_ in resigned.preferred_successors]
        place = next((place for place, key in enumerate(successors) if key.is_same(self.me)), len(successors))
        longest = self._config.election_backoff_max_ms / 1000
        if place == 0 and successors:
            return 0.0
        return longest if place >= len(successors) else longest / 2.0 ** (len(successors) - 1 - place)

    def _leader_error(self, epoch: int) -> int | None:
        """Return the error for a request that only the leader of `epoch` answers; None if this replica is that leader."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if self.state is not State.LEADER:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.BROKER_NOT_AVAILABLE if self._is_shutting_down else None

    def _handle_fetch(self, ticket: int, request: FetchRequest, asked: FetchPartition) -> None:
        offset, epoch, leader_epoch = asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch
        if request.max_wait_ms < 0 or offset < 0 or not 0 <= epoch <= leader_epoch:
            self._respond(ticket, self._responses.fetch_response(ErrorCode.INVALID_REQUEST))
            return
        if self.state is State.LEADER and leader_epoch == self.epoch and self._is_prefix(offset, epoch):
            self._record_fetch(request, offset)
        if not self._answer_fetch(ticket, request, may_hold=True):
            self._held_fetches.append(HeldFetch(ticket, request, self._now + request.max_wait_ms / 1000))

    def _is_prefix(self, offset: int, epoch: int) -> bool:
        """Return True if a log that ends at `offset` with a record of `epoch` is a prefix of this log."""
        return not self.log.needs_snapshot(offset, epoch) and self.log.divergence(offset, epoch) is None

    def _record_fetch(self, request: FetchRequest, offset: int) -> None:
        """Record that the fetching replica has everything below `offset` on its disk."""
        assert self._leadership is not None
        id_ = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
        key = ReplicaKey(id_, request.topics[0].partitions[0].replica_directory_id)
        if id_ >= 0 and id_ != self.me.id:
            self._leadership.record_fetch(self.voters.known(key), offset, self.log.end, self.voters, self._now)
            self._update_progress()

    def _answer_fetch(self, ticket: int, request: FetchRequest, *, may_hold: bool) -> bool:
        """Respond to a fetch. Return False if it has to be held because there is nothing new for it."""
        asked = request.topics[0].partitions[0]
        offset, epoch, log, responses = asked.fetch_offset, asked.last_fetched_epoch, self.log, self._responses
        high_watermark = self.high_watermark
        if (code := self._leader_error(asked.current_leader_epoch)) is not None:
            self._respond(ticket, responses.fetch_response(code))
        elif log.needs_snapshot(offset, epoch):
            self._respond(ticket, responses.fetch_response(0, high_watermark, log.start, snapshot=log.snapshot))
        elif (divergence := log.divergence(offset, epoch)) is not None:
            self._respond(ticket, responses.fetch_response(0, high_watermark, log.start, diverging=divergence))
        elif offset < log.end:
            response = responses.fetch_response(0, high_watermark, log.start)
            self._do(SendRecords(ticket, response, offset, request.max_bytes))
        else:
            # A replica that does not report its high watermark (before KIP-1166) sends the greatest number.
            is_watermark_news = asked.high_watermark < min(high_watermark, log.end)
            if may_hold and request.max_wait_ms and not is_watermark_news:
                return False
            self._respond(ticket, responses.fetch_response(0, high_watermark, log.start))
        return True

    def _answer_held_fetches(self) -> None:
        held, self._held_fetches = self._held_fetches, []
        for fetch in held:
            if not self._answer_fetch(fetch.ticket, fetch.request, may_hold=self._now < fetch.deadline):
                self._held_fetches.append(fetch)

    def _handle_fetch_snapshot(self, ticket: int, request: FetchSnapshotRequest) -> None:
        """Let the driver send a chunk, or an error if the snapshot does not exist."""
        asked = request.topics[0].partitions[0]
        snapshot = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        code = self._leader_error(asked.current_leader_epoch)
        if code is None and asked.position < 0:
            code = ErrorCode.POSITION_OUT_OF_RANGE
        response = self._responses.snapshot_response(code or 0, snapshot, asked.position)
        if code is not None:
            self._respond(ticket, response)
            return
        assert self._leadership is not None
        if request.replica_id >= 0 and request.replica_id != self.me.id:
            key = ReplicaKey(request.replica_id, asked.replica_directory_id)
            self._leadership.record_contact(self.voters.known(key), self.voters, self._now)
        self._do(SendSnapshotChunk(ticket, response, snapshot, asked.position, request.max_bytes))

    # --- Responses of other nodes --------------------------------------------------------------------------------

    def _handle_response(self, by: int, response: Message) -> None:
        """Handle the response to the request in flight to a node."""
        if isinstance(response, VoterResponse):
            return  # the log shows whether the entry was changed; if not, the request is sent again
        if isinstance(response, ApiVersionsResponse):
            self._check_new_voter(by, response)
            return
        code: int = getattr(response, "error_code", 0)
        partition = None if code else wire.metadata_partition(response)
        if partition is None:
            self._handle_error_response(by, code)
            return
        self._foreign_nodes.discard(by)
        if not self._learn_from_response(response, partition):
            if partition.error_code:
                self._handle_failure(by)
            return
        is_from_leader = self.state is State.FOLLOWER and self.leader_id == by
        if isinstance(response, VoteResponse) and self._election is not None:
            self._count_vote(by, granted=partition.vote_granted)
        elif isinstance(response, EndQuorumEpochResponse):
            self._unnotified.discard(by)
        elif isinstance(response, FetchResponse) and is_from_leader:
            self._handle_fetched(partition)
        elif isinstance(response, FetchSnapshotResponse) and is_from_leader and self._snapshot_fetch is not None:
            self._handle_snapshot_chunk(self._snapshot_fetch, partition)

    def _learn_from_response(self, response: Any, partition: Any) -> bool:
        """Follow the leader that a response names. Return False if the rest of the response is to be ignored.

        That is so after an error, and if the epoch of the response is not the epoch in which the request was sent.
        """
        leader = getattr(partition, "current_leader", partition)
        if leader is None:
            return not partition.error_code
        leader_id = None if leader.leader_id < 0 else leader.leader_id
        code: int = partition.error_code
        if leader.leader_epoch < self.epoch:
            return False
        epoch = self.epoch
        endpoints = [
            Endpoint("", each.host, each.port) for each in response.node_endpoints if each.node_id == leader_id
        ]
        self._learn_leader(leader_id, leader.leader_epoch, endpoints)
        if epoch != self.epoch:
            return False
        return not code or (isinstance(response, FetchSnapshotResponse) and code in SNAPSHOT_REPLACED)

    def _handle_error_response(self, by: int, code: int) -> None:
        """Handle a response with a top-level error or without a partition."""
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._handle_foreign_node(by)
        elif code == ErrorCode.UNSUPPORTED_VERSION and self.state is State.PROSPECTIVE:
            self._become_candidate()  # the node does not know pre-votes
        else:
            self._handle_failure(by)

    def _handle_foreign_node(self, by: int) -> None:
        """Treat a node of another cluster as unreachable; stop if too few nodes remain for a majority.

        A single node with a wrong configuration does not stop this one. Apache Kafka always only logs the error.
        """
        self._foreign_nodes.add(by)
        nodes = self.voters.ids or frozenset(self.bootstrap)
        name = f"node {by}" if by >= 0 else "a bootstrap controller"
        sentence = (
            f"{name} belongs to another cluster than this node, which belongs to {self.cluster_id}: compare cluster.id in "
            "both meta.properties, and check the controller addresses in the settings"
        )
        majority = self.voters.majority if self.voters.ids else 1
        if len(nodes - self._foreign_nodes) < majority:
            self._do(Halt(sentence))
            return
        self._do(ReportProblem(sentence))
        self._handle_failure(by)

    def _handle_fetched(self, partition: PartitionData) -> None:
        """Append, truncate or start to fetch a snapshot, depending on the leader's response."""
        self._record_leader_contact()
        diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
        if diverging is not None and diverging.epoch >= 0:
            self._truncate(EpochEnd(diverging.epoch, diverging.end_offset))
            return
        if snapshot is not None and snapshot.end_offset >= 0:
            self._snapshot_fetch = SnapshotFetch(SnapshotId(snapshot.end_offset, snapshot.epoch), 0)
            return
        self._leader_high_watermark = max(self._leader_high_watermark, partition.high_watermark)
        if partition.records is not None and len(partition.records):
            self._is_writing = True
            self._do(AppendFetched(partition.records, self.epoch))
        else:
            self._advance_high_watermark(min(self._leader_high_watermark, self.log.end))

    def _handle_snapshot_chunk(self, fetch: SnapshotFetch, chunk: PartitionSnapshot) -> None:
        """Write a chunk, or cancel the download if the leader has deleted the snapshot or has sent another chunk."""
        self._record_leader_contact()
        data = chunk.unaligned_records
        position = fetch.position + len(data)
        is_last = position >= chunk.size
        if chunk.error_code or chunk.position != fetch.position or not (len(data) or is_last):
            self._snapshot_fetch = None
            return
        self._snapshot_fetch = None if is_last else fetch._replace(position=position)
        self._is_writing = is_last
        self._do(WriteSnapshotChunk(fetch.snapshot, fetch.position, data, is_last))

    def _record_leader_contact(self) -> None:
        self._has_leader_answered, self._avoids_leader, self._failed_elections = True, False, 0
        self._deadline = self._fetch_deadline()

    def _handle_failure(self, node: int) -> None:
        """Handle a failed request or an error response: send nothing to the node for a while.

        The next fetch is sent to another node. If that one fails too, the leader is tried again.
        """
        self._requests.back_off(node, self._now)
        self._reject_new_voter(node, ErrorCode.NETWORK_EXCEPTION)
        self._next_node += 1
        self._avoids_leader = node == self.leader_id

    def _record_ended(self, failure: RequestFailed) -> None:
        """Shorten the wait for the leader if its process has ended.

        The wait is random, so that two followers do not start elections at the same time. If the leader is running after all,
        the election fails: replicas that fetch from it grant no pre-votes.
        """
        if failure.has_ended and self._election is not None:
            self._election.record_ended(failure.by)
        if not failure.has_ended or self.state is not State.FOLLOWER or failure.by != self.leader_id:
            return
        self._has_leader_answered = False
        seconds = self._config.election_timeout_ms * self._chance / LOST_LEADER_DIVISOR / 1000
        self._deadline = min(self._deadline, self._now + seconds)

    # --- The log -------------------------------------------------------------------------------------------------

    def _handle_log_change(self, shape: LogShape) -> None:
        was_voter, self.log, self._is_writing = self.is_voter, shape, False
        if self.is_voter and not was_voter and self._leadership is None:
            self._deadline = self._fetch_deadline()
        self._advance_high_watermark(min(self._leader_high_watermark, shape.end))
        self._advance_high_watermark(shape.snapshot.end_offset)
        if self._leadership is not None:
            self._update_progress()

    def _advance_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._do(AdvanceHighWatermark(offset))

    def _update_progress(self) -> None:
        """Advance the high watermark as far as the replicas' progress allows.

        Then finish the change of voters and respond to the held fetches that were waiting for it.
        """
        assert self._leadership is not None
        end = self._leadership.committed_end(self.voters, self.log.durable)
        if end is not None:
            self._has_committed = True
            self._advance_high_watermark(end)
        self._check_voter_change()
        self._answer_held_fetches()

    def _truncate(self, leader: EpochEnd) -> None:
        """Truncate the log to where it diverges from the leader's log, in which the epoch of `leader` ends at its offset."""
        end = self.log.truncation_offset(leader)
        if end < self.high_watermark:
            self._do(
                Halt(
                    f"the leader's metadata log diverges from this node's at offset {end}, and offset {self.high_watermark} was "
                    "committed: one of the two lost committed records; if it was this node, empty its directory and add it again"
                )
            )
            return
        self._is_writing = True
        self._do(TruncateLog(end))

    # --- Time ----------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Do everything that is due now."""
        while self._apply_deadline():
            pass
        match self.state:
            case State.UNATTACHED | State.FOLLOWER:
                self._fetch()
            case State.PROSPECTIVE | State.CANDIDATE:
                self._request_votes()
            case State.LEADER:
                self._announce_leader()
                self._check_voter_change()
                self._correct_own_entry()
                self._answer_held_fetches()
            case State.RESIGNED:
                self._notify_of_resignation()

    def _apply_deadline(self) -> bool:
        """Make one transition that is due: a leader resigns, or a state times out. Return False if none is due."""
        if self._leadership is not None:
            has_lost = self._leadership.has_lost_majority(self.voters, self._now)
            if self._is_shutting_down or self._is_removed or self._should_yield or has_lost:
                self._resign()
                return True
            return False
        # A vote request contains the end of the log, which is unknown while the log is being written.
        if self._now < self._deadline or self._is_shutting_down or self._is_writing:
            return False
        if self.state is State.RESIGNED:
            self._become_unattached(self.epoch + 1)
        elif not self.is_voter:
            if self.state in (State.PROSPECTIVE, State.CANDIDATE):
                self._become_unattached(self.epoch)
            self._deadline = NEVER  # an observer waits for a leader without a limit
        elif not self._can_be_candidate:
            self._wait_for_other_candidate()
        elif self._election is not None:
            self._time_out_election()
        else:
            self._become_prospective()
        return True

    def _request_votes(self) -> None:
        """Request the votes of voters that have not voted yet."""
        election = self._election
        assert election is not None
        pre_vote = self.state is State.PROSPECTIVE
        if election.is_lost:
            return
        for key in election.undecided:
            if self._requests.is_ready(key.id, self._now):
                self._send(
                    key.id, wire.vote_request(self.cluster_id, self.me, key, self.epoch, self.log, pre_vote=pre_vote)
                )

    def _announce_leader(self) -> None:
        """Send BeginQuorumEpoch to voters that do not fetch. The first is sent directly after the election.

        It is also sent to voters to which no connection was opened yet, to find out whether they can be the active controller.
        """
        leadership, endpoints = self._leadership, self.voters.endpoints(self.me.id)
        assert leadership is not None
        if self._now < leadership.announce_at:
            return
        leadership.schedule_announcement(self._now)
        unknown = [key for key in self.voters.keys if key.id != self.me.id and key.id not in self._can_be_controller]
        for key in dict.fromkeys([*leadership.silent_voters(self.voters, self._now), *unknown]):
            if self._requests.is_ready(key.id, self._now):
                self._send(key.id, wire.begin_request(self.cluster_id, self.me.id, key, self.epoch, endpoints))

    def _notify_of_resignation(self) -> None:
        """Send EndQuorumEpoch, with the preferred successors, to voters that have not confirmed it."""
        endpoints = self.voters.endpoints(self.me.id)
        for voter in sorted(self._unnotified):
            if self._requests.is_ready(voter, self._now):
                request = wire.end_request(self.cluster_id, self.me.id, self.epoch, self._successors, endpoints)
                self._send(voter, request)

    def _fetch(self) -> None:
        """Fetch the next records or the next chunk of a snapshot, unless a request is in flight."""
        node, config = self._fetch_source, self._config
        if (
            node is None
            or self._is_writing
            or self._requests.is_waiting
            or not self._requests.is_ready(node, self._now)
        ):
            return
        sender = self.cluster_id, self.me, self.epoch
        if self._snapshot_fetch is not None:
            self._send(node, wire.snapshot_request(*sender, *self._snapshot_fetch, config.snapshot_bytes))
        elif self.leader_id == node and (request := self._entry_request()) is not None:
            self._send(node, request)
        else:
            max_wait_ms, max_bytes = config.max_wait_ms, config.max_bytes
            self._send(node, wire.fetch_request(*sender, self.log, self.high_watermark, max_wait_ms, max_bytes))

    @property
    def _fetch_source(self) -> int | None:
        """The node to fetch from: the leader, or another voter if the leader is unknown or did not respond.

        A bootstrap controller is used if the log lists no other voter. None if there is no other node.
        """
        if self.state is State.FOLLOWER and not self._avoids_leader:
            return self.leader_id
        nodes = self.voters.others(self.me) or [id_ for id_ in self.bootstrap if id_ != self.me.id]
        return nodes[self._next_node % len(nodes)] if nodes else None

    # --- Changes of the voters, as the leader (KIP-853) ----------------------------------------------------------

    def _handle_voter_request(self, ticket: int | None, request: VoterRequest) -> None:
        """Append a changed set of voters and respond when it is committed, or reject the request.

        Before a voter is added, an ApiVersions request is sent to it.
        """
        rejection = self._voter_request_error(request)
        if rejection is None:
            if isinstance(request, AddRaftVoterRequest):
                rejection = self._query_new_voter(ticket, request)
            else:
                rejection = self._change_voters(ticket, request)
        if rejection is not None:
            self._respond_to_voter_request(ticket, request, rejection)

    def _voter_request_error(self, request: VoterRequest) -> Rejection | None:
        if request.cluster_id not in (None, self.cluster_id):
            return Rejection(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this node belongs to cluster {self.cluster_id}")
        if self.state is not State.LEADER:
            message = f"node {self.me} does not lead the quorum; send the request to the leader"
            return Rejection(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
        if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
            message = "a voter is a node number and a directory id, and one of them is missing"
            return Rejection(ErrorCode.INVALID_REQUEST, message)
        return missing_listener(request, self.own_entry) or self._change_blocker()

    def _change_blocker(self) -> Rejection | None:
        """Return a rejection if the leader cannot start a change of the voters yet, with the reason; otherwise None."""
        if self._voter_change is not None:
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is in progress; try again")
        if not self._has_committed:
            message = "the leader was just elected and has not committed a record yet; try again"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, message)
        if self.log.kraft_version < 1:
            message = "voters cannot be changed at kraft.version 0; upgrade that feature to 1"
            return Rejection(ErrorCode.UNSUPPORTED_VERSION, message)
        if self.log.voters_end > self.high_watermark:
            message = "the previous change of the voters is not committed yet; try again"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, message)
        return None

    def _change_voters(
        self, ticket: int | None, request: RemoveRaftVoterRequest | UpdateRaftVoterRequest
    ) -> Rejection | None:
        voters = changed_voters(self.voters, request)
        if isinstance(voters, Rejection):
            return voters
        change = VoterChange(ticket, request, self._now + self._config.request_timeout_ms / 1000)
        self._append_voters(change, voters)
        return None

    def _append_voters(self, change: VoterChange, voters: VoterSet) -> None:
        self._voter_change = change._replace(previous_voters_end=self.log.voters_end)
        assert self._leadership is not None
        self._leadership.restart_check_if_alone(self.voters, self._now)
        self._do(AppendControlRecords(self.epoch, (voters.record(),)))

    def _query_new_voter(self, ticket: int | None, request: AddRaftVoterRequest) -> Rejection | None:
        """Send ApiVersions to a new voter, at the address in the request, which the other voters will use too."""
        node = request.voter_id
        if node in self.voters.ids:
            key = ReplicaKey(node, request.voter_directory_id)
            message = f"node {key} is a voter already; remove its old directory first"
            return Rejection(ErrorCode.DUPLICATE_VOTER, message)
        if not self._requests.is_ready(node, self._now):
            message = f"node {node} did not respond to a recent request; try again"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, message)
        self._voter_change = VoterChange(ticket, request, self._now + request.timeout_ms / 1000)
        self._send(node, ApiVersionsRequest(CLIENT_NAME, "0"))
        return None

    @property
    def _pending_addition(self) -> AddRaftVoterRequest | None:
        """The request for a new voter that has not sent its ApiVersions response yet."""
        change = self._voter_change
        if change is None or change.previous_voters_end is not None:
            return None
        return change.request if isinstance(change.request, AddRaftVoterRequest) else None

    def _check_new_voter(self, node: int, response: ApiVersionsResponse) -> None:
        """Add a new voter that supports the quorum's version and has copied the log."""
        request, change = self._pending_addition, self._voter_change
        if request is None or change is None or request.voter_id != node:
            return
        if response.error_code:
            self._reject_new_voter(node, response.error_code)
            return
        voter = added_voter(request, response, self.log.kraft_version)
        key = ReplicaKey(node, request.voter_directory_id)
        if isinstance(voter, Rejection):
            self._finish_voter_change(voter)
        elif not self._is_caught_up(key):
            message = f"node {key} has not copied the metadata log yet; try again later"
            self._finish_voter_change(Rejection(ErrorCode.REQUEST_TIMED_OUT, message))
        else:
            self._append_voters(change, self.voters.with_voter(voter))

    def _is_caught_up(self, key: ReplicaKey) -> bool:
        """Return True if an observer has copied the whole log within `CAUGHT_UP_SECONDS`."""
        assert self._leadership is not None
        progress = self._leadership.replicas.get(key)
        return progress is not None and progress.caught_up_at > self._now - CAUGHT_UP_SECONDS

    def _reject_new_voter(self, node: int, code: int) -> None:
        """Reject the addition of a node that did not answer the ApiVersions request."""
        request = self._pending_addition
        if request is not None and request.voter_id == node:
            addresses = ", ".join(f"{each.host}:{each.port}" for each in request.listeners) or "(no address)"
            message = f"node {node} at {addresses} did not answer ApiVersions ({name_of(code)}); check that it is running there"
            self._finish_voter_change(Rejection(ErrorCode.REQUEST_TIMED_OUT, message))

    def _check_voter_change(self) -> None:
        """Finish the change in progress if it is committed, or if its timeout is over."""
        change, log = self._voter_change, self.log
        if change is None:
            return
        is_appended = change.previous_voters_end is not None and log.voters_end > change.previous_voters_end
        # The replica that sent the request does not fetch until it has this response. The commit may need its fetch.
        responds_early = isinstance(change.request, UpdateRaftVoterRequest) or (
            isinstance(change.request, AddRaftVoterRequest) and not change.request.ack_when_committed
        )
        if is_appended and (responds_early or log.voters_end <= self.high_watermark):
            self._finish_voter_change(None)
        elif self._now >= change.deadline:
            if change.previous_voters_end is None:
                self._reject_new_voter(change.request.voter_id, ErrorCode.REQUEST_TIMED_OUT)
                return
            message = "the voters have not committed the change in time; they may commit it later"
            self._finish_voter_change(Rejection(ErrorCode.REQUEST_TIMED_OUT, message))

    def _finish_voter_change(self, rejection: Rejection | None) -> None:
        change, self._voter_change = self._voter_change, None
        if change is not None:
            self._respond_to_voter_request(change.ticket, change.request, rejection)

    def _respond_to_voter_request(self, ticket: int | None, request: VoterRequest, rejection: Rejection | None) -> None:
        if ticket is None:
            return
        responses = self._responses
        _, host, port = responses.endpoints[0] if responses.endpoints else (0, "", 0)
        leader = CurrentLeader(responses.leader_id, self.epoch, host, port)
        self._respond(ticket, response_to(request, rejection, leader))

    # --- The replica's own entry in the voters' record (KIP-853, KIP-1186) ---------------------------------------

    def _entry_request(self) -> Message | None:
        """Return the request to the leader that corrects, adds or replaces this replica's entry; None if none is due.

        A follower sends the request instead of a fetch, at most once per fetch timeout. It sends none until it has every record
        that the leader has reported as committed, because the voters in an outdated log may be outdated too.
        """
        if self._now < self._update_entry_at or self.log.kraft_version < 1 or not self._has_committed_records:
            return None
        if self.is_voter:
            request: Message | None = self._entry_correction()
        else:
            request = self._join_request() if self.own_entry.auto_join else None
        if request is not None:
            self._update_entry_at = self._fetch_deadline()
        return request

    @property
    def _has_committed_records(self) -> bool:
        """True if this follower has every record that the leader of this epoch has reported as committed."""
        has_records = 0 <= self._leader_high_watermark <= self.log.end
        return self._has_leader_answered and has_records and self._snapshot_fetch is None

    def _join_request(self) -> Message | None:
        """Return the request that adds this replica, or the one that removes its node's former directory first."""
        me, former = self.me, self.voters.voters.get(self.me.id)
        if former is not None:
            return RemoveRaftVoterRequest(self.cluster_id, me.id, former.voter_directory_id)
        if not self.own_entry.endpoints:
            return None
        # An early response is requested: this replica does not fetch until it has it, and the commit may need its fetch.
        return AddRaftVoterRequest(
            self.cluster_id,
            self._config.request_timeout_ms,
            *me,
            self.own_entry.listeners(),
            ack_when_committed=False,
        )

    def _entry_correction(self) -> UpdateRaftVoterRequest | None:
        """Return the request that corrects this voter's entry; None if the entry is right or the addresses are unknown."""
        if not self.own_entry.endpoints or not self.own_entry.differs_from(self.voters.voters[self.me.id]):
            return None
        return update_of(self.cluster_id, self.epoch, self.me, self.own_entry)

    def _correct_own_entry(self) -> None:
        """Correct the entry of this leader."""
        assert self.state is State.LEADER
        if not self.is_voter or self._now < self._update_entry_at or self._change_blocker() is not None:
            return
        request = self._entry_correction()
        if request is not None:
            self._update_entry_at = self._fetch_deadline()
            self._handle_voter_request(None, request)
