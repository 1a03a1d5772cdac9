"""The cluster's metadata where others decide it: a copy of their log, and what is committed of it as state.

    appended ──► committed, as the leader says ──► replayed

What is above the high watermark is in the log and not yet true: the next leader may have something else there. Nothing of it
becomes state, and so a cut never has to take anything back.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ottla.broker.machines.metadata_coding import METADATA_CODING
from ottla.broker.machines.runtime import READ_BYTES, Runtime, read_slice
from ottla.clock import Clock
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.quorum.observer import Append, Cut, KeepPiece, LogEnd, Outcome
from ottla.coordination.replication.epochs import EpochEnd, cut_at
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.records.batch import iter_headers
from ottla.records.columns import decode
from ottla.storage.log import Log
from ottla.storage.state_log.snapshot import DRAFT, SnapshotId, find_snapshots, read_state

logger = logging.getLogger(__name__)


class ObservedMetadata(Runtime[ClusterMetadata]):
    """What the controllers have decided, as far as it is known here."""

    def __init__(self, log: Log, clock: Clock) -> None:
        """What the log has already counts again once a leader says how much of it is committed."""
        self.applied = 0
        """All records below this offset are state."""
        self._snapshot_epoch = 0
        super().__init__(ClusterMetadata, log, METADATA_CODING, clock, durable=False)

    def ask(self, event: Callable[[int], Any], later: Callable[[Any], None] | None = None) -> NoReturn:
        """Refuse: nothing is decided here."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "only the controllers of the cluster change its metadata")

    @property
    def end(self) -> LogEnd:
        """Offset and epoch from which to fetch; of the snapshot, where the log has nothing."""
        return LogEnd(self.log.end_offset, max(self.log.epochs.latest(), self._snapshot_epoch))

    def keep(self, outcome: Outcome) -> list[Message]:
        """Do what an observer's answer means; the records that became state by it.

        CorruptRecordError where the log cannot be understood, KafkaError where the disk does not take it.
        """
        match outcome:
            case Append():
                if outcome.records:
                    self.log.append_as_is(
                        outcome.records, leader_epoch=outcome.leader_epoch, now_ms=self._clock.wall_ms()
                    )
                return list(self._apply(min(outcome.high_watermark, self.log.end_offset)))
            case Cut():
                self._cut(EpochEnd(outcome.epoch, outcome.end_offset))
            case KeepPiece():
                self._keep_piece(outcome)
        return []

    def _apply(self, end_offset: int) -> Iterator[Message]:
        """Let what is committed become state."""
        while self.applied < end_offset:
            piece = self.log.read(self.applied, READ_BYTES)
            if piece is None:
                return
            data = read_slice(piece)
            for position, header in iter_headers(data):
                if header.next_offset > end_offset:
                    return
                if header.next_offset > self.applied and not header.is_control:
                    yield from self._replayed(data[position : position + header.size_bytes])
                self.applied = max(self.applied, header.next_offset)

    def _replayed(self, batch: bytes) -> Iterator[Message]:
        columns = decode(batch)
        for record in self._records(columns):
            self.machine.replay(record)
            yield record

    def _cut(self, leader: EpochEnd) -> None:
        """Drop what the leader does not have."""
        end = cut_at(self.log.epochs.load(), self.log.end_offset, leader)
        if end < self.applied:
            raise CorruptRecordError(
                f"the controllers say that the metadata parts from this copy at offset {end}, and {self.applied} was committed: "
                f"one of them lost what it had; if that is they, move {self.log.directory} away, and it is fetched anew"
            )
        logger.warning("the copy of the metadata parts from the leader's at offset %d, and is cut there", end)
        self.log.truncate_to(end, now_ms=self._clock.wall_ms())

    def _keep_piece(self, piece: KeepPiece) -> None:
        snapshot = SnapshotId(piece.end_offset, piece.epoch)
        path = self.log.directory / snapshot.file_name
        draft = path.with_name(path.name + DRAFT)
        try:
            with open(draft, "r+b" if piece.position else "wb") as file:
                file.seek(piece.position)
                file.write(piece.data)
                if piece.last:
                    file.flush()
                    os.fsync(file.fileno())
            if piece.last:
                os.replace(draft, path)
                self._take_up(snapshot)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot write {draft}: {error}") from error

    def _take_up(self, snapshot: SnapshotId) -> None:
        """Have a snapshot stand for all that it holds."""
        for older in find_snapshots(self.log.directory)[1:]:
            (self.log.directory / older.file_name).unlink()
        self._go_on_at(snapshot.offset)
        self.machine = self._build()

    def _go_on_at(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset, now_ms=self._clock.wall_ms())

    def _build(self) -> ClusterMetadata:
        machine = ClusterMetadata()
        for snapshot in find_snapshots(self.log.directory):
            try:
                values = read_state(self.log.directory, snapshot).values
            except (CorruptRecordError, OSError) as error:
                logger.error("%s; the metadata is fetched anew", error)
                (self.log.directory / snapshot.file_name).unlink(missing_ok=True)
                continue
            for value in values:
                self._replay(machine, None, value)
            self.applied, self._snapshot_epoch = snapshot.offset, snapshot.epoch
            if not self.log.start_offset <= snapshot.offset <= self.log.end_offset:
                self._go_on_at(snapshot.offset)
            return machine
        if self.log.start_offset:
            self._go_on_at(0)
        self.applied = self._snapshot_epoch = 0
        return machine
