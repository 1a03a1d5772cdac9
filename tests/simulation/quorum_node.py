"""A node of a simulated quorum: does what the machine wants, over a log and a network that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.events import (
    Action,
    AdvanceHighWatermark,
    AppendControlRecords,
    AppendFetched,
    Event,
    Halt,
    LogChanged,
    PersistElectionState,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SendRecords,
    SendRequest,
    SendResponse,
    SendSnapshotChunk,
    ShutDown,
    Tick,
    TruncateLog,
    WriteSnapshotChunk,
)
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.coordination.quorum.voter_changes import UNKNOWN_ENTRY
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.protocol.messages.vote import VoteRequest
from ottla.protocol.schema import Message
from tests.simulation.quorum_log import Entry, QuorumLog, Snapshot

if TYPE_CHECKING:
    from tests.simulation.quorum_history import QuorumHistory

CONFIG = QuorumConfig(retry_backoff_ms=100)
MOST = 5
"""Records in a piece of a snapshot."""
CLUSTER = "cluster"
LEAVING_SECONDS = 0.5
"""The time for which a leaving node waits for its pending requests."""
Reply = Callable[[Message | None], None]


class QuorumNode:
    """One process after another on the same disk."""

    def __init__(self, history: QuorumHistory, key: ReplicaKey, voters: VoterSet) -> None:
        self.history = history
        self.world = history.world
        self.key = key
        self.id = key.id
        self.first_voters = voters
        self.own_entry = UNKNOWN_ENTRY
        self.kraft_versions = (0, 1)
        self.log = QuorumLog(voters)
        self.raft: Raft | None = None
        self.incarnation = 0
        self.paused_until = 0.0
        self.pieces: list[Entry] = []
        self._replies: dict[int, Reply] = {}
        self._tickets = 0
        self._wakes_at = float("inf")

    # life

    @property
    def leads(self) -> bool:
        return self.raft is not None and self.raft.state is State.LEADER

    def start(self) -> None:
        """A process begins on what the disk has."""
        self.incarnation += 1
        self._wakes_at, self._replies, self.pieces = float("inf"), {}, []
        chance = self.world.chance.random()
        log, now = self.log, self.world.now
        self.raft = Raft(self.key, CLUSTER, log.shape(), log.saved, CONFIG, now, chance, own_entry=self.own_entry)
        self._say("starts as", self.raft.state.value, "in", self.raft.epoch)
        self.step(Tick())

    def be_killed(self) -> None:
        """Kill its process: the connections of pending requests break."""
        waiting = list(self._replies.values())
        self.crash()
        for reply in waiting:
            reply(None)

    def crash(self) -> None:
        """The machine stops, and unflushed data are lost."""
        self._say("crashes")
        self.raft = None
        self.log.truncate(max(self.log.flushed, self.log.start))

    def replace_disk(self, directory_id: UUID) -> None:
        """Nothing is left, and the directory is another."""
        self._say("has an empty disk")
        self.key = self.key._replace(directory_id=directory_id)
        self.log = QuorumLog(self.first_voters)
        self.history.epochs.pop(self.id, None)

    def leave(self) -> None:
        """The process ends as it should."""
        self._say("leaves")
        incarnation, deadline = self.incarnation, self.world.now + LEAVING_SECONDS
        self.step(ShutDown())

        def look() -> None:
            if self.raft is None or incarnation != self.incarnation:
                return
            if self.raft.is_awaited and self.world.now < deadline:
                self.world.after(0.1, look)
            else:
                self.crash()

        self.world.after(0.1, look)

    def pause(self, span: float) -> None:
        """The process is stopped for a while, and does not notice."""
        self._say("stands still for", span)
        self.paused_until = self.world.now + span

    def later(self, span: float, act: Callable[[], None]) -> None:
        """In this process, if it is still there."""
        incarnation = self.incarnation

        def when_awake() -> None:
            if self.raft is None or incarnation != self.incarnation:
                return
            if self.world.now < self.paused_until:
                self.world.at(self.paused_until, when_awake)
            else:
                act()

        self.world.after(span, when_awake)

    # the machine

    def step(self, event: Event) -> None:
        raft = self.raft
        if raft is None:
            return
        before = raft.state, raft.epoch
        wishes = raft.step(event, self.world.now, self.world.chance.random())
        raft.check()
        if (raft.state, raft.epoch) != before:
            self._say("is", raft.state.value, "in", raft.epoch)
        for wish in wishes:
            self.do(wish)
        if self.raft is raft:
            self.history.check(self, raft)
            self._set_alarm(raft)

    def _set_alarm(self, raft: Raft) -> None:
        at = max(raft.wake_at, self.world.now)
        if at < self._wakes_at:
            self._wakes_at = at
            self.later(at - self.world.now + 0.0001, lambda: self._ring(at))

    def _ring(self, at: float) -> None:
        if at == self._wakes_at:  # an earlier alarm came after this one was set
            self._wakes_at = float("inf")
            self.step(Tick())

    def do(self, wish: Action) -> None:
        match wish:
            case PersistElectionState():
                self.log.saved = wish.state
            case AppendControlRecords():
                self.append(*(Entry(wish.epoch, record) for record in wish.records))
            case AppendFetched():
                for entry in wish.records:
                    self.log.append(entry)
                self.later(self.world.chance.random() * 0.02, self._written)
            case TruncateLog():
                self._say("cuts its log at", wish.offset)
                self.log.truncate(wish.offset)
                self.tell_of_log()
            case WriteSnapshotChunk():
                self._keep(wish)
            case AdvanceHighWatermark():
                self.history.committed_at(self, wish.high_watermark)
            case Halt():
                raise AssertionError(wish.sentence)
            case _:
                self._say_to_others(wish)

    def _say_to_others(self, wish: Action) -> None:
        match wish:
            case SendRequest():
                self.history.ask(self, wish.to, wish.number, wish.request)
            case SendResponse():
                self._answer(wish.ticket, wish.response)
            case SendRecords():
                self._answer_records(wish)
            case SendSnapshotChunk():
                self._answer_piece(wish)

    # the log

    def append(self, *entries: Entry) -> None:
        """Append records as the leader; they are on the disk a little later."""
        for entry in entries:
            self.log.append(entry)
        self.tell_of_log()
        self.later(self.world.chance.random() * 0.05, self._written)

    def _written(self) -> None:
        self.log.flush()
        self.tell_of_log()

    def tell_of_log(self) -> None:
        self.step(LogChanged(self.log.shape()))

    def snapshot(self) -> None:
        """Take a snapshot of committed records."""
        if self.raft is not None and not self.raft._is_writing:
            self._say("takes a snapshot at", self.raft.high_watermark)
            self.log.take_snapshot(self.raft.high_watermark, cut=self.world.likely(0.7))
            self.tell_of_log()

    def _keep(self, piece: WriteSnapshotChunk) -> None:
        del self.pieces[piece.position :]
        self.pieces.extend(piece.data)
        if piece.last:
            self._say("takes over the snapshot at", piece.snapshot.end_offset)
            voters = self.history.voters_in(self.pieces, self.log.cut_snapshot.voters)
            self.log.begin_at(Snapshot(piece.snapshot, tuple(self.pieces), voters), [])
            self.tell_of_log()

    # the network

    def asked(self, request: Message, reply: Reply) -> None:
        """Handle a request."""
        if isinstance(request, ApiVersionsRequest):
            assert request.client_software_name, "Kafka's refuse who has no name"
            reply(
                ApiVersionsResponse(0, supported_features=[SupportedFeatureKey("kraft.version", *self.kraft_versions)])
            )
            return
        self._tickets += 1
        self._replies[self._tickets] = reply
        if isinstance(request, VoteRequest):
            reply = self._watched(request, reply)
            self._replies[self._tickets] = reply
        self.step(RequestReceived(self._tickets, request))

    def _watched(self, request: VoteRequest, reply: Reply) -> Reply:
        def heard(response: Any) -> None:
            asked, said = wire.metadata_partition(request), wire.metadata_partition(response)
            if asked and said and said.vote_granted and not asked.pre_vote:
                self.history.voted(self.id, asked.replica_epoch, asked.replica_id)
            reply(response)

        return heard

    def answered(self, by: int, number: int, response: Message | None) -> None:
        """Handle a response. An absent node is either known to be down or unreachable."""
        gone = self.history.tells_gone(number)
        self.step(RequestFailed(by, number, gone) if response is None else ResponseReceived(by, number, response))

    def _answer(self, ticket: int, response: Message) -> None:
        self._replies.pop(ticket)(response)

    def _answer_records(self, wish: SendRecords) -> None:
        first = wish.offset - self.log.start
        response: Any = wish.response
        wire.metadata_partition(response).records = tuple(self.log.entries[first : first + self.history.most])  # type: ignore[union-attr]
        self._answer(wish.ticket, response)

    def _answer_piece(self, wish: SendSnapshotChunk) -> None:
        held: Any = wire.metadata_partition(wish.response)
        snapshot = next((each for each in (self.log.snapshot, self.log.cut_snapshot) if each.id == wish.snapshot), None)
        if snapshot is None:
            held.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        else:
            held.size = len(snapshot.entries)
            held.unaligned_records = snapshot.entries[wish.position : wish.position + MOST]
        self._answer(wish.ticket, wish.response)

    def _say(self, *what: Any) -> None:
        self.world.say(f"node {self.id}", *what)
