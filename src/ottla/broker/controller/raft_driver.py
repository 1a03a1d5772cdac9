"""Runs the Raft state machine: passes it events, executes its actions in order, and reports the resulting log.

    event ──► Raft.step ──► actions: write to disk, respond, send a request ──► LogChanged ──► Raft.step …

A write is on the disk before the next action is executed, so that a message never promises what a crash could lose. An action
that fails, or a violated invariant, raises OttlaError: the process stops, and restarts from what the disk has.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ottla.broker.controller.active_controller import ActiveController, Answer, Guard, call_directly
from ottla.broker.controller.controller_snapshots import ControllerSnapshots
from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.metadata.metadata_truncation import cut_level
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
MOST_QUOTED = 20


class QuorumPeers(Protocol):
    """Sends requests to other nodes, and responses to requests of others."""

    def send(self, node: int, number: int, request: Message) -> None:
        """Send a request; the result is an event with the same number, later."""

    def reply(self, ticket: int, response: Message) -> None:
        """Send the response to a request, if its connection is still open."""


class RaftDriver:
    """One running replica of the quorum."""

    def __init__(
        self,
        raft: Raft,
        log: QuorumLog,
        snapshots: ControllerSnapshots,
        others: QuorumPeers,
        clock: Clock,
        chance: Callable[[], float],
        begin: Callable[[int], ActiveController] | None = None,
        guard: Guard = call_directly,
    ) -> None:
        """`chance` returns another number of [0, 1) each time; `begin` makes the active controller of an epoch.

        `guard` runs each step; after a failed one no further step is run.
        """
        self.raft = raft
        self.wake_at = raft.wake_at
        """The next time at which a `Tick` changes something. Cached, because the loop reads it at each turn."""
        self.term: ActiveController | None = None
        self._begin = begin
        self._guard = guard
        self._log = log
        self._snapshots = snapshots
        self._others = others
        self._clock = clock
        self._chance = chance
        self._logged: set[str] = set()

    def step(self, event: Event) -> None:
        """Give an event to the state machine, and carry out the actions that it returns."""
        self._guard(lambda: self._step(event))

    def _step(self, event: Event) -> None:
        events = deque([event])
        while events:
            for wish in self.raft.step(events.popleft(), self._clock.monotonic(), self._chance()):
                if self._execute_action(wish):
                    events.append(LogChanged(self._log.shape()))
        if self.term is None and self._begin is not None and self.raft.state is State.LEADER:
            self.term = self._begin(self.raft.epoch)
            self.term.handle_commit(self.raft.high_watermark)
            self.report_appended()
        self.wake_at = self.raft.wake_at

    def decide(self, event: ControllerEvent | ClusterEvent, answer: Answer) -> None:
        """Have the active controller decide, if this node is active; else answer NOT_CONTROLLER."""
        self._guard(lambda: self._decide(event, answer))

    def _decide(self, event: ControllerEvent | ClusterEvent, answer: Answer) -> None:
        if self.term is None:
            answer(KafkaError(ErrorCode.NOT_CONTROLLER, f"node {self.raft.me.id} is not the active controller"))
            return
        self.term.submit(event, answer)
        self.report_appended()

    def report_appended(self) -> None:
        """Report to the state machine what the active controller has appended."""
        if self._log.log.end_offset != self.raft.log.end or self._log.retry_flush():
            self.step(LogChanged(self._log.shape()))

    def report_log(self) -> None:
        """Report the log to the state machine, after the start of the log may have been deleted."""
        self.step(LogChanged(self._log.shape()))

    def _execute_action(self, wish: Action) -> bool:
        """Execute an action. Return True if it changed the log."""
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
                return self._write_chunk(wish)
            case LeaderChanged():
                self._end_term()
                self._report_leader(wish)
            case AdvanceHighWatermark():
                self._handle_commit(wish.high_watermark)
            case ReportProblem():
                self._log_once(wish.sentence)
            case Halt():
                raise OttlaError(wish.sentence)
            case _:
                self._send_requests(wish)
        return False

    def _log_once(self, sentence: str) -> None:
        """Log a sentence once, and no more than `MOST_QUOTED` different ones, as other nodes can cause them."""
        if sentence not in self._logged and len(self._logged) < MOST_QUOTED:
            self._logged.add(sentence)
            logger.warning(sentence)

    def _write_chunk(self, wish: WriteSnapshotChunk) -> bool:
        self._log.write_chunk(wish.snapshot, wish.position, wish.data, last=wish.last)
        if wish.last:
            self._snapshots.reload()
        return wish.last

    def _handle_commit(self, high_watermark: int) -> None:
        if self.term is not None:
            self.term.handle_commit(high_watermark)
        self._snapshots.handle_commit(high_watermark)

    def _send_requests(self, wish: Action) -> None:
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
                self._send_chunk(wish)

    def _send_chunk(self, wish: SendSnapshotChunk) -> None:
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

    def _report_leader(self, wish: LeaderChanged) -> None:
        who = "there is no leader" if wish.leader_id is None else f"node {wish.leader_id} leads"
        logger.info("%s the quorum in epoch %d, as far as node %s knows", who, wish.epoch, self.raft.me)
