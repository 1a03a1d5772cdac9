"""Runs a machine over a log: the one place where a decision becomes state.

    ask(event) ──► decide ──► append to the log ──► replay ──► alarms, notes ──► replies

Nothing is replayed that is not in the log, unless it is to die with the process, and nothing is answered that is not
replayed. Where an append fails the machine's state is in doubt, so it is dropped and built again from the log; who
waits for an answer is told so.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ottla.broker.alarms import Alarms
from ottla.broker.snapshots import Snapshots
from ottla.clock import Clock
from ottla.coordination.machine import Machine, Reply
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import FileSlice
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.storage.log import Log
from ottla.storage.log_config import INT_MAX
from ottla.storage.producer_entry import Origin
from ottla.storage.reading_beside import READING_BESIDE

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine[Any, Any])
READ_BYTES = 1024 * 1024
KeyAndValue = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Pending:
    """What stands for a reply that is still to come."""

    ticket: int


class Runtime(Generic[M]):
    """A machine kept alive by a log."""

    def __init__(
        self,
        make: Callable[[], M],
        log: Log,
        *,
        encode: Callable[[Any], KeyAndValue | None],
        decode: Callable[[bytes | None, bytes | None], Any],
        clock: Clock,
        durable: bool,
        appended: Callable[[int], None] = lambda size: None,
        alarms: Alarms | None = None,
        noted: Callable[[Any], None] = lambda note: None,
        rebuilt: Callable[[], None] = lambda: None,
        snapshots: Snapshots | None = None,
    ) -> None:
        """With `durable` each decision is on the disk before it is answered; `appended` is told how many bytes.

        A record that `encode` makes nothing of is kept in memory only. `rebuilt` is called when the state was read
        again from the log. The log is read at once, in the thread that calls; with `snapshots` only what came after one.
        """
        self._make = make
        self.log = log
        self._encode = encode
        self._decode = decode
        self._clock = clock
        self._durable = durable
        self._appended = appended
        self._alarms = alarms
        self._noted = noted
        self._rebuilt = rebuilt
        self._snapshots = snapshots
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._tickets = itertools.count(1)
        self.machine = self._build()

    def ask(self, event: Callable[[int], Any], later: Callable[[Any], None] | None = None) -> Any:
        """The machine's reply to the event that `event` makes of a ticket; KafkaError where it cannot be kept.

        Where there is none yet the result is the `Pending` ticket: `later` is called with the reply once there is one,
        or with the KafkaError that keeps it from coming.
        """
        ticket = next(self._tickets)
        decision = self.machine.decide(event(ticket), self._clock.monotonic())
        if decision.records:
            self._keep(decision.records)
            for record in decision.records:
                self.machine.replay(record)
            self._maybe_snapshot()
        if self._alarms is not None:
            for alarm in decision.alarms:
                self._alarms.set(alarm)
        for note in decision.notes:
            self._noted(note)
        return self._deliver(decision.replies, ticket, later)

    def retire(self, error: KafkaError) -> None:
        """Let go of a log that is no more, and tell `error` to those who wait."""
        for later in self._disarm():
            later(error)

    def _deliver(self, replies: Sequence[Reply], ticket: int, later: Callable[[Any], None] | None) -> Any:
        """Hand out replies. An answer may let a client's next request in, so this comes last."""
        own: Any = Pending(ticket)
        if later is not None:
            self._waiting[ticket] = later
        for reply in replies:
            if reply.ticket == ticket:
                own = reply.message
                self._waiting.pop(ticket, None)
            elif (waiting := self._waiting.pop(reply.ticket, None)) is not None:
                waiting(reply.message)
        return own

    def _keep(self, records: Sequence[Any]) -> None:
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(max_bytes=INT_MAX)
        for record in records:
            pair = self._encode(record)
            if pair is not None:
                builder.append(now_ms, *pair)
        if not builder.count:
            return
        batch = builder.build()
        try:
            self.log.append(batch, leader_epoch=0, now_ms=now_ms, origin=Origin.COORDINATOR)
            if self._durable:
                self.log.flush()
        except KafkaError as error:
            logger.error("%s; the state is read again from %s", error, self.log.directory)
            self._start_again(error)
            raise
        self._appended(len(batch))
        if self._snapshots is not None:
            self._snapshots.appended(len(batch))

    def _maybe_snapshot(self) -> None:
        if self._snapshots is not None and self._snapshots.due:
            records = self.machine.records()  # type: ignore[attr-defined]  # who has snapshots has it
            values = (self._encode(record) for record in records)
            self._snapshots.write(self.log, (pair[1] or b"" for pair in values if pair), self._clock.wall_ms())

    def _start_again(self, error: KafkaError) -> None:
        self.machine = self._build()
        waiting = self._disarm()
        self._rebuilt()
        for later in waiting:
            later(error)

    def _disarm(self) -> list[Callable[[Any], None]]:
        """Forget alarms and who waits."""
        if self._alarms is not None:
            self._alarms.clear()
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return waiting

    def _build(self) -> M:
        machine = self._make()
        kept, offset = self._snapshots.load(self.log) if self._snapshots is not None else ([], self.log.start_offset)
        try:
            for key, value in itertools.chain(((None, value) for value in kept), self._stored(offset)):
                record = self._decode(key, value)
                if record is not None:
                    machine.replay(record)
        except CorruptRecordError as error:
            text = f"the state in {self.log.directory} cannot be read: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
        return machine

    def _stored(self, offset: int) -> Iterator[KeyAndValue]:
        while (piece := self._piece(offset)) is not None:
            columns = decode(read_slice(piece), from_offset=offset)
            for row in range(columns.count):
                yield columns.key(row), columns.value(row)
            offset = columns.next_offset

    def _piece(self, offset: int) -> FileSlice | None:
        with READING_BESIDE:  # a machine may be built in a thread of the disk's
            return self.log.read(offset, READ_BYTES)


def read_slice(piece: FileSlice) -> bytes:
    """A piece of a log, in memory."""
    return os.pread(piece.file.fileno(), piece.size, piece.position)
