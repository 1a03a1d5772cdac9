"""The metadata image of a node that does not decide it: a copy of the metadata log, replayed up to the high watermark.

    fetched ──► appended ──► committed by the leader's high watermark ──► replayed

Records above the high watermark are in the log but not in the image, because the next leader may have other records at those
offsets. So a truncation of the log never has to undo a change of the image.

A snapshot replaces image and log: its chunks are written to a draft (`FETCHED`), and the last one is read completely before the
draft gets its name. After `max_bytes` of records, or an interval, the image is written as a snapshot of this node's own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

from ottla.broker.metadata.metadata_truncation import cut_level
from ottla.broker.metadata.observed_snapshots import KAFKAS, ObservedSnapshots, SnapshotRules, Submit, run_without_loop
from ottla.broker.state_machines.log_slices import READ_BYTES, read_slice
from ottla.clock import Clock
from ottla.coordination.cluster.features import BROKER_LEVELS, FIXED, Levels
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import RemoveTopicRecord, decode_record, encode_record
from ottla.coordination.cluster.replaying import replay_all
from ottla.coordination.quorum.observer import RETRY_MS, Append, Outcome, ReplicaEnd, Retry, TruncateToEnd, WriteChunk
from ottla.coordination.replication.epochs import EpochEnd, truncation_offset
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.protocol.schema import Message
from ottla.records.batch import BatchHeader, iter_headers
from ottla.records.columns import Columns, decode
from ottla.storage.files.durable import sync_path
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.log import Log
from ottla.storage.state_log.snapshot import (
    EMPTY,
    SnapshotId,
    SnapshotState,
    control_of,
    find_snapshots,
    merge_quorum,
    parse_state,
    read_state,
)
from ottla.storage.state_log.voter import Quorum

logger = logging.getLogger(__name__)
FETCHED = ".fetched"
"""Suffix of a snapshot that is not completely fetched."""
TURN_SECONDS = 0.05
"""The time for which records are replayed before the loop does something else; checked after each batch."""


class StoredOutcome(NamedTuple):
    """A chunk of a snapshot was written, and more follow."""


class CompleteSnapshot(NamedTuple):
    """A snapshot was fetched and read completely."""

    snapshot: SnapshotId
    machine: ClusterMetadata
    state: SnapshotState


Prepared = Outcome | StoredOutcome | CompleteSnapshot


class ObservedMetadata:
    """The committed metadata that this node knows."""

    def __init__(
        self, log: Log, clock: Clock, rules: SnapshotRules = KAFKAS, submit: Submit = run_without_loop
    ) -> None:
        """Read the newest snapshot. What the log has is applied once the high watermark is known.

        `submit` runs work on a disk thread.
        """
        self.log = log
        self._clock = clock
        self.applied = 0
        """All records below this offset are in the image."""
        self.committed = 0
        """The high watermark; records below it are to be replayed."""
        self.unfinished = False
        """True if replaying was interrupted, so that the loop can do something else; `apply_more` continues."""
        self.snapshots = ObservedSnapshots(log, rules, clock, submit)
        self._newest = EMPTY
        self._last = (0, 0)
        """Epoch and timestamp of the last batch that was replayed."""
        self._quorum = Quorum()
        self.machine = self._build()
        """The metadata image; another object after a snapshot has replaced it."""

    def submit(self, event: Callable[[int], Any], later: Callable[[Any], None] | None = None) -> NoReturn:
        """Refuse: nothing is decided here."""
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "only the controllers of the cluster change its metadata")

    def removed_topics(self) -> set[UUID]:
        """Return the topics that the log says were deleted.

        The log reaches back to the oldest snapshot, and so beyond any deletion that the last crash interrupted.
        """
        found: set[UUID] = set()
        offset = self.log.start_offset
        while (piece := self.log.read(offset, READ_BYTES)) is not None:
            columns = decode(read_slice(piece), from_offset=offset)
            found |= {each.topic_id for each in decode_records(columns) if isinstance(each, RemoveTopicRecord)}
            offset = columns.next_offset
        return found

    @property
    def end(self) -> ReplicaEnd:
        """The offset and epoch from which to fetch; those of the snapshot if the log is empty."""
        return ReplicaEnd(self.log.end_offset, max(self.log.epochs.latest(), self._newest.epoch), self.committed)

    def prepare(self, outcome: Outcome) -> Prepared:
        """Write a chunk of a snapshot and read the last one, on a disk thread. The image is not changed."""
        if not isinstance(outcome, WriteChunk):
            return outcome
        snapshot = SnapshotId(outcome.end_offset, outcome.epoch)
        draft = self._temporary_path(snapshot)
        try:
            with open(draft, "r+b" if outcome.position else "wb", opener=open_regular) as file:
                file.seek(outcome.position)
                file.write(outcome.data)
                if not outcome.last:
                    return StoredOutcome()
                file.flush()
                os.fsync(file.fileno())
            state = parse_state(read_whole(draft), snapshot.file_name)
            return CompleteSnapshot(snapshot, build_machine(state), state)
        except CorruptRecordError as error:
            logger.error("%s; it is fetched again", error)
            draft.unlink(missing_ok=True)
            return Retry(RETRY_MS)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot write {draft}: {error}") from error

    def keep(self, outcome: Prepared) -> list[Message] | None:
        """Apply the outcome of a fetch, and return the records that were replayed.

        Return None if a snapshot has replaced all of them. CorruptRecordError if the log cannot be decoded, KafkaError
        if the disk fails.
        """
        match self.prepare(outcome) if isinstance(outcome, WriteChunk) else outcome:
            case Append() as answer:
                if answer.records:
                    self.log.append_as_is(
                        answer.records, leader_epoch=answer.leader_epoch, now_ms=self._clock.wall_ms()
                    )
                self.committed = max(self.committed, min(answer.high_watermark, self.log.end_offset))
                return self.apply_more()
            case TruncateToEnd() as cut:
                self._truncate(EpochEnd(cut.epoch, cut.end_offset))
            case CompleteSnapshot() as whole:
                self._replace_log(whole)
                return None
        return []

    def apply_more(self) -> list[Message]:
        """Replay committed records for at most `TURN_SECONDS`, and return them."""
        records: list[Message] = []
        until, self.unfinished = self._clock.monotonic() + TURN_SECONDS, False
        while self.applied < self.committed and self._apply_piece(records, until):
            pass
        self._maybe_snapshot()
        return records

    def _apply_piece(self, records: list[Message], until: float) -> bool:
        """Replay one piece of the log. Return True if there may be more to replay now."""
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
            found = list(decode_records(decode(batch)))
            replay_all(self.machine, found)
        self.applied = max(self.applied, header.next_offset)
        self._last = header.leader_epoch, header.max_timestamp
        self.snapshots.count_replayed(header.size_bytes)
        return found

    def _maybe_snapshot(self) -> None:
        epoch, time_ms = self._last
        snapshot = SnapshotId(self.applied, epoch)
        if (
            self.snapshots.is_due
            and not self.unfinished
            and not self.machine.in_transaction
            and snapshot > self._newest
        ):
            self._newest = snapshot
            self.snapshots.write(snapshot, map(encode_record, self.machine.copy_records()), time_ms, self._quorum)

    def _truncate(self, leader: EpochEnd) -> None:
        """Truncate the records that the leader does not have."""
        end = truncation_offset(self.log.epochs.load(), self.log.end_offset, leader)
        if end < self.applied:
            raise CorruptRecordError(
                f"the controllers say that the metadata parts from this copy at offset {end}, and {self.applied} was committed: "
                f"one of them has lost records; if the controllers are correct, move {self.log.directory} away: the log is then fetched again"
            )
        level = cut_level(self.log, end)
        logger.log(level, "the copy of the metadata parts from the leader's at offset %d, and is cut there", end)
        self.log.truncate_to(end, now_ms=self._clock.wall_ms())

    def _temporary_path(self, snapshot: SnapshotId) -> Path:
        return self.log.directory / f"{snapshot.file_name}{FETCHED}"

    def _replace_log(self, whole: CompleteSnapshot) -> None:
        """Replace the log and the image by a fetched snapshot."""
        directory, snapshot = self.log.directory, whole.snapshot
        try:
            os.replace(self._temporary_path(snapshot), directory / snapshot.file_name)
            sync_path(directory)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot keep {snapshot.file_name}: {error}") from error
        self._continue_at(snapshot.offset)
        for older in find_snapshots(directory)[1:]:
            (directory / older.file_name).unlink()
        self._load_snapshot(snapshot, whole.machine, whole.state)

    def _load_snapshot(self, snapshot: SnapshotId, machine: ClusterMetadata, state: SnapshotState) -> None:
        self.machine, self._quorum, self._last = machine, state.quorum, (snapshot.epoch, state.time_ms)
        self.applied, self._newest = snapshot.offset, snapshot
        self.committed = max(self.committed, snapshot.offset)
        self.snapshots.restart_intervals()

    def _continue_at(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset, now_ms=self._clock.wall_ms())

    def _build(self) -> ClusterMetadata:
        """Read the newest snapshot that is complete. What came after it is applied once the high watermark is known."""
        for piece in self.log.directory.glob(f"*{FETCHED}"):
            piece.unlink()
        found = find_snapshots(self.log.directory)
        broken: list[SnapshotId] = []
        for snapshot in found:
            try:
                state = read_state(self.log.directory, snapshot)
                machine = build_machine(state)
            except (CorruptRecordError, OSError) as error:
                broken.append(snapshot)
                logger.error("%s; %s", error, self._describe_fallback(found[len(broken) :]))
                continue
            self._load_snapshot(snapshot, machine, state)
            if not self.log.start_offset <= snapshot.offset <= self.log.end_offset:
                self._continue_at(snapshot.offset)
            self._remove(broken)
            return machine
        if self.log.start_offset:
            self._start_without_snapshot(broken)
        self._remove(broken)
        self._load_snapshot(EMPTY, ClusterMetadata(), SnapshotState([], 0))
        return self.machine

    def _describe_fallback(self, older: Sequence[SnapshotId]) -> str:
        """Return a description of what is read instead of a damaged snapshot."""
        return "the previous snapshot is read" if older else "the metadata are fetched again from the controllers"

    def _start_without_snapshot(self, broken: Sequence[SnapshotId]) -> None:
        """Fetch all of the metadata again, as no snapshot covers the records before the log start."""
        self._continue_at(0)

    def _remove(self, snapshots: Sequence[SnapshotId]) -> None:
        for each in snapshots:
            (self.log.directory / each.file_name).unlink(missing_ok=True)


class Features:
    """The levels of features in the cluster's metadata, as clients see them."""

    def __init__(self, cluster: ObservedMetadata) -> None:
        self._cluster = cluster

    @property
    def supported(self) -> Mapping[str, Levels]:
        """The levels that this broker can run."""
        return BROKER_LEVELS

    @property
    def finalized(self) -> Mapping[str, int]:
        """The levels that the cluster runs."""
        return {**self._cluster.machine.features, **FIXED}

    @property
    def epoch(self) -> int:
        """The offset of the last record of the metadata, as in Kafka; it grows with every change."""
        return self._cluster.log.end_offset - 1


def decode_records(columns: Columns) -> Iterator[Message]:
    """Yield the metadata records of some batches."""
    for row in range(columns.count):
        yield decode_record(columns.value(row) or b"")


def build_machine(state: SnapshotState) -> ClusterMetadata:
    """Return the image that results from a snapshot's records."""
    machine = ClusterMetadata()
    replay_all(machine, map(decode_record, state.values))
    return machine
