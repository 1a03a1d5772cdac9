"""Runs a machine over a log: the one place where a decision becomes state.

    ask(event) ──► decide ──► append to the log ──► replay ──► reply

Nothing is replayed that is not in the log, and nothing is answered that is not replayed. Where an append fails the
machine's state is in doubt, so it is dropped and built again from the log.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from ottla.clock import Clock
from ottla.coordination.machine import Machine
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import FileSlice
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.storage.log import Log
from ottla.storage.log_config import INT_MAX

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Machine[Any, Any])
READ_BYTES = 1024 * 1024
KeyAndValue = tuple[bytes | None, bytes | None]


class Runtime(Generic[M]):
    """A machine kept alive by a log."""

    def __init__(
        self,
        make: Callable[[], M],
        log: Log,
        *,
        encode: Callable[[Any], KeyAndValue],
        decode: Callable[[bytes | None, bytes | None], Any],
        clock: Clock,
        durable: bool,
        appended: Callable[[int], None] = lambda size: None,
    ) -> None:
        """With `durable` each decision is on the disk before it is answered; `appended` is told how many bytes."""
        self._make = make
        self._log = log
        self._encode = encode
        self._decode = decode
        self._clock = clock
        self._durable = durable
        self._appended = appended
        self._tickets = itertools.count(1)
        self.machine = self._build()

    def ask(self, event: Callable[[int], Any]) -> Any:
        """The machine's reply to the event that `event` makes of a ticket; KafkaError where it cannot be kept."""
        ticket = next(self._tickets)
        decision = self.machine.decide(event(ticket), self._clock.monotonic())
        if decision.records:
            self._keep(decision.records)
            for record in decision.records:
                self.machine.replay(record)
        return next(reply.message for reply in decision.replies if reply.ticket == ticket)

    def _keep(self, records: tuple[Any, ...]) -> None:
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(max_bytes=INT_MAX)
        for record in records:
            builder.append(now_ms, *self._encode(record))
        batch = builder.build()
        try:
            self._log.append(batch, leader_epoch=0, now_ms=now_ms)
            if self._durable:
                self._log.flush()
        except KafkaError as error:
            logger.error("%s; the state is read again from %s", error, self._log.directory)
            self.machine = self._build()
            raise
        self._appended(len(batch))

    def _build(self) -> M:
        machine = self._make()
        try:
            for key, value in self._stored():
                record = self._decode(key, value)
                if record is not None:
                    machine.replay(record)
        except CorruptRecordError as error:
            text = f"the state in {self._log.directory} cannot be read: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
        return machine

    def _stored(self) -> Iterator[KeyAndValue]:
        offset = self._log.start_offset
        while (piece := self._log.read(offset, READ_BYTES)) is not None:
            columns = decode(read_slice(piece), from_offset=offset)
            for row in range(columns.count):
                yield columns.key(row), columns.value(row)
            offset = columns.next_offset


def read_slice(piece: FileSlice) -> bytes:
    """A piece of a log, in memory."""
    return os.pread(piece.file.fileno(), piece.size, piece.position)
