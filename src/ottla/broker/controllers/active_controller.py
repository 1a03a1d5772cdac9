"""The active controller over the quorum's log: what it decides is replayed when it is appended, and answered when it is committed.

    asked ──► Controller ──► records ──► the log, forced ──► replayed ──► … most voters have it ──► answered

There is one for each time that this node leads, made of the newest snapshot and the log. When the node leads no more it is dropped with all that it
knows, committed or not, and whoever waits hears NOT_CONTROLLER: what was decided may count, if the next leader has it. So nothing is ever taken back.

An answer that wrote nothing may tell of what is not committed, so it waits as well.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.broker.controllers.quorum_log import QuorumLog
from ottla.broker.machines.alarms import Alarms
from ottla.broker.machines.observed_metadata import machine_of
from ottla.broker.machines.runtime import READ_BYTES
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.events import Event
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import NoOpRecord, RegisterBrokerRecord
from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.controller import SESSIONS, SOFT, Controller
from ottla.coordination.controller.events import Activated, BalanceDue, ControllerEvent, RecoveryDue, SessionsDue
from ottla.coordination.machine import Alarm
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.records.batch import iter_headers, stamp
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.storage.state_log.snapshot import find_snapshots, read_state

logger = logging.getLogger(__name__)
Answer = Callable[[Any], None]
"""Takes the reply, or the KafkaError because of which there is none."""
BALANCE, RECOVERY, IDLE = "balance", "recovery", "idle"
"""The alarms that no machine sets."""
MOST_RECORDS = 10_000
"""In one batch, as in Kafka's."""
BATCH_BYTES = 1 << 20


class Pace(NamedTuple):
    """How often something is done that nobody asks for, in seconds; None is never."""

    idle: float | None = 0.5
    """A record that says nothing, where there is no other: who waits for the watermark sees it move."""
    balance: float | None = 300.0
    recovery: float | None = 300.0


KAFKAS = Pace()
Guard = Callable[[Callable[[], Any]], Any]
"""Calls something, and stops the node if that fails: what the log has and what the machine has may differ then."""


def unguarded(work: Callable[[], Any]) -> Any:
    """Raise failures to the caller."""
    return work()


class ActiveController:
    """One node's term as the leader of the metadata's log."""

    def __init__(
        self,
        log: QuorumLog,
        epoch: int,
        config: ControllerConfig,
        clock: Clock,
        timers: Timers,
        pace: Pace = KAFKAS,
        guard: Guard = unguarded,
    ) -> None:
        """Read the metadata and give every broker a new session. CorruptRecordError if it cannot be read.

        `guard` calls what is due at an alarm.
        """
        self.epoch = epoch
        self._pace = pace
        self._log = log
        self._clock = clock
        self._alarms = Alarms(timers, lambda name: guard(lambda: self._ring(name)))
        self._waiting: deque[tuple[int, Any, Answer]] = deque()
        self._committed = 0
        metadata, registered_at = metadata_of(log)
        self.machine = Controller(config, metadata, log.log.end_offset, registered_at)
        self.ask(Activated(), nobody)
        for name, span in ((IDLE, pace.idle), (BALANCE, pace.balance), (RECOVERY, pace.recovery)):
            self._set_alarm(name, span)

    def ask(self, event: ControllerEvent | Event, answer: Answer) -> bool:
        """Decide; `answer` comes when all that the log has by then is committed. Whether the log is longer by it."""
        begin = self._log.log.end_offset
        self.machine.end_offset = begin
        try:
            decision = self.machine.decide(event, self._clock.monotonic())
        except KafkaError as error:  # it asks for more than one request may
            answer(error)
            return False
        except Exception:  # nothing has changed by it, and the next request may be a better one
            logger.exception("no answer to %r", event)
            answer(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the controller failed at this; its log says why"))
            return False
        for note in decision.notes:
            logger.info("%s", note)
        written = [record for record in decision.records if not isinstance(record, SOFT)]
        self._write(written)
        for heard in decision.records:
            if isinstance(heard, SOFT):
                self.machine.replay(heard)
        for alarm in decision.alarms:
            self._alarms.set(alarm)
        for reply in decision.replies:
            self._waiting.append((self._log.log.end_offset, reply.message, answer))
        self._hand_out()
        return bool(written)

    def committed(self, high_watermark: int) -> None:
        """Most voters have all below."""
        self._committed = max(self._committed, high_watermark)
        self._hand_out()

    def retire(self) -> None:
        self._alarms.clear()
        waiting, self._waiting = self._waiting, deque()
        for _, _, answer in waiting:
            answer(KafkaError(ErrorCode.NOT_CONTROLLER, "this controller leads no more; ask who does"))

    def _hand_out(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._committed:
            _, reply, answer = self._waiting.popleft()
            answer(reply)

    def _write(self, records: Sequence[Message]) -> None:
        """Append, and let it become state."""
        if not records:
            return
        begin = self._log.log.end_offset
        self._log.append(b"".join(self._batches(records)), self.epoch)
        self.machine.replay_all(records, begin)
        self._set_alarm(IDLE, self._pace.idle)

    def _batches(self, records: Sequence[Message]) -> Iterator[bytes]:
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

    # what nobody asks for

    def _set_alarm(self, name: str, span: float | None) -> None:
        if span is not None:
            self._alarms.set(Alarm(name, self._clock.monotonic() + span))

    def _ring(self, name: Hashable) -> None:
        if name == SESSIONS:
            self.ask(SessionsDue(), nobody)
        elif name == IDLE:
            self._write([NoOpRecord()])
        elif name == BALANCE:
            self._set_alarm(BALANCE, self._pace.balance)
            self.ask(BalanceDue(0), lambda more: self._go_on(BALANCE, more))
        else:
            self._set_alarm(RECOVERY, self._pace.recovery)
            self.ask(RecoveryDue(0), lambda more: self._go_on(RECOVERY, more))

    def _go_on(self, name: str, more: Any) -> None:
        """The next of so many, where they are not all done."""
        if more is True:
            self._set_alarm(name, 0.0)


def nobody(reply: Any) -> None:
    """Takes an answer that concerns no one."""


def metadata_of(log: QuorumLog) -> tuple[ClusterMetadata, dict[int, int]]:
    """What the newest snapshot and the log behind it make, and at which offsets brokers registered since."""
    found = find_snapshots(log.directory)
    begin = found[0].offset if found else 0
    metadata = machine_of(read_state(log.directory, found[0])) if found else ClusterMetadata()
    registered_at = dict.fromkeys(metadata.registrations, begin - 1)
    for offset, record in records_from(log, begin):
        metadata.replay(record)
        if isinstance(record, RegisterBrokerRecord):
            registered_at[record.broker_id] = offset
    return metadata, registered_at


def records_from(log: QuorumLog, offset: int) -> Iterator[tuple[int, Message]]:
    """Every record of the metadata from there on, at its offset."""
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
