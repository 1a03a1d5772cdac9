"""The active controller: decides requests, appends the records to the metadata log, and responds once they are committed.

    event ──► Controller.decide ──► records ──► append, flush ──► replay ──► … high watermark passes them ──► response

There is one `ActiveController` per epoch in which this node leads. It is built from the newest snapshot and the log. State is
replayed at the append, before the commit, so that the next request is decided by it. When the node loses the leadership, the
whole object is dropped with its uncommitted state, and pending requests fail with NOT_CONTROLLER. Their records may still be
committed by the next leader. So the state is never rolled back.

A response to a request that wrote no records may depend on uncommitted state, so it waits for the same high watermark.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.observed_metadata import build_machine
from ottla.broker.state_machines.alarms import Alarms
from ottla.broker.state_machines.log_slices import READ_BYTES
from ottla.clock import Clock
from ottla.coordination.cluster.events import Event
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import NoOpRecord, RegisterBrokerRecord
from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.controller import SESSION_RECORDS, SESSIONS, Controller
from ottla.coordination.controller.draft import BrokerFenced
from ottla.coordination.controller.events import (
    ControllerActivated,
    ControllerEvent,
    PreferredElectionDue,
    SessionTimerExpired,
    UncleanElectionDue,
)
from ottla.coordination.machine import Alarm
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.records.batch import iter_headers, stamp
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.storage.state_log.snapshot import find_snapshots, read_state

logger = logging.getLogger(__name__)
Answer = Callable[[Any], None]
"""A callback for the reply, or for the KafkaError that replaces it."""
BALANCE, RECOVERY, IDLE = "balance", "recovery", "idle"
"""Alarms that this module sets itself; the others are set by the state machine."""
MOST_RECORDS = 10_000
"""The limit for one batch, as in Kafka."""
BATCH_BYTES = 1 << 20


class Pace(NamedTuple):
    """Intervals of periodic work in seconds; None disables it."""

    idle: float | None = 0.5
    """Interval for a NoOpRecord if nothing else is written, so that the high watermark advances."""
    balance: float | None = 300.0
    recovery: float | None = 300.0


KAFKAS = Pace()
Guard = Callable[[Callable[[], Any]], Any]
"""Runs a callback and stops the node if it fails: the log and the replayed state may differ after a failure."""


def call_directly(work: Callable[[], Any]) -> Any:
    """Raise failures to the caller."""
    return work()


class ActiveController:
    """One epoch in which this node leads the quorum of the metadata log."""

    def __init__(
        self,
        log: QuorumLog,
        epoch: int,
        config: ControllerConfig,
        clock: Clock,
        timers: Timers,
        pace: Pace = KAFKAS,
        guard: Guard = call_directly,
        *,
        survives_failures: bool = False,
    ) -> None:
        """Read the metadata and start a new session for every broker. CorruptRecordError if it cannot be read.

        `guard` runs the work of an alarm. With `survives_failures`, a failed append is answered with its error and the
        state is read again, because no other node could lead. Otherwise the error is raised, and the node stops.
        """
        self.epoch = epoch
        self._config = config
        self._survives_failures = survives_failures
        self._pace = pace
        self._log = log
        self._clock = clock
        self._alarms = Alarms(timers, lambda name: guard(lambda: self._handle_alarm(name)))
        self._waiting: deque[tuple[int, Any, Answer]] = deque()
        self._committed = 0
        self.machine = self._build()
        self.submit(ControllerActivated(), ignore_reply)
        for name, span in ((IDLE, pace.idle), (BALANCE, pace.balance), (RECOVERY, pace.recovery)):
            self._set_alarm(name, span)

    def _build(self) -> Controller:
        metadata, registered_at = load_metadata(self._log)
        return Controller(self._config, metadata, self._log.log.end_offset, registered_at)

    def submit(self, event: ControllerEvent | Event, answer: Answer) -> bool:
        """Decide an event and append its records. Return True if records were written.

        `answer` is called with the reply once everything in the log up to then is committed, or at once with an error.
        """
        begin = self._log.log.end_offset
        self.machine.end_offset = begin
        try:
            decision = self.machine.decide(event, self._clock.monotonic())
        except KafkaError as error:  # the request needs more records than one request may write
            answer(error)
            return False
        except Exception:  # the state has not changed, so other requests can still be served
            logger.exception("no answer to %r", event)
            answer(
                KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller failed to execute the request: see its log")
            )
            return False
        for note in decision.notes:
            logger.log(logging.WARNING if isinstance(note, BrokerFenced) else logging.INFO, "%s", note)
        written = [record for record in decision.records if not isinstance(record, SESSION_RECORDS)]
        try:
            self._append(written)
        except KafkaError as error:
            if not self._survives_failures:
                raise
            logger.error("%s; the state is built again from %s", error, self._log.directory)
            self.machine = self._build()
            answer(error)
            return False
        for record in decision.records:
            if isinstance(record, SESSION_RECORDS):
                self.machine.replay(record)
        for alarm in decision.alarms:
            self._alarms.set(alarm)
        for reply in decision.replies:
            self._waiting.append((self._log.log.end_offset, reply.message, answer))
        self._send_replies()
        return bool(written)

    def handle_commit(self, high_watermark: int) -> None:
        """Send the responses to requests with all records below the high watermark."""
        self._committed = max(self._committed, high_watermark)
        self._send_replies()

    def retire(self) -> None:
        self._alarms.clear()
        waiting, self._waiting = self._waiting, deque()
        for _, _, answer in waiting:
            answer(
                KafkaError(
                    ErrorCode.NOT_CONTROLLER,
                    "this controller is not the leader any more: send the request to the leader",
                )
            )

    def _send_replies(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._committed:
            _, reply, answer = self._waiting.popleft()
            answer(reply)

    def _append(self, records: Sequence[Message]) -> None:
        """Append the records and replay them."""
        if not records:
            return
        begin = self._log.log.end_offset
        self._log.append(b"".join(self._build_batches(records)), self.epoch)
        self.machine.replay_all(records, begin)
        self._set_alarm(IDLE, self._pace.idle)

    def _build_batches(self, records: Sequence[Message]) -> Iterator[bytes]:
        offset, now_ms, builder = self._log.log.end_offset, self._clock.wall_ms(), BatchBuilder(max_bytes=BATCH_BYTES)
        count = 0
        for value in map(encode_record, records):
            if count == MOST_RECORDS or not builder.append(now_ms, None, value):
                yield self._stamped(builder, offset)
                offset, count, builder = offset + count, 0, BatchBuilder(max_bytes=BATCH_BYTES)
                builder.append(now_ms, None, value)
            count += 1
        yield self._stamped(builder, offset)

    def _stamped(self, builder: BatchBuilder, offset: int) -> bytes:
        batch = bytearray(builder.build())
        stamp(batch, 0, offset, self.epoch)
        return bytes(batch)

    # periodic work

    def _set_alarm(self, name: str, span: float | None) -> None:
        if span is not None:
            self._alarms.set(Alarm(name, self._clock.monotonic() + span))

    def _handle_alarm(self, name: Hashable) -> None:
        if name == SESSIONS:
            self.submit(SessionTimerExpired(), ignore_reply)
        elif name == IDLE:
            self._append([NoOpRecord()])
        elif name == BALANCE:
            self._set_alarm(BALANCE, self._pace.balance)
            self.submit(PreferredElectionDue(0), lambda more: self._repeat(BALANCE, more))
        else:
            self._set_alarm(RECOVERY, self._pace.recovery)
            self.submit(UncleanElectionDue(0), lambda more: self._repeat(RECOVERY, more))

    def _repeat(self, name: str, more: Any) -> None:
        """Continue at once if the reply says that partitions are left."""
        if more is True:
            self._set_alarm(name, 0.0)


def ignore_reply(reply: Any) -> None:
    """Ignore the reply to an event that no client has requested."""


def load_metadata(log: QuorumLog) -> tuple[ClusterMetadata, dict[int, int]]:
    """Return the state from the newest snapshot and the log, and the offset of each broker's registration.

    Brokers that are registered in the snapshot have the offset before the snapshot's end.
    """
    found = find_snapshots(log.directory)
    begin = found[0].offset if found else 0
    metadata = build_machine(read_state(log.directory, found[0])) if found else ClusterMetadata()
    registered_at = dict.fromkeys(metadata.registrations, begin - 1)
    for offset, record in records_from(log, begin):
        metadata.replay(record)
        if isinstance(record, RegisterBrokerRecord):
            registered_at[record.broker_id] = offset
    return metadata, registered_at


def records_from(log: QuorumLog, offset: int) -> Iterator[tuple[int, Message]]:
    """Yield each metadata record from `offset` on, with its offset. Control batches are skipped."""
    while data := log.read(offset, READ_BYTES):
        for position, header in iter_headers(data):
            if not header.is_control:
                for row in records_in(data[position : position + header.size_bytes]):
                    if row[0] >= offset:
                        yield row
            offset = max(offset, header.next_offset)


def records_in(batch: bytes) -> Iterator[tuple[int, Message]]:
    columns = decode(batch)
    for row in range(columns.count):
        yield columns.offsets[row], decode_record(columns.value(row) or b"")
