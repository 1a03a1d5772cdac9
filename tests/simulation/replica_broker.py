"""A broker with a copy of the partition: drives the machines of replication over a log, as a shell does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.broker.replica_manager.fetch_session import FetchedPartition
from ottla.coordination.replication import epochs
from ottla.coordination.replication.assignment import ReplicaAssignment
from ottla.coordination.replication.epochs import EpochEnd
from ottla.coordination.replication.follower import FetchFrom, Follower
from ottla.coordination.replication.leader import Leader, Proposal, ProposalRejection
from tests.simulation.led_session import LedSession
from tests.simulation.replica_controller import Image
from tests.simulation.replica_log import ReplicaLog
from tests.simulation.stored_log import StoredLog

if TYPE_CHECKING:
    from tests.simulation.replica_history import ReplicaHistory

NOBODY = -1
NOWHERE = -1
"""The offset of a response without records."""
MOST = 5
"""Batches in an answer."""
MAX_LAG = 4.0
PAUSE = 0.2
PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a leader to a fetch."""

    leader: int
    leader_epoch: int
    offset: int
    batches: Any = ()
    """The batches in the format of the log."""
    watermark: int = 0
    parting: EpochEnd | None = None


class ReplicaBroker:
    """One process after another on the same disk."""

    def __init__(self, history: ReplicaHistory, id_: int) -> None:
        self.history = history
        self.world = history.world
        self.id = id_
        self.log: ReplicaLog | StoredLog = ReplicaLog()
        self.directory = 0
        """The id of its disk's directory, which it keeps as long as the disk."""
        self.incarnation = 0
        self.up = False
        self.epoch = -1
        self.image: Image | None = None
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.waiting: list[tuple[int, int]] = []
        """Offset and value of what is not acknowledged yet."""
        self._fetch = 0
        self._session_with = NOBODY
        """The leader of the fetch session."""
        self._told: FetchFrom | None = None
        """The last position that the leader got."""
        self.sessions: dict[int, LedSession] = {}
        """The sessions of followers."""
        self.watchers: dict[FetchedPartition, None] = {}

    # life

    def start(self, *, clean: bool) -> None:
        """A process begins on what the disk has."""
        self.incarnation += 1
        self.up = True
        self.image = self.leader = self.follower = None
        self._session_with, self.sessions, self.watchers = NOBODY, {}, {}
        self.epoch = self.history.controller.register(self.id, self.directory, clean=clean)
        self._beat(self.incarnation)

    def crash(self, *, loses: bool) -> None:
        self.world.say(f"broker {self.id}", "crashes", "and loses" if loses else "")
        self.up = False
        self.leader = self.follower = None
        self.waiting = []
        self.log.crash(loses=loses)

    def replace_disk(self) -> None:
        """Before it starts again: with an empty one."""
        self.world.say(f"broker {self.id}", "gets another disk")
        self.log = ReplicaLog()
        self.directory += 1

    def _beat(self, incarnation: int) -> None:
        if incarnation != self.incarnation or not self.up:
            return
        if self.history.reaches(self.id, 0):
            ready = self.image is not None and self.image.offset >= self.epoch
            known = self.history.controller.heartbeat(self.id, self.epoch, ready=ready)
            assert known, "somebody else registered with this id"
        self.maintain()
        self.world.after(0.5, lambda: self._beat(incarnation))

    def maintain(self) -> None:
        """Run periodic tasks at random."""
        if self.world.likely(0.5):
            self.log.flush()
        role = self.leader or self.follower
        if role is not None:
            self.log.watermark = role.high_watermark
        self.look_at_members()

    # metadata

    def hear(self, image: Image) -> None:
        """The metadata log has more, in its order."""
        self.image = image
        self.note_news()
        if image.directories[self.id] != self.directory:
            self._tell_directory()
        assignment = image.assignment
        if assignment.leader == self.id:
            self._lead(assignment)
        else:
            self._follow(assignment)
        self.look_at_members()

    def _tell_directory(self) -> None:
        """Report the directory of the replica; repeated for every image that differs."""
        epoch, directory = self.epoch, self.directory
        self.history.send(self.id, 0, lambda: self.history.controller.assign(self.id, epoch, directory))

    def _lead(self, assignment: ReplicaAssignment) -> None:
        if self.leader is None or assignment.leader_epoch > self.leader.assignment.leader_epoch:
            watermark = self.follower.high_watermark if self.follower else self.log.watermark
            if self.leader:
                watermark = self.leader.high_watermark
            self.log.begin(assignment.leader_epoch)
            self.waiting = []
            self.leader = Leader(self.id, assignment, self.log.end, watermark, self.world.now, MAX_LAG)
            self.follower = None
        else:
            self.leader.assign(assignment, self.log.end, self.world.now)

    def _follow(self, assignment: ReplicaAssignment) -> None:
        watermark = self.leader.high_watermark if self.leader else self.log.watermark
        self.leader, self.waiting = None, []
        self.log.begin_to_follow()
        if self.follower is None:
            self.follower = Follower(assignment.leader_epoch, watermark)
            self._ask(self.incarnation)
        self.follower.leader_epoch = assignment.leader_epoch

    # following

    def _ask(self, incarnation: int) -> None:
        """Fetch from the leader, and again when it has answered or does not."""
        if incarnation != self.incarnation or not self.up or self.follower is None or self.image is None:
            return
        self._fetch += 1
        number, leader = self._fetch, self.image.assignment.leader
        wanted = self.follower.next_fetch(self.log.starts, self.log.end)
        begins = self._session_with != leader
        asked = wanted if begins or wanted != self._told else None
        # Before the response it is unknown if there is a session.
        self._session_with, self._told, epoch = NOBODY, wanted, self.epoch
        if leader > 0:
            self.history.send(
                self.id,
                leader,
                lambda: self.history.brokers[leader].fetched(self.id, incarnation, number, begins, asked, epoch),
            )
        self.world.after(PATIENCE, lambda: self._ask_again(incarnation, number))

    def _ask_again(self, incarnation: int, number: int) -> None:
        """Unless another request followed."""
        if number == self._fetch:
            self._ask(incarnation)

    def answered(self, incarnation: int, number: int, answer: Answer | None) -> None:
        """Handle the leader's response; responses to older fetches are ignored."""
        if incarnation != self.incarnation or not self.up or number != self._fetch or self.follower is None:
            return
        self._session_with = NOBODY if answer is None else answer.leader
        if answer is not None and answer.leader_epoch == self.follower.leader_epoch and answer.offset == self.log.end:
            self._take(answer, self.follower)
        busy = answer is not None and (answer.batches or answer.parting)
        self.world.after(0.0 if busy else PAUSE, lambda: self._ask_again(incarnation, number))

    def _take(self, answer: Answer, follower: Follower) -> None:
        if answer.parting is not None:
            end = follower.truncation_end(self.log.starts, self.log.end, answer.parting)
            self.world.say(f"broker {self.id}", "cuts its log at", end, "told", answer.parting)
            self.log.truncate(end)
            return
        self.log.copy(answer.batches, answer.leader_epoch)
        follower.append(self.log.end, answer.watermark)

    # leading

    def fetched(
        self, who: int, incarnation: int, number: int, begins: bool, asked: FetchFrom | None, epoch: int
    ) -> None:
        """A follower fetches: at the start of a session, with changed partitions, or for new records."""
        session = self._asked(who, number, begins, asked, epoch) if self.up else None
        if session is None:
            self._reply(who, incarnation, number, None)
            return
        answer = self._look(who, session, epoch)
        if answer is None or answer.batches or answer.parting or self.world.likely(0.5):
            self._send_answer(who, incarnation, session, answer)
        else:
            self.world.after(PAUSE, lambda: self._look_again(who, incarnation, session, number))

    def _look_again(self, who: int, incarnation: int, session: LedSession, number: int) -> None:
        """After a wait; the follower has sent nothing new."""
        if self.up and self.sessions.get(who) is session and session.number == number:
            self._send_answer(who, incarnation, session, self._look(who, session, None))

    def _send_answer(self, who: int, incarnation: int, session: LedSession, answer: Answer | None) -> None:
        if session.news:
            level = self.leader is not None and self.leader.is_level(who)
            session.set_answer(answer, lacks=not level or (answer is not None and answer.parting is not None))
        self._reply(who, incarnation, session.number, answer)

    def _reply(self, who: int, incarnation: int, number: int, answer: Answer | None) -> None:
        self.history.send(self.id, who, lambda: self.history.brokers[who].answered(incarnation, number, answer))

    def _asked(self, who: int, number: int, begins: bool, asked: FetchFrom | None, epoch: int) -> LedSession | None:
        session = self._session(who, number, begins)
        if session is not None:
            if asked is not None:
                session.want(asked)
            session.handle_request(who, epoch, self.world.now)
        return session

    def _look(self, who: int, session: LedSession, epoch: int | None) -> Answer | None:
        """Return the response of a session; only partitions with changes are read."""
        if not session.news:
            return Answer(self.id, session.asks_for.leader_epoch, NOWHERE)
        return self._answer(who, session.asks_for, epoch)

    def _session(self, who: int, number: int, begins: bool) -> LedSession | None:
        session = self.sessions.get(who)
        if begins:
            if session is not None:
                session.end()
            session = self.sessions[who] = LedSession(self)
        elif session is None or number != session.number + 1:
            return None
        session.number = number
        return session

    def note_news(self) -> None:
        """Notify sessions of a change."""
        for watcher in self.watchers:
            if watcher.session is not None:
                watcher.session.mark_changed(watcher)

    def record_fetch(self, follower: int, moment: float) -> None:
        """A follower without listed partitions was caught up at that fetch."""
        if self.leader is not None:
            self.leader.record_idle_fetch(follower, moment)

    def _answer(self, who: int, asked: FetchFrom, broker_epoch: int | None) -> Answer | None:
        """Answer a fetch. Without an epoch it is a repeated read with no new information about the follower."""
        leader = self.leader
        if leader is None or asked.leader_epoch != leader.assignment.leader_epoch:
            return None
        parting = epochs.find_divergence(self.log.starts, self.log.end, asked.offset, asked.last_epoch)
        if parting is not None:
            return Answer(self.id, asked.leader_epoch, asked.offset, parting=parting)
        if broker_epoch is not None:
            if not leader.fetch(who, asked.offset, broker_epoch, self.world.now):
                return None
            self.look_at_members()
        found = self.log.read(asked.offset, MOST)
        return Answer(self.id, asked.leader_epoch, asked.offset, found, leader.high_watermark)

    def look_at_members(self) -> None:
        """Advance, acknowledge, propose."""
        leader = self.leader
        if leader is None or self.image is None:
            return
        brokers = self.image.brokers
        if leader.advance(brokers, self.world.now):
            self.note_news()
        leader.check()
        self._acknowledge(leader)
        proposal = leader.propose(brokers, self.world.now)
        if proposal is not None:
            self._propose(leader, proposal)

    def _acknowledge(self, leader: Leader) -> None:
        for offset, value in self.waiting:
            if offset < leader.high_watermark:
                self.history.acknowledged(offset, value)
        self.waiting = [(offset, value) for offset, value in self.waiting if offset >= leader.high_watermark]

    def _propose(self, leader: Leader, proposal: Proposal) -> None:
        """Over a network that may lose both directions; the caller retries while it has no response."""
        incarnation = self.incarnation

        def answer(refusal: ProposalRejection | None) -> None:
            if self.incarnation == incarnation and self.leader is leader and refusal is not None:
                leader.handle_rejection(proposal, refusal)

        def ask() -> None:
            refusal = self.history.controller.alter(self.id, proposal)
            self.history.send(0, self.id, lambda: answer(refusal))

        def once_more() -> None:
            if self.up and self.incarnation == incarnation and self.leader is leader and leader.proposal is proposal:
                self.history.send(self.id, 0, ask)
                self.world.after(PATIENCE, once_more)

        once_more()

    def produce(self, value: int) -> None:
        """A client's write with acks=all."""
        if self.leader is None or not self.leader.has_quorum:
            return
        self.note_news()
        self.waiting.append((self.log.append(self.leader.assignment.leader_epoch, value), value))
        self.leader.append(self.log.end)
        self.look_at_members()

    def read(self, offset: int) -> int | None:
        """A client's read; nothing behind the high watermark."""
        if self.leader is None or offset >= self.leader.high_watermark:
            return None
        return self.log.batches[offset][1]
