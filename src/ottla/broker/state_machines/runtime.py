"""Runs a state machine over a log: the only place where a decision becomes state.

    ask(event) ──► decide ──► append to the log ──► replay ──► timers, notes ──► replies

A record is replayed only after it was appended, unless it is kept in memory only, and a reply is sent only after the replay. If an append
fails, the state may not match the log: it is dropped and built again from the log, and pending requests receive the error.

Replies are sent once the records are appended, as Kafka's coordinators do with one replica: a crash of the process loses nothing, a crash of
the operating system loses what was not flushed (`log.flush.…`), as for any produced record. If the partition has other replicas, the replay
does not wait for them but the replies do (`Hooks.hold`). When the leadership ends, the machine is retired; its last decisions are in the new
leader's log, or are lost.

A reply may belong to an earlier event. A JoinGroup is answered by the event that completes the rebalance: its caller gets `PendingReply`, and
its callback waits under the ticket until a decision has a reply for that ticket.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from ottla.broker.state_machines.alarms import Alarms
from ottla.broker.state_machines.log_slices import READ_BYTES, read_slice
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
KeyAndValue = tuple[bytes | None, bytes | None]


class PendingReply(Struct, frozen=True):
    """The placeholder for a reply that is sent later."""

    ticket: int


class Transactional(Struct, frozen=True):
    """How a machine reads transactions in its log."""

    producer_of: Callable[[Any], tuple[int, int] | None]
    """Return the id and epoch of the producer of a transactional record; None for any other record."""
    within: Callable[[Any, int, int], Any]
    """Return a record that was read as part of a transaction of that producer id and epoch."""
    ended: Callable[[int, bool], Any]
    """Return the record for the end of a transaction: the producer id, and True for a commit."""


def replay_each(machine: Any, records: Sequence[Any]) -> None:
    for record in records:
        machine.replay(record)


class Coding(Struct, frozen=True):
    """How a machine's records are encoded in its log."""

    encode: Callable[[Any], KeyAndValue | None]
    """Return key and value; None for a record that is kept in memory only."""
    decode: Callable[[bytes | None, bytes | None], Any]
    """Return the record; None if its kind is unknown."""
    transactional: Transactional | None = None
    replay_all: Callable[[Any, Sequence[Any]], None] = replay_each
    """Replay the records of one decision in order."""
    note_offset: Callable[[Any, Any, int], None] | None = None
    """Called with the machine, a record that was replayed, and its offset in the log. Without transactions only."""


Release = Callable[[KafkaError | None], None]
"""Sends replies that were held, or the error instead."""


class Hooks(Struct, frozen=True):
    """The callbacks of a Runtime."""

    on_append: Callable[[int], None] = lambda size: None
    """Called with the size of an appended batch in bytes."""
    on_note: Callable[[Any], None] = lambda note: None
    """Called with each note of a decision."""
    on_rebuilt: Callable[[], None] = lambda: None
    """Called when the state was built again from the log after a failed append."""
    ensure_may_append: Callable[[], None] = lambda: None
    """Called before an append; raises KafkaError to reject it."""
    hold: Callable[[Release], bool] = lambda release: False
    """Return True if the replies must wait until the log is committed; `release` is called then, or with the error."""
    alarms: Alarms | None = None


NO_HOOKS = Hooks()


class Runtime(Generic[M]):
    """A state machine and its log."""

    def __init__(
        self,
        make: Callable[[], M],
        log: Log,
        coding: Coding,
        clock: Clock,
        *,
        hooks: Hooks = NO_HOOKS,
        leader_epoch: Callable[[], int] = lambda: 0,
    ) -> None:
        """Read the log in the calling thread."""
        self._make = make
        self.log = log
        self._coding = coding
        self._clock = clock
        self._hooks = hooks
        self._leader_epoch = leader_epoch
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._tickets = itertools.count(1)
        self.machine = self._build()

    def find_deadline(self, name: Hashable) -> float | None:
        """Return the deadline of a timer by the monotonic clock, in seconds; None if it is not set."""
        return None if self._hooks.alarms is None else self._hooks.alarms.find_deadline(name)

    def submit(self, event: Callable[[int], Any], later: Callable[[Any], None] | None = None) -> Any:
        """Decide the event that `event` creates from a ticket, and return the reply. Raise KafkaError if the append fails.

        If there is no reply yet, return the `PendingReply` ticket; `later` is called with the reply, or with the KafkaError that
        prevented it. Without `later` the reply is returned at once, committed or not.
        """
        ticket = next(self._tickets)
        # `decide` changes nothing: if the append fails, the decision is discarded.
        decision = self.machine.decide(event(ticket), self._clock.monotonic())
        if decision.records:
            offset = self.log.end_offset
            self._append(decision.records)
            self._coding.replay_all(self.machine, decision.records)
            if self._coding.note_offset is not None:
                for index, record in enumerate(decision.records):
                    self._coding.note_offset(self.machine, record, offset + index)
        if self._hooks.alarms is not None:
            for alarm in decision.alarms:
                self._hooks.alarms.set(alarm)
        for note in decision.notes:
            self._hooks.on_note(note)
        return self._deliver(decision.replies, ticket, later)

    def apply_transaction_end(self, producer_id: int, *, commit: bool) -> None:
        """Replay an end marker that was appended to the log."""
        assert self._coding.transactional is not None
        self.machine.replay(self._coding.transactional.ended(producer_id, commit))

    def retire(self, error: KafkaError) -> None:
        """Drop timers and fail pending requests with `error`; the log is not used any more."""
        for later in self._disarm():
            later(error)

    def _deliver(self, replies: Sequence[Reply], ticket: int, later: Callable[[Any], None] | None) -> Any:
        """Send the replies. This is the last step, because a response may start the client's next request."""
        own: Any = next((reply.message for reply in replies if reply.ticket == ticket), PendingReply(ticket))
        if later is None:
            replies = [reply for reply in replies if reply.ticket != ticket]
        else:
            self._waiting[ticket] = later
        if replies and self._hooks.hold(lambda error: self._send(replies, error)):
            return own if later is None else PendingReply(ticket)
        if not isinstance(own, PendingReply):
            self._waiting.pop(ticket, None)
        self._send(replies, None)
        return own

    # The callback is removed before it is called, because it may close the connection, submit an event, or complete another request.
    def _send(self, replies: Sequence[Reply], error: KafkaError | None) -> None:
        for reply in replies:
            waiting = self._waiting.pop(reply.ticket, None)
            if waiting is not None:
                waiting(reply.message if error is None else error)

    def _append(self, records: Sequence[Any]) -> None:
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(max_bytes=INT32_MAX)
        for record in records:
            pair = self._coding.encode(record)
            if pair is not None:
                builder.append(now_ms, *pair)
        if not builder.count:
            return
        # All records of a decision belong to the same producer or to none: TxnOffsetCommit writes nothing else.
        producer = self._coding.transactional.producer_of(records[0]) if self._coding.transactional else None
        batch = builder.build(*producer, transactional=True) if producer else builder.build()
        self._hooks.ensure_may_append()
        try:
            self.log.append(batch, leader_epoch=self._leader_epoch(), now_ms=now_ms, origin=Origin.COORDINATOR)
        except KafkaError as error:
            logger.error("%s; the state is built again from %s", error, self.log.directory)
            self._rebuild(error)
            raise
        self._hooks.on_append(len(batch))

    def _rebuild(self, error: KafkaError) -> None:
        self.machine = self._build()
        callbacks = self._disarm()
        # Timers and pending requests were state of the old machine. The new one starts as after a restart of the broker, with a
        # fresh session for every member.
        self._hooks.on_rebuilt()
        for later in callbacks:
            later(error)

    def _disarm(self) -> list[Callable[[Any], None]]:
        """Cancel all timers, and return the callbacks of pending requests."""
        if self._hooks.alarms is not None:
            self._hooks.alarms.clear()
        waiting = list(self._waiting.values())
        self._waiting.clear()
        return waiting

    def _build(self) -> M:
        machine = self._make()
        offset = self.log.start_offset
        try:
            note_offset = self._coding.note_offset
            if note_offset is None:
                for record in self._read_log(offset):
                    machine.replay(record)
            else:
                for located, record in self._located(offset):
                    machine.replay(record)
                    note_offset(machine, record, located)
        except CorruptRecordError as error:
            raise self.log.out_of_service(offset, error) from error
        return machine

    def _read_log(self, offset: int) -> Iterator[Any]:
        while (chunk := self._read_chunk(offset)) is not None:
            data = read_slice(chunk)
            if self._coding.transactional is not None:
                headers = list(iter_headers(data))
                # Transactional offset commits take effect with their marker, so a chunk with such batches is read batch by batch.
                # The others, nearly all, are decoded as columns.
                if any(header.producer_id >= 0 for _, header in headers):
                    yield from self._by_batch(self._coding.transactional, data, headers)
                    offset = headers[-1][1].next_offset
                    continue
            columns = decode(data, from_offset=offset)
            yield from self._decode_records(columns)
            offset = columns.next_offset

    def _located(self, offset: int) -> Iterator[tuple[int, Any]]:
        """Yield the records with their offsets, of a log without transactions."""
        while (chunk := self._read_chunk(offset)) is not None:
            columns = decode(read_slice(chunk), from_offset=offset)
            for row in range(columns.count):
                record = self._coding.decode(columns.key(row), columns.value(row))
                if record is not None:
                    yield columns.offsets[row], record
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
            records = self._decode_records(decode(data[position : position + header.size_bytes]))
            if header.is_transactional:
                id_, epoch = header.producer_id, header.producer_epoch
                records = (transactional.within(record, id_, epoch) for record in records)
            yield from records

    def _decode_records(self, columns: Columns) -> Iterator[Any]:
        for row in range(columns.count):
            record = self._coding.decode(columns.key(row), columns.value(row))
            if record is not None:
                yield record

    def _read_chunk(self, offset: int) -> FileSlice | None:
        with READER_LOCK:  # a machine may be built on a disk thread
            return self.log.read(offset, READ_BYTES)
