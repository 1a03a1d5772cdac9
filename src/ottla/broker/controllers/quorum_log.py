"""The metadata's log of a voter, on the disk, as the quorum's machine wants it: appended to, cut, begun anew behind a snapshot.

    __cluster_metadata-0/   segments │ quorum-state │ <offset>-<epoch>.checkpoint

Everything is on the disk when a call returns: the next answer may promise it. What the disk does not take is raised as KafkaError,
and whoever drives the machine ends with it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from ottla.broker.machines.runtime import READ_BYTES, read_slice
from ottla.broker.partitions.partitions import METADATA_LOG, METADATA_PARTITION
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
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.files.durable import sync_path
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log
from ottla.storage.state_log import quorum_state, snapshot
from ottla.storage.state_log.check import START_OVER
from ottla.storage.state_log.quorum_state import BY_DIRECTORY, BY_ID_ALONE, QuorumState
from ottla.storage.state_log.quorum_state import NOBODY as NO_ID

logger = logging.getLogger(__name__)
FETCHED = ".fetched"
"""How the name of a snapshot ends of which not all pieces are there."""


class QuorumLog:
    """A log, the snapshots that stand for its past, and what this node has promised."""

    def __init__(self, log: Log, clock: Clock, fixed: VoterSet = NO_VOTERS) -> None:
        """`fixed` are the voters of the settings, who count where neither a snapshot nor the log says who votes."""
        self.log = log
        self._clock = clock
        self._fixed = fixed
        self._begin()
        log.flush()

    @classmethod
    def open(cls, directory: DataDirectory, clock: Clock, fixed: VoterSet = NO_VOTERS) -> QuorumLog:
        """ConfigError where the log is damaged: a voter without what it has promised to keep must not vote."""
        directory.ensure_whole(METADATA_PARTITION)
        return cls(directory.open_log(METADATA_PARTITION, METADATA_LOG, now_ms=clock.wall_ms()), clock, fixed)

    @property
    def directory(self) -> Path:
        return self.log.directory

    # what was promised

    def read_promises(self) -> ElectionState | None:
        """CorruptRecordError where they cannot be read."""
        saved = quorum_state.read_quorum_state(self.directory)
        if saved is None:
            return None
        voted = None if saved.voted_id == NO_ID else ReplicaKey(saved.voted_id, saved.voted_directory_id)
        return ElectionState(saved.leader_epoch, None if saved.leader_id == NO_ID else saved.leader_id, voted)

    def persist(self, state: ElectionState) -> None:
        voted = state.voted or ReplicaKey(NO_ID)
        leader = NO_ID if state.leader_id is None else state.leader_id
        version = BY_DIRECTORY if self._history.newest.kraft_version else BY_ID_ALONE
        try:
            quorum_state.write_quorum_state(self.directory, QuorumState(state.epoch, leader, *voted), version)
        except OSError as error:
            raise storage_error(f"cannot write quorum-state in {self.directory}", error) from error

    # what the machine is told

    def shape(self) -> LogShape:
        log, rules = self.log, self._history.newest
        return LogShape(
            log.start_offset,
            log.end_offset,
            tuple(log.epochs.load()),
            log.recovery_point,
            self._newest,
            self._start_epoch,
            rules.voters,
            rules.voters_end,
            rules.kraft_version,
            self._holds_metadata,
        )

    # what the machine wants

    def append_control(self, epoch: int, records: Sequence[ControlRecord]) -> None:
        """The leader's own records, in one batch."""
        builder, now_ms = BatchBuilder(), self._clock.wall_ms()
        for record in records:
            builder.append(now_ms, *encode_control(record))
        plain = builder.build()
        batch = bytearray(seal(parse_header(plain)._replace(attributes=CONTROL), memoryview(plain)[HEADER_BYTES:]))
        stamp(batch, 0, self.log.end_offset, epoch)
        self.append(batch, epoch)

    def append(self, records: Buffer, leader_epoch: int) -> None:
        """What a leader sent, as it came; CorruptRecordError, and nothing is kept, where that cannot be what comes next."""
        begin = self.log.end_offset
        try:
            self.log.append_as_is(records, leader_epoch=leader_epoch, now_ms=self._clock.wall_ms())
        finally:
            self.log.flush()
            self._note_from(begin)

    def truncate(self, offset: int) -> None:
        self._history.truncate(self.log.truncate_to(offset, now_ms=self._clock.wall_ms()))

    def keep_piece(self, wanted: SnapshotId, position: int, data: Buffer, *, last: bool) -> None:
        """With the last piece the snapshot stands for all before; one that turns out damaged is dropped, to be fetched again."""
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
            self._begin()

    # what others are given

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from that offset on, one at least; nothing at the end."""
        piece = self.log.read(offset, max_bytes)
        return b"" if piece is None else read_slice(piece)

    def read_piece(self, wanted: SnapshotId, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """How large a snapshot is, and its bytes from there; None where there is no such one."""
        path = self.directory / snapshot.SnapshotId(*wanted).file_name
        try:
            with open(path, "rb", opener=open_regular) as file:
                return os.fstat(file.fileno()).st_size, os.pread(file.fileno(), max_bytes, position)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(f"cannot read {path}", error) from error

    # what is there

    def look_at_snapshots(self) -> None:
        """Another was written here, and what it stands for may have gone."""
        found = snapshot.find_snapshots(self.directory)
        self._know(found, next((each for each in found if each.offset == self.log.start_offset), None))

    def _know(self, found: Sequence[snapshot.SnapshotId], first: snapshot.SnapshotId | None) -> None:
        """The newest, and the one that stands for all before the log."""
        self._newest = SnapshotId(*found[0]) if found else BOOTSTRAP
        self._start_epoch = 0 if first is None else first.epoch

    def _begin_at_a_snapshot(self, found: Sequence[snapshot.SnapshotId]) -> None:
        """Where a segment goes on before the snapshot for which what is before it was deleted, as after a kill, that does not count."""
        later = [each.offset for each in found if each.offset >= self.log.start_offset]
        if self.log.start_offset and later:
            self.log.advance_start(later[-1])

    def _begin(self) -> None:
        """Find out what the snapshots and the log say."""
        for piece in self.directory.glob(f"*{FETCHED}"):
            piece.unlink()
        found = snapshot.find_snapshots(self.directory)
        newest = found[0] if found else snapshot.EMPTY
        if newest.offset > self.log.end_offset:
            self.log.truncate_fully_and_start_at(newest.offset, now_ms=self._clock.wall_ms())
        self._begin_at_a_snapshot(found)
        start = self.log.start_offset
        first = next((each for each in found if each.offset == start), None)
        if first is None and start:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the log in {self.directory} begins at offset {start}, and no snapshot stands for what was before: restore the directory from a backup, or, where others vote, {START_OVER}",
            )
        for older in found:
            if older.offset < start:
                (self.directory / older.file_name).unlink()
        self._know(found, first)
        self._holds_metadata = False
        self._history = self._first_rules(first, start)
        self._note_from(start)

    def _first_rules(self, first: snapshot.SnapshotId | None, start: int) -> VoterHistory:
        """What is known of the voters without the log."""
        history = VoterHistory(self._fixed, 0, start)
        if first is not None:
            state = self._read_first(first)
            self._holds_metadata = bool(state.values)
            for kind, value in (
                (snapshot.Kind.KRAFT_VERSION, state.quorum.version),
                (snapshot.Kind.VOTERS, state.quorum.voters),
            ):
                if value is not None:
                    history.apply(decode_control(kind, value), start)
        return history

    def _read_first(self, first: snapshot.SnapshotId) -> snapshot.State:
        """The snapshot that stands for what is not in the log; nothing else says it."""
        try:
            return snapshot.read_state(self.directory, first)
        except (CorruptRecordError, OSError) as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self.directory / first.file_name} cannot be read ({error}), and stands for all before offset {first.offset}: restore the directory from a backup, or, where others vote, {START_OVER}",
            ) from error

    def _note_from(self, offset: int) -> None:
        """Read what the log says of the quorum from there on."""
        while data := self.read(offset, READ_BYTES):
            for position, header in iter_headers(data):
                self._holds_metadata = self._holds_metadata or not header.is_control
                for row, (kind, value) in enumerate(snapshot.control_of(data, position, header)):
                    self._history.apply(decode_control(kind, value or b""), header.base_offset + row + 1)
                offset = header.next_offset
