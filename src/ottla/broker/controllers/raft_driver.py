"""Does what the quorum's machine wants, in its order, and tells it of what follows.

    event ──► Raft ──► wishes: to the disk, to whoever asked, to others ──► what the log looks like now ──► Raft …

What is on the disk is there before the wish behind it is looked at. OttlaError where one cannot be done, or the quorum does not hold:
the process ends with it, and begins again with what the disk has.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ottla.broker.controllers.active_controller import ActiveController, Answer, Guard, unguarded
from ottla.broker.controllers.controller_snapshots import ControllerSnapshots
from ottla.broker.controllers.quorum_log import QuorumLog
from ottla.broker.machines.metadata_cut import cut_level
from ottla.clock import Clock
from ottla.coordination.cluster.events import Event as ClusterEvent
from ottla.coordination.controller.events import ControllerEvent
from ottla.coordination.quorum import wire
from ottla.coordination.quorum.events import (
    Action,
    AdvanceHighWatermark,
    AppendControlRecords,
    AppendFetched,
    Event,
    Halt,
    LeaderChanged,
    LogChanged,
    PersistElectionState,
    ReportProblem,
    SendRecords,
    SendRequest,
    SendResponse,
    SendSnapshotChunk,
    TruncateLog,
    WriteSnapshotChunk,
)
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.errors import ErrorCode, KafkaError, OttlaError
from ottla.protocol.schema import Message

logger = logging.getLogger(__name__)
MOST_TOLD = 20


class Others(Protocol):
    """The way to the other nodes, and back to who asked."""

    def send(self, node: int, number: int, request: Message) -> None:
        """Ask a node; the answer is told later, under that number."""

    def reply(self, ticket: int, response: Message) -> None:
        """Answer who asked under that ticket, if it is still there."""


class RaftDriver:
    """One replica of the quorum that is at work."""

    def __init__(
        self,
        raft: Raft,
        log: QuorumLog,
        others: Others,
        clock: Clock,
        chance: Callable[[], float],
        begin: Callable[[int], ActiveController] | None = None,
        guard: Guard = unguarded,
    ) -> None:
        """`chance` returns another number of [0, 1) each time; `begin` makes the active controller of an epoch in which this node leads.

        `guard` calls each step: after one that failed there is none.
        """
        self.snapshots: ControllerSnapshots | None = None
        """Set by whoever makes it, whose loop is not to wait for them."""
        self.raft = raft
        self.wake_at = raft.wake_at
        """The next moment at which a `Tick` changes something; kept, since the loop asks at each turn."""
        self.term: ActiveController | None = None
        self._begin = begin
        self._guard = guard
        self._log = log
        self._others = others
        self._clock = clock
        self._chance = chance
        self._told: set[str] = set()

    def step(self, event: Event) -> None:
        """Give an event to the state machine, and carry out the actions that it returns."""
        self._guard(lambda: self._step(event))

    def _step(self, event: Event) -> None:
        events = deque([event])
        while events:
            for wish in self.raft.step(events.popleft(), self._clock.monotonic(), self._chance()):
                if self._grant(wish):
                    events.append(LogChanged(self._log.shape()))
        if self.term is None and self._begin is not None and self.raft.state is State.LEADER:
            self.term = self._begin(self.raft.epoch)
            self.term.committed(self.raft.high_watermark)
            self.look()
        self.wake_at = self.raft.wake_at

    def decide(self, event: ControllerEvent | ClusterEvent, answer: Answer) -> None:
        """Have the active controller decide, if this node is the one."""
        self._guard(lambda: self._decide(event, answer))

    def _decide(self, event: ControllerEvent | ClusterEvent, answer: Answer) -> None:
        if self.term is None:
            answer(KafkaError(ErrorCode.NOT_CONTROLLER, f"node {self.raft.me.id} is not the active controller"))
            return
        self.term.ask(event, answer)
        self.look()

    def look(self) -> None:
        """Tell the machine of what the active controller has written."""
        if self._log.log.end_offset != self.raft.log.end:
            self.step(LogChanged(self._log.shape()))

    def look_anew(self) -> None:
        """Tell the machine what the log looks like, of which something may have gone at its beginning."""
        self.step(LogChanged(self._log.shape()))

    def _grant(self, wish: Action) -> bool:
        """Whether the log is another by it."""
        match wish:
            case PersistElectionState():
                self._log.persist(wish.state)
            case AppendControlRecords():
                self._log.append_control(wish.epoch, wish.records)
                return True
            case AppendFetched():
                self._log.append(wish.records, wish.leader_epoch)
                return True
            case TruncateLog():
                level = cut_level(self._log.log, wish.offset)
                logger.log(level, "the metadata parts from the leader's at offset %d, and is cut there", wish.offset)
                self._log.truncate(wish.offset)
                return True
            case WriteSnapshotChunk():
                return self._keep_piece(wish)
            case LeaderChanged():
                self._end_term()
                self._say_who_leads(wish)
            case AdvanceHighWatermark():
                self._count_as_committed(wish.high_watermark)
            case ReportProblem():
                self._tell_once(wish.sentence)
            case Halt():
                raise OttlaError(wish.sentence)
            case _:
                self._tell_others(wish)
        return False

    def _tell_once(self, sentence: str) -> None:
        """Whoever asks on is told of no more, nor are more than a few who ask."""
        if sentence not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(sentence)
            logger.warning(sentence)

    def _keep_piece(self, wish: WriteSnapshotChunk) -> bool:
        self._log.keep_piece(wish.snapshot, wish.position, wish.data, last=wish.last)
        if wish.last and self.snapshots is not None:
            self.snapshots.begin_anew()
        return wish.last

    def _count_as_committed(self, high_watermark: int) -> None:
        if self.term is not None:
            self.term.committed(high_watermark)
        if self.snapshots is not None:
            self.snapshots.committed(high_watermark)

    def _tell_others(self, wish: Action) -> None:
        match wish:
            case SendRequest():
                self._others.send(wish.to, wish.number, wish.request)
            case SendResponse():
                self._others.reply(wish.ticket, wish.response)
            case SendRecords():
                response: Any = wish.response
                wire.metadata_partition(response).records = self._log.read(wish.offset, wish.max_bytes)  # type: ignore[union-attr]
                self._others.reply(wish.ticket, response)
            case SendSnapshotChunk():
                self._answer_piece(wish)

    def _answer_piece(self, wish: SendSnapshotChunk) -> None:
        held: Any = wire.metadata_partition(wish.response)
        piece = self._log.read_piece(wish.snapshot, wish.position, wish.max_bytes)
        if piece is None:
            held.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        elif wish.position > piece[0]:
            held.error_code = ErrorCode.POSITION_OUT_OF_RANGE
        else:
            held.size, held.unaligned_records = piece
        self._others.reply(wish.ticket, wish.response)

    def _end_term(self) -> None:
        term, self.term = self.term, None
        if term is not None:
            term.retire()

    def _say_who_leads(self, wish: LeaderChanged) -> None:
        who = "nobody leads" if wish.leader_id is None else f"node {wish.leader_id} leads"
        logger.info("%s the quorum in epoch %d, as far as node %s knows", who, wish.epoch, self.raft.me)
