"""A replica of the metadata's log that votes on it, or would (KIP-595, KIP-630, KIP-853, KIP-996). Pure: told events, it answers with wishes.

**An election.** Each epoch has one leader at most, since a leader needs most of the votes and nobody votes twice in an epoch: the vote is on
the disk before it is answered. Nobody votes for a log that lacks what its own has, by the epoch of the last record, then by the end; so who
wins has all that was ever on most disks. Before it takes up a later epoch a voter asks whether most would vote for it: one that was cut
off, and comes back, disturbs nobody who hears the leader.

**The log** goes from the leader to all others, who fetch it as any copy is fetched, and say with each fetch what they have on the
disk. Where a log parts from the leader's it is cut; where the leader has no longer what one lacks it takes a snapshot. What is
committed `leadership` says.

**Who drives it** appends, forces, sends and answers, in the order of the wishes, and tells of it: `events`. Requests go to one node at a
time; what comes under another number than the last is nobody's. `wake_at` is when time alone changes something. The leader's own
records are appended by whoever decides them, as long as `state` is LEADER, in `epoch`; what counts is what `Commit` says.

answering: what others ask · hearing: what they answer · acting: what it does of itself · membership: who votes · joining: that it does
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.coordination.quorum import acting, answering, hearing, membership, wire
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    Voter,
)
from ottla.coordination.quorum.events import (
    Answer,
    Answered,
    AppendControl,
    Asked,
    Commit,
    Event,
    Fail,
    Lead,
    Left,
    Logged,
    Lost,
    Met,
    Persist,
    Send,
    Truncate,
    Wish,
)
from ottla.coordination.quorum.joining import NOTHING, Presence
from ottla.coordination.quorum.leadership import Leadership
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.peers import Peers
from ottla.coordination.quorum.state import TRANSITIONS, ElectionState, State
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint
from ottla.coordination.quorum.votes import Votes
from ottla.coordination.quorum.waiting import Piece, WaitingFetch
from ottla.coordination.replication.epochs import EpochEnd
from ottla.errors import ErrorCode
from ottla.protocol.schema import Message

NEVER = float("inf")
LEADER_CHANGE_VERSION = 0
"""Kafka 4.3 reads the record in no other, whatever it says of itself: the next one ends its controllers."""
OF_A_TIMEOUT = 4
"""Who knows that the leader is gone waits up to that part of an election's timeout."""
LONGEST_ELECTION_MS = 4000
"""What the timeout grows to at most, where attempts fail; one that is set to more stays as it is."""
IDLE = (State.UNATTACHED, State.FOLLOWER, State.RESIGNED)


class Raft:
    """One replica: where it stands, what it has promised, and what it knows of the others."""

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
        decides: bool = False,
        presence: Presence = NOTHING,
    ) -> None:
        """`saved` is what the disk has of its promises; `bootstrap` are nodes to ask where the log names no voters.

        `decides` says that it would be the active controller where it leads, and not only lead.
        """
        self.presence, self.ask_at = presence, now
        """What the voters' record is to say of it, and from when on it may ask for that."""
        self.decides = decides
        self.me, self.cluster_id, self.config, self.log = me, cluster_id, config, log
        self.state = State.UNATTACHED
        self.epoch, self.leader_id, self.voted = ElectionState()
        self.high_watermark = log.snapshot.end_offset
        """Everything below is committed, as far as this one knows."""
        self.endpoints: list[Endpoint] = []
        """Where the leader is, if it does not vote here."""
        self.votes: Votes | None = None
        """Where it is CANDIDATE or PROSPECTIVE."""
        self.leadership: Leadership | None = None
        """Where it is LEADER."""
        self.waiting: list[WaitingFetch] = []
        self.has_fetched = False
        """Whether the leader of this epoch has answered it."""
        self.fetching: Piece | None = None
        self.writing = False
        """Whether the log is being changed; where it ends then, is not known yet."""
        self.leaders_watermark = -1
        self.has_committed = False
        """Whether something of its own epoch is committed, where it is LEADER."""
        self.change: membership.Change | None = None
        """Of the voters, which is under way."""
        self.failures = 0
        """Attempts to be elected in a row for which there was too little time."""
        self.successors: Sequence[ReplicaKey] = ()
        self.unaware: set[int] = set()
        """Who is to be told that it has resigned."""
        self.deadline = NEVER
        self.deciders: dict[int, bool] = {}
        """Of those who were met, whether they could be the active controller."""
        self.leaving = False
        self.peers = Peers(config)
        self.now, self._chance = now, chance
        self.bootstrap = bootstrap
        self._turn = 0
        self._elsewhere = False
        self._wishes: list[Wish] = []
        self._begin(saved or ElectionState())

    # what drives it

    def step(self, event: Event, now: float, chance: float) -> list[Wish]:
        """What is to be done, in that order; `chance` is of [0, 1), and another each time."""
        self.now, self._chance = now, chance
        match event:
            case Asked():
                answering.answer(self, event.ticket, event.request)
            case Answered():
                self.deciders.setdefault(event.by, False)
                if self.peers.answered(event.by, event.number):
                    hearing.hear(self, event.by, event.response)
            case Lost():
                if self.peers.answered(event.by, event.number):
                    self.lost(event.by)
                    self._note_gone(event)
            case Met():
                self.deciders[event.node] = event.decides
            case Logged():
                self._logged(event.shape)
            case Left():
                self._leave()
        for node in self.peers.expire(now):
            self.lost(node)
        acting.go_on(self)
        wishes, self._wishes = self._wishes, []
        return wishes

    @property
    def wake_at(self) -> float:
        """The moment at which time alone changes something."""
        moments = [self.peers.wake_at(self.now), *(each.deadline for each in self.waiting)]
        if not self.leaving and not self.writing:
            moments.append(self.deadline)
        if self.change is not None:
            moments.append(self.change.deadline)
        if self.leadership is not None:
            moments.append(self.leadership.tell_at)
            if len(self.voters) > 1:
                moments.append(self.leadership.check_at)
        return min(moments)

    def do(self, wish: Wish) -> None:
        self._wishes.append(wish)

    def send(self, node: int, request: Message) -> None:
        self.do(Send(node, self.peers.ask(node, self.now), request))

    # what is known

    @property
    def voters(self) -> VoterSet:
        return self.log.voters

    @property
    def is_voter(self) -> bool:
        return self.voters.has(self.me)

    @property
    def stands(self) -> bool:
        """Whether it would lead. Not a log in which somebody decides, where it cannot go on with that itself."""
        return self.is_voter and (self.decides or not self.log.holds_metadata)

    @property
    def gives_way(self) -> bool:
        """Whether it leads and cannot decide, and a voter could who can, and lacks nothing."""
        if self.leadership is None or self.decides:
            return False
        able = (key for key in self.voters.keys if self.deciders.get(key.id))
        return any(self.leadership.progress(key).end >= self.log.end for key in able)

    @property
    def told(self) -> wire.Told:
        """Who leads, for an answer."""
        endpoints = self.endpoints if self.leader_id is None else self.voters.endpoints(self.leader_id)
        return wire.Told(self.epoch, self.leader_id, endpoints or self.endpoints)

    @property
    def election_state(self) -> ElectionState:
        return ElectionState(self.epoch, self.leader_id, self.voted)

    # where it goes

    def _begin(self, saved: ElectionState) -> None:
        """A process begins on what its disk has."""
        self.epoch, self.leader_id, self.voted = saved
        if saved.epoch < self.log.epoch:
            self.become_unattached(self.log.epoch)
        elif saved.leader_id == self.me.id:
            self.state, self.deadline = State.RESIGNED, self._election_deadline()
            self.voted = None
            self.unaware = set(self.voters.others(self.me))
        elif saved.voted is not None and saved.voted.is_same(self.me) and self.stands:
            self.state = State.CANDIDATE
            self._stand()
        elif saved.leader_id is not None and saved.leader_id in self.voters.ids:
            self._follow()
        else:
            self.deadline = self._election_deadline()
        if self.stands and len(self.voters) == 1 and self.state in IDLE:
            self.become_prospective()

    def become_unattached(self, epoch: int, leader_id: int | None = None) -> None:
        """It is in that epoch and hears of no leader, or does not know where it is."""
        voted = self.voted if epoch == self.epoch else None
        self._become(State.UNATTACHED, ElectionState(epoch, leader_id, voted))
        self.deadline = self._election_deadline()

    def become_follower(self, epoch: int, leader_id: int) -> None:
        voted = self.voted if epoch == self.epoch else None
        self._become(State.FOLLOWER, ElectionState(epoch, leader_id, voted))
        self._follow()

    def _follow(self) -> None:
        self.state = State.FOLLOWER
        self.deadline = self.fetch_deadline()
        self.has_fetched = self._elsewhere = False

    def become_prospective(self) -> None:
        """Ask whether most would vote for it, and promise nothing."""
        self._become(State.PROSPECTIVE, self.election_state)
        self._stand()

    def become_candidate(self) -> None:
        """Vote for itself in the next epoch, and ask for the others' votes."""
        self._become(State.CANDIDATE, ElectionState(self.epoch + 1, None, self.me))
        self._stand()

    def _stand(self) -> None:
        self.deadline = self._election_deadline()
        self.votes = Votes(self.voters)
        self.count(self.me.id, granted=True)

    def count(self, voter: int, *, granted: bool) -> None:
        assert self.votes is not None
        self.votes.count(voter, granted=granted)
        if self.state is State.PROSPECTIVE:
            if self.votes.is_won:
                self.become_candidate()
            elif self.votes.is_lost:
                self.withdraw()
        elif self.votes.is_won:
            self._become_leader(self.votes)

    def give_up(self) -> None:
        """The votes did not come in time. Where most are there, they may be slow: the next attempt has more of it."""
        assert self.votes is not None
        self.failures += self.votes.could_be_won
        if self.state is State.PROSPECTIVE:
            self.withdraw()
        else:
            self.become_prospective()

    def _leave(self) -> None:
        """Stand for nothing any more; who has asked for votes already waits for what comes of it."""
        self.leaving = True
        if self.state is State.PROSPECTIVE:
            self.withdraw()

    def let_others_stand(self) -> None:
        """It has waited long enough for a leader that it would vote for another, and does not stand itself."""
        if self.state in (State.PROSPECTIVE, State.CANDIDATE):
            self.become_unattached(self.epoch)
        self.has_fetched, self._elsewhere = False, True
        self.deadline = self._election_deadline()

    def withdraw(self) -> None:
        """Too few would vote for it."""
        if self.leader_id is not None and self.leader_id != self.me.id:
            self.become_follower(self.epoch, self.leader_id)
        else:
            self.become_unattached(self.epoch)

    def _become_leader(self, votes: Votes) -> None:
        self._become(State.LEADER, ElectionState(self.epoch, self.me.id, self.voted))
        self.deadline, self.failures = NEVER, 0
        self.leadership = Leadership(self.me, self.log.end, self.now, self.config)
        self.do(AppendControl(self.epoch, tuple(self._first_records(votes))))

    def _first_records(self, votes: Votes) -> list[ControlRecord]:
        """That it leads; and who votes, where the log does not say that yet."""
        keys = [key for key in self.voters.keys if key.id in votes.granted]
        first: list[ControlRecord] = [
            LeaderChangeMessage(
                LEADER_CHANGE_VERSION,
                self.me.id,
                [Voter(key.id) for key in self.voters.keys],
                [Voter(key.id) for key in keys],
            )
        ]
        if self.log.kraft_version and not self.log.voters_end:
            first += [KRaftVersionRecord(0, self.log.kraft_version), self.voters.record()]
        return first

    def resign(self) -> None:
        """It led, and does no more in this epoch; whoever comes next has to win a later one."""
        assert self.leadership is not None
        successors = self.leadership.successors(self.voters)
        successors.sort(key=lambda key: not self.deciders.get(key.id, False))
        self._become(State.RESIGNED, ElectionState(self.epoch, self.me.id, None))
        self.successors = successors
        self.unaware = {key.id for key in successors}
        self.deadline = self._election_deadline()

    def _become(self, state: State, to: ElectionState) -> None:
        """Go there; what must not be forgotten is on the disk first."""
        assert state in TRANSITIONS[self.state], f"{self.state} → {state}"
        assert to.epoch >= self.epoch
        before, self.state = self.election_state, state
        self.epoch, self.leader_id, self.voted = to
        if to != before:
            self.do(Persist(to))
        if to[:2] != before[:2] or state is State.RESIGNED:
            self.do(Lead(None if state is State.RESIGNED else to.leader_id, to.epoch))
            self.endpoints, self.fetching, self.leaders_watermark = [], None, -1
        self.votes = self.leadership = None
        self.has_committed = False
        self._disappoint()
        self.peers.reset()

    def _disappoint(self) -> None:
        """Those who wait for a leader wait no longer."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            self.do(Answer(each.ticket, self.told.fetch(ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        sentence = f"node {self.me} does not lead any more; whether the change stays, the next leader knows"
        membership.finish(self, membership.Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, sentence))

    def vote_for(self, candidate: ReplicaKey) -> None:
        """A promise of this epoch."""
        assert self.voted is None or self.voted.is_same(candidate)
        if self.voted is None:
            self.voted = candidate
            self.do(Persist(self.election_state))
            self.deadline = self._election_deadline()

    def learn(self, leader_id: int | None, epoch: int, endpoints: Sequence[Endpoint] = ()) -> None:
        """Somebody says who leads in an epoch; of earlier ones nobody wants to know."""
        if leader_id == self.me.id:
            leader_id = None  # it knows better whether it leads
        if epoch > self.epoch:
            if leader_id is None:
                self.become_unattached(epoch)
            else:
                self.become_follower(epoch, leader_id)
        elif epoch == self.epoch and leader_id is not None:
            if self.leader_id not in (None, leader_id):
                self.do(Fail(f"nodes {self.leader_id} and {leader_id} both lead the quorum in epoch {epoch}"))
                return
            # Who is PROSPECTIVE knows it already, and asks on: that others name it does not mean that it lives.
            if self.leader_id is None or self.state is State.UNATTACHED:
                self.become_follower(epoch, leader_id)
        if endpoints and self.leader_id == leader_id is not None:
            self.endpoints = list(endpoints)

    # the log

    def _logged(self, shape: LogShape) -> None:
        had_vote, self.log, self.writing = self.is_voter, shape, False
        if self.is_voter and not had_vote and self.leadership is None:
            self.deadline = self.fetch_deadline()
        self.commit(min(self.leaders_watermark, shape.end))
        self.commit(shape.snapshot.end_offset)
        if self.leadership is not None:
            self.look_at_progress()

    def commit(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.do(Commit(offset))

    def look_at_progress(self) -> None:
        """Move what is committed as far as it may go, and answer those who wait for that or for records."""
        assert self.leadership is not None
        reached = self.leadership.committed(self.voters, self.log.durable)
        if reached is not None:
            self.has_committed = True
            self.commit(reached)
        membership.look_at_change(self)
        answering.look_at_waiting(self)

    def cut(self, leader: EpochEnd) -> None:
        """The leader's log has this end in that epoch."""
        end = self.log.cut(leader)
        if end < self.high_watermark:
            self.do(
                Fail(
                    f"the leader's metadata parts from this node's at offset {end}, and {self.high_watermark} was "
                    "committed: one of them lost what it had; if that is this node, empty its directory and add it again"
                )
            )
            return
        self.writing = True
        self.do(Truncate(end))

    def begin_snapshot(self, snapshot: SnapshotId) -> None:
        """The leader has no longer what this one lacks."""
        self.fetching = Piece(snapshot, 0)

    # what it does of itself

    def lost(self, node: int) -> None:
        """It did not answer, or did not help: where it leads another is asked next, and then it again."""
        self.peers.leave_alone(node, self.now)
        membership.newcomer_lost(self, node)
        self._turn += 1
        self._elsewhere = node == self.leader_id

    def _note_gone(self, event: Lost) -> None:
        """If it was the leader whose process has ended, wait no longer for it than keeps two from standing at once.

        Should it live after all, who hears it grants no vote.
        """
        if event.is_gone and self.votes is not None:
            self.votes.gone.add(event.by)
        if not event.is_gone or self.state is not State.FOLLOWER or event.by != self.leader_id:
            return
        self.has_fetched = False
        span = self.config.election_timeout_ms * self._chance / OF_A_TIMEOUT / 1000
        self.deadline = min(self.deadline, self.now + span)

    def fetch_deadline(self) -> float:
        return self.now + self.config.fetch_timeout_ms / 1000

    def _election_deadline(self) -> float:
        """Twice as long after each failure but the first."""
        timeout_ms = self.config.election_timeout_ms
        grown = timeout_ms << min(max(self.failures - 1, 0), LONGEST_ELECTION_MS.bit_length())
        return self.now + max(timeout_ms, min(grown, LONGEST_ELECTION_MS)) * (1 + self._chance) / 1000

    def heard_leader(self) -> None:
        """The leader has answered a fetch."""
        self.has_fetched, self._elsewhere, self.failures = True, False, 0
        self.deadline = self.fetch_deadline()

    @property
    def is_voted_out(self) -> bool:
        """Whether it leads on without a vote, and that is committed."""
        return self.has_committed and not self.is_voter and self.log.voters_end <= self.high_watermark

    @property
    def is_awaited(self) -> bool:
        """Whether others would wait for it if it ended now: they have yet to hear that it leads no more, or have voted for it."""
        return self.state is State.CANDIDATE or (self.state is State.RESIGNED and bool(self.unaware))

    @property
    def whom_to_ask(self) -> int | None:
        """Whom to fetch from: the leader, or where that is not known or does not answer, whoever may know."""
        if self.state is State.FOLLOWER and not self._elsewhere:
            return self.leader_id
        others = self.voters.others(self.me) or [id_ for id_ in self.bootstrap if id_ != self.me.id]
        return others[self._turn % len(others)] if others else None

    # what must hold

    def check(self) -> None:
        """Assert what must hold between any two steps."""
        state = self.state
        assert (self.votes is not None) == (state in (State.PROSPECTIVE, State.CANDIDATE))
        assert (self.leadership is not None) == (state is State.LEADER)
        assert state is not State.LEADER or self.leader_id == self.me.id
        assert state is not State.FOLLOWER or self.leader_id not in (None, self.me.id)
        assert state is not State.CANDIDATE or self.voted == self.me
        assert state is State.LEADER or not self.waiting
        assert self.epoch >= self.log.epoch
        assert self.high_watermark <= self.log.end or self.writing
