"""The metadata log of a voter on the disk: append, truncate, and restart after a snapshot, as the Raft state machine decides.

    __cluster_metadata-0/   segments │ quorum-state │ <offset>-<epoch>.checkpoint

Everything is flushed when a call returns, because the next message to another node may promise it. An I/O error is raised as
KafkaError, and the process stops with it.

A sole voter is the only node of its cluster. Its log differs in four points:

* It has no `quorum-state`: no other node was promised a vote, and the epoch of the log is enough.
* Its voter is this node, whatever the snapshots contain. So a damaged snapshot can be skipped for an older one.
* In a temporary directory nothing is flushed, because the directory does not outlive the process.
* It starts on a full disk, so that its topics can be read and deleted.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from ottla.broker.metadata.metadata_log import METADATA_LOG, METADATA_PARTITION
from ottla.broker.state_machines.log_slices import READ_BYTES, read_slice
from ottla.clock import Clock
from ottla.coordination.quorum.control_records import ControlRecord, decode_control, encode_control
from ottla.coordination.quorum.log_shape import BOOTSTRAP, LogShape, SnapshotId
from ottla.coordination.quorum.state import ElectionState
from ottla.coordination.quorum.voter_history import VoterHistory
from ottla.coordination.quorum.voters import NO_VOTERS, ReplicaKey, VoterSet
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import Buffer
from ottla.records.batch import CONTROL, HEADER_BYTES, iter_headers, parse_header, seal, stamp
from ottla.records.builder import BatchBuilder
from ottla.storage.directory.data_directory import DataDirectory, space_problem
from ottla.storage.files.durable import sync_path
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.files.storage_error import is_disk_full, storage_error
from ottla.storage.log import Log
from ottla.storage.state_log import quorum_state, snapshot
from ottla.storage.state_log.check import START_OVER
from ottla.storage.state_log.quorum_state import BY_DIRECTORY, BY_ID_ALONE, QuorumState
from ottla.storage.state_log.quorum_state import NOBODY as NO_ID
from ottla.storage.state_log.voter import KRAFT_VERSION_LEVEL
from ottla.storage.state_log.voter import SoleVoter as SoleVoter

logger = logging.getLogger(__name__)
FETCHED = ".fetched"
"""Suffix of a snapshot that is not completely fetched."""


class QuorumLog:
    """The log, its snapshots, and the election state of this node."""

    def __init__(
        self,
        log: Log,
        clock: Clock,
        fixed: VoterSet = NO_VOTERS,
        *,
        sole_voter: SoleVoter | None = None,
        is_durable: bool = True,
    ) -> None:
        """Open the log of the quorum. `fixed` are the voters of the settings; voters in a snapshot or in the log take precedence.

        `sole_voter` is this node if it is the only one. Without `is_durable` nothing is flushed.
        """
        self.log = log
        self._clock = clock
        self._fixed = fixed
        self._sole_voter = sole_voter
        self._is_durable = is_durable
        self._is_unflushed = False
        self._is_disk_full = sole_voter is not None and space_problem(log.directory, 0) is not None
        self._start_new()
        self._flush()

    @classmethod
    def open(
        cls,
        directory: DataDirectory,
        clock: Clock,
        fixed: VoterSet = NO_VOTERS,
        *,
        sole_voter: SoleVoter | None = None,
        is_durable: bool = True,
    ) -> QuorumLog:
        """Open the log. ConfigError if it is damaged: a voter that lost records or its vote must not vote."""
        directory.ensure_whole(METADATA_PARTITION)
        log = directory.open_log(METADATA_PARTITION, METADATA_LOG, now_ms=clock.wall_ms())
        return cls(log, clock, fixed, sole_voter=sole_voter, is_durable=is_durable)

    @property
    def directory(self) -> Path:
        return self.log.directory

    # election state

    def read_promises(self) -> ElectionState | None:
        """Return the election state; None if there is none. CorruptRecordError if it cannot be read."""
        saved = quorum_state.read_quorum_state(self.directory)
        if saved is None:
            return None
        voted = None if saved.voted_id == NO_ID else ReplicaKey(saved.voted_id, saved.voted_directory_id)
        return ElectionState(saved.leader_epoch, None if saved.leader_id == NO_ID else saved.leader_id, voted)

    def persist(self, state: ElectionState) -> None:
        """Write the election state. Call it before a message to another node depends on it."""
        if self._sole_voter is not None:
            return
        voted = state.voted or ReplicaKey(NO_ID)
        leader = NO_ID if state.leader_id is None else state.leader_id
        version = BY_DIRECTORY if self._history.newest.kraft_version else BY_ID_ALONE
        try:
            quorum_state.write_quorum_state(self.directory, QuorumState(state.epoch, leader, *voted), version)
        except OSError as error:
            raise storage_error(f"cannot write quorum-state in {self.directory}", error) from error

    # the log as the Raft state machine sees it

    def shape(self) -> LogShape:
        log, rules = self.log, self._history.newest
        if self._sole_voter is not None and rules.voters.ids == {self._sole_voter.node_id}:
            # Its directory has another id than the log says, as after a repair: it is the only voter all the same.
            me = ReplicaKey(*self._sole_voter)
            if not rules.voters.has(me):
                rules = rules._replace(voters=VoterSet.of(me), voters_end=0)
        return LogShape(
            log.start_offset,
            log.end_offset,
            tuple(log.epochs.load()),
            log.recovery_point if self._is_durable and not self._is_disk_full else log.end_offset,
            self._newest,
            self._start_epoch,
            rules.voters,
            rules.voters_end,
            rules.kraft_version,
            self._holds_metadata,
        )

    # actions of the Raft state machine

    def append_control(self, epoch: int, records: Sequence[ControlRecord]) -> None:
        """Append control records of the leader in one batch."""
        builder, now_ms = BatchBuilder(), self._clock.wall_ms()
        for record in records:
            builder.append(now_ms, *encode_control(record))
        plain = builder.build()
        batch = bytearray(seal(parse_header(plain)._replace(attributes=CONTROL), memoryview(plain)[HEADER_BYTES:]))
        stamp(batch, 0, self.log.end_offset, epoch)
        self.append(batch, epoch)

    def append(self, records: Buffer, leader_epoch: int) -> None:
        """Append batches that were fetched from the leader.

        CorruptRecordError if they do not follow the log; nothing is appended then.
        """
        begin = self.log.end_offset
        try:
            self.log.append_as_is(records, leader_epoch=leader_epoch, now_ms=self._clock.wall_ms())
        finally:
            try:
                self._flush()
            finally:
                self._read_control_records(begin)

    def _flush(self) -> None:
        """Flush what was appended. What could not be flushed is kept, and is flushed with the next append or by `retry_flush`."""
        if not self._is_durable:
            return
        self._is_unflushed = True
        try:
            self.log.flush()
        except KafkaError as error:
            # A start on a full disk writes a few records, which fit into the last block of the file. What does not fit
            # is derived from the log (the checkpoint of its epochs).
            if not (self._is_disk_full and is_disk_full(error)):
                raise
        else:
            self._is_unflushed = False
            self._is_disk_full = self._is_disk_full and space_problem(self.directory, 0) is not None

    def retry_flush(self) -> bool:
        """Retry a failed flush. True if it succeeds now. Only a sole voter continues after such a failure."""
        if self._sole_voter is None or not self._is_unflushed or self._is_disk_full:
            return False
        try:
            self._flush()
        except KafkaError:
            return False
        return True

    def truncate(self, offset: int) -> None:
        self._history.truncate(self.log.truncate_to(offset, now_ms=self._clock.wall_ms()))

    def write_chunk(self, wanted: SnapshotId, position: int, data: Buffer, *, last: bool) -> None:
        """Write a chunk of a fetched snapshot. The last one makes the snapshot the start of the log.

        A snapshot that turns out to be damaged is deleted, and is fetched again.
        """
        name = snapshot.SnapshotId(*wanted).file_name
        draft = self.directory / f"{name}{FETCHED}"
        try:
            with open(draft, "r+b" if position else "wb", opener=open_regular) as file:
                file.truncate(position)
                file.seek(position)
                file.write(data)
                if not last:
                    return
                file.flush()
                os.fsync(file.fileno())
            snapshot.parse_state(read_whole(draft), name)
            os.replace(draft, self.directory / name)
            sync_path(self.directory)
        except CorruptRecordError as error:
            logger.error("%s; it is fetched again", error)
            draft.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(f"cannot write {draft}", error) from error
        else:
            self._start_new()

    # reads for other nodes

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from `offset` on, at least one; nothing at the end. CorruptRecordError if they are damaged.

        For the sole voter that is OutOfServiceError with the remedy, as no other node has the records.
        """
        try:
            piece = self.log.read(offset, max_bytes)
        except CorruptRecordError as error:
            if self._sole_voter is None:
                raise
            raise self.log.out_of_service(offset, error) from error
        return b"" if piece is None else read_slice(piece)

    def read_piece(self, wanted: SnapshotId, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return the size of a snapshot and its bytes from `position` on; None if there is no such snapshot."""
        path = self.directory / snapshot.SnapshotId(*wanted).file_name
        try:
            with open(path, "rb", opener=open_regular) as file:
                return os.fstat(file.fileno()).st_size, os.pread(file.fileno(), max_bytes, position)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(f"cannot read {path}", error) from error

    # snapshots and voters

    def load_snapshots(self) -> None:
        """Find the snapshots again, after one was written and the start of the log may have been deleted."""
        found = snapshot.find_snapshots(self.directory)
        self._load_voters(found, next((each for each in found if each.offset == self.log.start_offset), None))

    def _load_voters(self, found: Sequence[snapshot.SnapshotId], first: snapshot.SnapshotId | None) -> None:
        """Remember the newest snapshot, and the epoch of the one at the start of the log."""
        self._newest = SnapshotId(*found[0]) if found else BOOTSTRAP
        self._start_epoch = 0 if first is None else first.epoch

    def _start_at_snapshot(self, found: Sequence[snapshot.SnapshotId]) -> None:
        """Advance the log start to a snapshot.

        Segments are deleted as a whole, so after a kill the first one may start before the snapshot. Those records are
        not used.
        """
        later = [each.offset for each in found if each.offset >= self.log.start_offset]
        if self.log.start_offset and later:
            self.log.advance_start(later[-1])

    def _start_new(self) -> None:
        """Read the snapshots and the log, after opening or after a fetched snapshot."""
        for piece in self.directory.glob(f"*{FETCHED}"):
            piece.unlink()
        found = snapshot.find_snapshots(self.directory)
        newest = found[0] if found else snapshot.EMPTY
        if newest.offset > self.log.end_offset:
            self.log.truncate_fully_and_start_at(newest.offset, now_ms=self._clock.wall_ms())
        self._start_at_snapshot(found)
        start = self.log.start_offset
        first = next((each for each in found if each.offset == start), None)
        if first is None and start and self._sole_voter is None:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the log in {self.directory} begins at offset {start}, and no snapshot stands for what was before: restore the directory from a backup, or, where others vote, {START_OVER}",
            )
        for older in found:
            if older.offset < start:
                (self.directory / older.file_name).unlink()
        self._load_voters(found, first)
        self._holds_metadata = False
        self._history = (
            self._load_initial_voters(first, start) if self._sole_voter is None else self._sole_rules(found, start)
        )
        self._read_control_records(start)

    def _load_initial_voters(self, first: snapshot.SnapshotId | None, start: int) -> VoterHistory:
        """Return the voters from the snapshot at the log start, or from the settings."""
        history = VoterHistory(self._fixed, 0, start)
        if first is not None:
            state = self._read_first_snapshot(first)
            self._holds_metadata = bool(state.values)
            for kind, value in (
                (snapshot.Kind.KRAFT_VERSION, state.quorum.version),
                (snapshot.Kind.VOTERS, state.quorum.voters),
            ):
                if value is not None:
                    history.apply(decode_control(kind, value), start)
        return history

    def _sole_rules(self, found: Sequence[snapshot.SnapshotId], start: int) -> VoterHistory:
        """Return the rules of a sole voter, which is named by a snapshot, so that Apache Kafka can open the directory."""
        assert self._sole_voter is not None
        voter = self._sole_voter
        self._holds_metadata = any(each.offset for each in found)
        if not found and not start:
            now_ms = self._clock.wall_ms()
            try:
                snapshot.write_state(self.directory, snapshot.EMPTY, [], now_ms, voter, sync=self._is_durable)
            except OSError as error:
                logger.error("cannot write the voter of the metadata log into %s: %s", self.directory, error)
        # If no snapshot names the voters, they end at offset 0: the leader then writes them into the log with its first records.
        has_voter = bool(start and found) and has_voters(self.directory, found[0])
        return VoterHistory(VoterSet.of(ReplicaKey(*voter)), KRAFT_VERSION_LEVEL, start if has_voter else 0)

    def _read_first_snapshot(self, first: snapshot.SnapshotId) -> snapshot.SnapshotState:
        """Read the snapshot at the log start. KafkaError if it cannot be read: no other file has those records."""
        try:
            return snapshot.read_state(self.directory, first)
        except (CorruptRecordError, OSError) as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self.directory / first.file_name} cannot be read ({error}), and stands for all before offset {first.offset}: restore the directory from a backup, or, where others vote, {START_OVER}",
            ) from error

    def _read_control_records(self, offset: int) -> None:
        """Apply the control records from `offset` on to the history of voters."""
        while data := self.read(offset, READ_BYTES):
            for position, header in iter_headers(data):
                self._holds_metadata = self._holds_metadata or not header.is_control
                for row, (kind, value) in enumerate(snapshot.control_of(data, position, header)):
                    self._history.apply(decode_control(kind, value or b""), header.base_offset + row + 1)
                offset = header.next_offset


def has_voters(directory: Path, newest: snapshot.SnapshotId) -> bool:
    """Return True if a snapshot has a record of the voters; False if it cannot be read."""
    try:
        return snapshot.read_quorum(directory, newest).voters is not None
    except (CorruptRecordError, OSError):
        return False
