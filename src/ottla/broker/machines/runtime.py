"""Runs a machine over a log: the one place where a decision becomes state.

    ask(event) ──► decide ──► append to the log ──► replay ──► alarms, notes ──► replies

Nothing is replayed that is not in the log, unless it is to die with the process, and nothing is answered that is not
replayed. Where an append fails the machine's state is in doubt, so it is dropped and built again from the log; who
waits for an answer is told so.

What "in the log" means differs. The metadata's runtime is durable: a decision is forced to the disk before it is replayed, as
what follows from it, such as the folders of a new topic, must not outlive it. Groups and transactions are replayed and answered
when their records are appended, as Kafka's coordinators do with one replica: a crash of the process loses nothing of that, and a
crash of the machine what was not yet flushed, as with every record of a client (the settings `log.flush.…`). Where other brokers
have copies of the log, the replay does not wait for them, but every answer does, and is held until all that the state stood on
when it was given is committed (`Hooks.hold`). Who leads no more retires the machine; what it had decided is in the log, or is not.

A reply may be to an event of long ago. A join is answered by whatever ends the rebalance: its asker gets `Pending`, and its
callback waits under the ticket in `_waiting` until some decision has a reply for that ticket.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from ottla.broker.machines.alarms import Alarms
from ottla.broker.machines.snapshots import Snapshots
from ottla.clock import Clock
from ottla.coordination.machine import Machine, Reply
from ottla.errors import CorruptRecordError, KafkaError
from ottla.model import INT32_MAX, FileSlice
from ottla.records.batch import BatchHeader, iter_headers, verify
from ottla.records.builder import BatchBuilder
from ottla.records.columns import Columns, decode
from ottla.records.control import ControlType
from ottla.records.end_marker import decode_end_marker
from ottla.storage.log import Log
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.segments.segment_list import READER_LOCK

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine[Any, Any])
READ_BYTES = 1024 * 1024
KeyAndValue = tuple[bytes | None, bytes | None]


class Pending(Struct, frozen=True):
    """What stands for a reply that is still to come."""

    ticket: int


class Transactional(Struct, frozen=True):
    """What a machine makes of transactions in its log."""

    producer_of: Callable[[Any], tuple[int, int] | None]
    """Id and epoch of the producer within whose transaction a record is written."""
    within: Callable[[Any, int, int], Any]
    """A record that was read, as part of a transaction of that id and epoch."""
    ended: Callable[[int, bool], Any]
    """The end of a transaction, as a record: which producer's, and whether it was committed."""


def replay_each(machine: Any, records: Sequence[Any]) -> None:
    """Let records become state, one after the other."""
    for record in records:
        machine.replay(record)


class Coding(Struct, frozen=True):
    """How a machine's records stand in its log."""

    encode: Callable[[Any], KeyAndValue | None]
    """None for a record that is kept in memory only."""
    decode: Callable[[bytes | None, bytes | None], Any]
    """None for a record of a kind that is not known."""
    transactional: Transactional | None = None
    replay_all: Callable[[Any, Sequence[Any]], None] = replay_each
    """Lets the records of one decision become state; in their order, as `replay` does one by one."""


HandOut = Callable[[KafkaError | None], None]
"""Gives replies to those who wait for them, or this error instead."""


class Hooks(Struct, frozen=True):
    """What else is done as a machine goes on."""

    appended: Callable[[int], None] = lambda size: None
    """Told how many bytes of records came into the log."""
    noted: Callable[[Any], None] = lambda note: None
    """Told each note of a decision."""
    rebuilt: Callable[[], None] = lambda: None
    """Called when the state was read again from the log."""
    check: Callable[[], None] = lambda: None
    """Called before an append; the KafkaError that it raises says why none may be made, and nothing has happened."""
    hold: Callable[[HandOut], bool] = lambda hand_out: False
    """Whether the replies wait until what is in the log is committed: `hand_out` is called then, or with what went wrong."""
    alarms: Alarms | None = None


NO_HOOKS = Hooks()


class Runtime(Generic[M]):
    """A machine kept alive by a log."""

    def __init__(
        self,
        make: Callable[[], M],
        log: Log,
        coding: Coding,
        clock: Clock,
        *,
        durable: bool,
        hooks: Hooks = NO_HOOKS,
        snapshots: Snapshots | None = None,
        leader_epoch: Callable[[], int] = lambda: 0,
    ) -> None:
        """With `durable` each decision is on the disk before it is answered.

        The log is read at once, in the thread that calls; with `snapshots` only what came after one.
        """
        self._make = make
        self.log = log
        self._coding = coding
        self._clock = clock
        self._durable = durable
        self._hooks = hooks
        self._snapshots = snapshots
        self._leader_epoch = leader_epoch
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._tickets = itertools.count(1)
        self.machine = self._build()

    def due(self, name: Hashable) -> float | None:
        """When an alarm of the machine goes off, by the monotonic clock; None where it is not set."""
        return None if self._hooks.alarms is None else self._hooks.alarms.due(name)

    def ask(self, event: Callable[[int], Any], later: Callable[[Any], None] | None = None) -> Any:
        """The machine's reply to the event that `event` makes of a ticket; KafkaError where it cannot be kept.

        Where there is none yet the result is the `Pending` ticket: `later` is called with the reply once there is one,
        or with the KafkaError that keeps it from coming. Without `later` the reply comes at once, also if it is not committed.
        """
        ticket = next(self._tickets)
        # Nothing has changed yet: if the append fails, the decision is thrown away.
        decision = self.machine.decide(event(ticket), self._clock.monotonic())
        if decision.records:
            self._keep(decision.records)
            self._coding.replay_all(self.machine, decision.records)
            self._maybe_snapshot()
        if self._hooks.alarms is not None:
            for alarm in decision.alarms:
                self._hooks.alarms.set(alarm)
        for note in decision.notes:
            self._hooks.noted(note)
        return self._deliver(decision.replies, ticket, later)

    def stored(self) -> Iterator[Any]:
        """All records in the log, those too that a snapshot has made superfluous."""
        return self._stored(self.log.start_offset)

    def transaction_ended(self, producer_id: int, *, commit: bool) -> None:
        """Let the marker that was appended to the log become state."""
        assert self._coding.transactional is not None
        self.machine.replay(self._coding.transactional.ended(producer_id, commit))

    def retire(self, error: KafkaError) -> None:
        """Let go of a log that is no more, and tell `error` to those who wait."""
        for later in self._disarm():
            later(error)

    def _deliver(self, replies: Sequence[Reply], ticket: int, later: Callable[[Any], None] | None) -> Any:
        """Hand out replies. An answer may let a client's next request in, so this comes last."""
        own: Any = next((reply.message for reply in replies if reply.ticket == ticket), Pending(ticket))
        if later is None:
            replies = [reply for reply in replies if reply.ticket != ticket]
        else:
            self._waiting[ticket] = later
        if replies and self._hooks.hold(lambda error: self._hand_out(replies, error)):
            return own if later is None else Pending(ticket)
        if not isinstance(own, Pending):
            self._waiting.pop(ticket, None)
        self._hand_out(replies, None)
        return own

    # The callback of a ticket is taken out before it is called: it may hang up, ask again, or end another's wait.
    def _hand_out(self, replies: Sequence[Reply], error: KafkaError | None) -> None:
        for reply in replies:
            waiting = self._waiting.pop(reply.ticket, None)
            if waiting is not None:
                waiting(reply.message if error is None else error)

    def _keep(self, records: Sequence[Any]) -> None:
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(max_bytes=INT32_MAX)
        for record in records:
            pair = self._coding.encode(record)
            if pair is not None:
                builder.append(now_ms, *pair)
        if not builder.count:
            return
        # All records of a decision are of one producer, or of none: a request to commit within a transaction does
        # nothing else.
        producer = self._coding.transactional.producer_of(records[0]) if self._coding.transactional else None
        batch = builder.build(*producer, transactional=True) if producer else builder.build()
        self._hooks.check()
        try:
            self.log.append(batch, leader_epoch=self._leader_epoch(), now_ms=now_ms, origin=Origin.COORDINATOR)
            if self._durable:
                self.log.flush()
        except KafkaError as error:
            logger.error("%s; the state is read again from %s", error, self.log.directory)
            self._start_again(error)
            raise
        self._hooks.appended(len(batch))
        if self._snapshots is not None:
            self._snapshots.appended(len(batch))

    def _maybe_snapshot(self) -> None:
        if self._snapshots is not None and self._snapshots.due:
            records = self.machine.records()  # type: ignore[attr-defined]  # who has snapshots has it
            values = (self._coding.encode(record) for record in records)
            self._snapshots.write(self.log, (pair[1] or b"" for pair in values if pair), self._clock.wall_ms())

    def _start_again(self, error: KafkaError) -> None:
        self.machine = self._build()
        waiting = self._disarm()
        # Alarms and who waited were state of the old machine. The new one begins as after a restart, and everybody
        # has a fresh session.
        self._hooks.rebuilt()
        for later in waiting:
            later(error)

    def _disarm(self) -> list[Callable[[Any], None]]:
        """Forget alarms and who waits."""
        if self._hooks.alarms is not None:
            self._hooks.alarms.clear()
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return waiting

    def _build(self) -> M:
        machine = self._make()
        kept, offset = (
            self._snapshots.load(self.log, self._clock.wall_ms())
            if self._snapshots is not None
            else ([], self.log.start_offset)
        )
        try:
            for value in kept:
                self._replay(machine, None, value)
            for record in self._stored(offset):
                machine.replay(record)
        except CorruptRecordError as error:
            raise self.log.out_of_service(offset, error) from error
        return machine

    def _replay(self, machine: M, key: bytes | None, value: bytes | None) -> None:
        record = self._coding.decode(key, value)
        if record is not None:
            machine.replay(record)

    def _stored(self, offset: int) -> Iterator[Any]:
        while (piece := self._piece(offset)) is not None:
            data = read_slice(piece)
            if self._coding.transactional is not None:
                headers = list(iter_headers(data))
                # Commits within transactions count when their marker comes, so such pieces are gone through batch by
                # batch; the others, nearly all, as columns.
                if any(header.producer_id >= 0 for _, header in headers):
                    yield from self._by_batch(self._coding.transactional, data, headers)
                    offset = headers[-1][1].next_offset
                    continue
            columns = decode(data, from_offset=offset)
            yield from self._records(columns)
            offset = columns.next_offset

    def _by_batch(
        self, transactional: Transactional, data: bytes, headers: Sequence[tuple[int, BatchHeader]]
    ) -> Iterator[Any]:
        for position, header in headers:
            verify(data, position, header)
            if header.is_control:
                marker = decode_end_marker(data, position, header)
                if marker is not None:
                    yield transactional.ended(header.producer_id, marker.type is ControlType.COMMIT)
                continue
            records = self._records(decode(data[position : position + header.size_bytes]))
            if header.is_transactional:
                id_, epoch = header.producer_id, header.producer_epoch
                records = (transactional.within(record, id_, epoch) for record in records)
            yield from records

    def _records(self, columns: Columns) -> Iterator[Any]:
        for row in range(columns.count):
            record = self._coding.decode(columns.key(row), columns.value(row))
            if record is not None:
                yield record

    def _piece(self, offset: int) -> FileSlice | None:
        with READER_LOCK:  # a machine may be built in a thread of the disk's
            return self.log.read(offset, READ_BYTES)


def read_slice(piece: FileSlice) -> bytes:
    """A piece of a log, in memory."""
    return os.pread(piece.file.fileno(), piece.size, piece.position)
