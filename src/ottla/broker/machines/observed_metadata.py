"""The cluster's metadata where others decide it: a copy of their log, and what is committed of it as state.

    appended ──► committed, as the leader says ──► replayed

What is above the high watermark is in the log and not yet true: the next leader may have something else there. Nothing of it
becomes state, and so a cut never has to take anything back.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ottla.broker.machines.metadata_coding import METADATA_CODING
from ottla.broker.machines.metadata_cut import cut_level
from ottla.broker.machines.observed_snapshots import KAFKAS, ObservedSnapshots, SnapshotRules
from ottla.broker.machines.runtime import READ_BYTES, Runtime, read_slice
from ottla.clock import Clock
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.coordination.cluster.replaying import replay_all
from ottla.coordination.cluster.standing_image import standing_image
from ottla.coordination.quorum.observer import RETRY_MS, Append, Cut, KeepPiece, LogEnd, Outcome, Retry
from ottla.coordination.replication.epochs import EpochEnd, cut_at
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.records.batch import BatchHeader, iter_headers
from ottla.records.columns import decode
from ottla.storage.files.durable import sync_path
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.log import Log
from ottla.storage.state_log.snapshot import (
    EMPTY,
    SnapshotId,
    State,
    control_of,
    find_snapshots,
    merge_quorum,
    parse_state,
    read_state,
)
from ottla.storage.state_log.voter import Quorum

logger = logging.getLogger(__name__)
FETCHED = ".fetched"
"""How the name of a snapshot ends of which not all pieces are there."""
TURN_SECONDS = 0.05
"""How long records may become state before the loop does something else; a batch is taken whole."""


class Kept(NamedTuple):
    """A piece of a snapshot that is written, with more to come."""


class Whole(NamedTuple):
    """A snapshot that is written, and what it says."""

    snapshot: SnapshotId
    machine: ClusterMetadata
    state: State


Prepared = Outcome | Kept | Whole


class ObservedMetadata(Runtime[ClusterMetadata]):
    """What the controllers have decided, as far as it is known here."""

    def __init__(self, log: Log, clock: Clock, rules: SnapshotRules = KAFKAS) -> None:
        """What the log has already counts again once a leader says how much of it is committed."""
        self.applied = 0
        """All records below this offset are state."""
        self.committed = 0
        """All below this are to become state."""
        self.unfinished = False
        """Whether some of that had to wait, so that the loop can do something else: `go_on` goes on."""
        self.snapshots = ObservedSnapshots(log, rules, clock)
        self._newest = EMPTY
        self._last = (0, 0)
        """Epoch and time of the last batch that became state."""
        self._quorum = Quorum()
        super().__init__(ClusterMetadata, log, METADATA_CODING, clock, durable=False)

    def ask(self, event: Callable[[int], Any], later: Callable[[Any], None] | None = None) -> NoReturn:
        """Refuse: nothing is decided here."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "only the controllers of the cluster change its metadata")

    @property
    def end(self) -> LogEnd:
        """Offset and epoch from which to fetch; of the snapshot, where the log has nothing."""
        return LogEnd(self.log.end_offset, max(self.log.epochs.latest(), self._newest.epoch), self.committed)

    def prepare(self, outcome: Outcome) -> Prepared:
        """Do what takes long, in another thread than the loop's: nothing that anybody knows of is touched yet."""
        if not isinstance(outcome, KeepPiece):
            return outcome
        snapshot = SnapshotId(outcome.end_offset, outcome.epoch)
        draft = self._draft(snapshot)
        try:
            with open(draft, "r+b" if outcome.position else "wb", opener=open_regular) as file:
                file.seek(outcome.position)
                file.write(outcome.data)
                if not outcome.last:
                    return Kept()
                file.flush()
                os.fsync(file.fileno())
            state = parse_state(read_whole(draft), snapshot.file_name)
            return Whole(snapshot, machine_of(state), state)
        except CorruptRecordError as error:
            logger.error("%s; it is fetched again", error)
            draft.unlink(missing_ok=True)
            return Retry(RETRY_MS)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot write {draft}: {error}") from error

    def keep(self, outcome: Prepared) -> list[Message] | None:
        """Do what an observer's answer means; the records that became state by it, None where a snapshot stands for all of it.

        CorruptRecordError where the log cannot be understood, KafkaError where the disk does not take it.
        """
        match self.prepare(outcome) if isinstance(outcome, KeepPiece) else outcome:
            case Append() as answer:
                if answer.records:
                    self.log.append_as_is(
                        answer.records, leader_epoch=answer.leader_epoch, now_ms=self._clock.wall_ms()
                    )
                self.committed = max(self.committed, min(answer.high_watermark, self.log.end_offset))
                return self.go_on()
            case Cut() as cut:
                self._cut(EpochEnd(cut.epoch, cut.end_offset))
            case Whole() as whole:
                self._take_up(whole)
                return None
        return []

    def go_on(self) -> list[Message]:
        """Let what is committed become state, for a moment; the records that did."""
        records: list[Message] = []
        until, self.unfinished = self._clock.monotonic() + TURN_SECONDS, False
        while self.applied < self.committed and self._apply_piece(records, until):
            pass
        self._maybe_snapshot()
        return records

    def _apply_piece(self, records: list[Message], until: float) -> bool:
        """Whether there may be more to do now."""
        piece = self.log.read(self.applied, READ_BYTES)
        if piece is None:
            return False
        data = read_slice(piece)
        for position, header in iter_headers(data):
            if header.next_offset > self.committed:
                return False
            if header.next_offset > self.applied:
                records += self._replayed(data[position : position + header.size_bytes], header)
            if self.applied < self.committed and self._clock.monotonic() >= until:
                self.unfinished = True
                return False
        return True

    def _replayed(self, batch: bytes, header: BatchHeader) -> list[Message]:
        found: list[Message] = []
        if header.is_control:
            self._quorum = merge_quorum(self._quorum, control_of(batch, 0, header))
        else:
            found = list(self._records(decode(batch)))
            replay_all(self.machine, found)
        self.applied = max(self.applied, header.next_offset)
        self._last = header.leader_epoch, header.max_timestamp
        self.snapshots.replayed(header.size_bytes)
        return found

    def _maybe_snapshot(self) -> None:
        epoch, time_ms = self._last
        snapshot = SnapshotId(self.applied, epoch)
        if self.snapshots.due and not self.unfinished and not self.machine.in_transaction and snapshot > self._newest:
            self._newest = snapshot
            self.snapshots.write(snapshot, map(encode_record, standing_image(self.machine)), time_ms, self._quorum)

    def _cut(self, leader: EpochEnd) -> None:
        """Drop what the leader does not have."""
        end = cut_at(self.log.epochs.load(), self.log.end_offset, leader)
        if end < self.applied:
            raise CorruptRecordError(
                f"the controllers say that the metadata parts from this copy at offset {end}, and {self.applied} was committed: "
                f"one of them lost what it had; if that is they, move {self.log.directory} away, and it is fetched anew"
            )
        level = cut_level(self.log, end)
        logger.log(level, "the copy of the metadata parts from the leader's at offset %d, and is cut there", end)
        self.log.truncate_to(end, now_ms=self._clock.wall_ms())

    def _draft(self, snapshot: SnapshotId) -> Path:
        return self.log.directory / f"{snapshot.file_name}{FETCHED}"

    def _take_up(self, whole: Whole) -> None:
        """Have a snapshot stand for all that it holds."""
        directory, snapshot = self.log.directory, whole.snapshot
        try:
            os.replace(self._draft(snapshot), directory / snapshot.file_name)
            sync_path(directory)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot keep {snapshot.file_name}: {error}") from error
        self._go_on_at(snapshot.offset)
        for older in find_snapshots(directory)[1:]:
            (directory / older.file_name).unlink()
        self._adopt(snapshot, whole.machine, whole.state)

    def _adopt(self, snapshot: SnapshotId, machine: ClusterMetadata, state: State) -> None:
        self.machine, self._quorum, self._last = machine, state.quorum, (snapshot.epoch, state.time_ms)
        self.applied, self._newest = snapshot.offset, snapshot
        self.committed = max(self.committed, snapshot.offset)
        self.snapshots.begin_anew()

    def _go_on_at(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset, now_ms=self._clock.wall_ms())

    def _build(self) -> ClusterMetadata:
        """The newest snapshot that is whole; what came after it counts again once a leader says so."""
        for piece in self.log.directory.glob(f"*{FETCHED}"):
            piece.unlink()
        for snapshot in find_snapshots(self.log.directory):
            try:
                state = read_state(self.log.directory, snapshot)
                machine = machine_of(state)
            except (CorruptRecordError, OSError) as error:
                logger.error("%s; the one before it is read, or the metadata is fetched anew", error)
                (self.log.directory / snapshot.file_name).unlink(missing_ok=True)
                continue
            self._adopt(snapshot, machine, state)
            if not self.log.start_offset <= snapshot.offset <= self.log.end_offset:
                self._go_on_at(snapshot.offset)
            return machine
        if self.log.start_offset:
            self._go_on_at(0)
        self._adopt(EMPTY, ClusterMetadata(), State([], 0))
        return self.machine


def machine_of(state: State) -> ClusterMetadata:
    """What a snapshot's records make."""
    machine = ClusterMetadata()
    replay_all(machine, map(decode_record, state.values))
    return machine
