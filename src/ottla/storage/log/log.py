"""The log of one partition: segments in a directory, one writer, any number of readers (Kafka's UnifiedLog).

    append ──► [ segment │ segment │ active segment ] ──► read
                └ start_offset                   end_offset ┘

    log start ≤ last stable offset ≤ high watermark ≤ log end

Every call may block on the disk. All calls belong to one thread, except `flush`, and `read` with `READER_LOCK` held.

**Appending.** A leader appends checked and stamped batches (`append_path`). A follower appends the leader's batches unchanged, so that both
logs are equal up to the point where they diverge. A follower decides nothing, because the leader has decided it, and trusts nothing: a
batch with a wrong CRC, with an offset or an epoch that decreases, or with an epoch above the leader's is rejected before a byte is
written. Offsets may be missing, because the leader has compacted them away. The leader's log may start inside a batch, where
records were deleted; an empty replica then starts with the whole batch. Each batch is completely in the log or not at all.

**Truncation** (KIP-101, KIP-279). A follower removes the batches that its leader does not have. A crash between any two steps must leave a
prefix of the log, without a gap and without removed batches at its end. Therefore the order is: checkpoints are lowered first, because a
start trusts everything below the recovery point; then files are deleted from the end, and the directory is flushed; then the
segment that holds the offset is truncated and flushed. Only then may other batches be appended in the place of the removed ones.
Indexes, producers and open transactions are derived from the remaining batches and the latest snapshot below the new end; snapshots above it are
deleted, because they contain removed batches. If the leader's log starts after the end of the follower's log,
the follower removes everything and continues at the leader's start.

**High watermark.** A log without other replicas is committed when it is appended, so that the high watermark follows the end. Otherwise the
leader or the follower moves it, never back and never beyond the end; only a truncation lowers it. A transaction is stable when its marker is
committed, not when the marker is written: until then the marker may be truncated, and the transaction may end differently. So
transactions that ended at or above the high watermark hold back `read_committed` as open ones do.

**Opening after a crash.** `Log.open` takes these steps in this order. Each one relies on those before it.

1. Files: complete or undo a replacement of segments by compaction; delete temporary files, and index files without a log file.
2. Segments: list the `.log` files and compare them with `segment-succession`. A missing segment between two others becomes a damage.
3. Leader epochs: read `leader-epoch-checkpoint` and compare it with batch headers. If they differ the batches count.
4. Producers: drop the rows of transaction indexes and the producer snapshots above the recovery point, load the latest other snapshot, and
   replay the batches up to the segment that holds the recovery point.
5. Batches: check every CRC from the last index entry below the recovery point to the end, and add the batches to indexes, epochs and
   producers. An incomplete last batch is truncated; other damage stays and is recorded (`recovery.log_loader`).
6. Limits: the log start, by its checkpoint and the file `.deleted-before`; the high watermark, by its checkpoint, between start and end.

Opening does not raise the recovery point; the first flush does. After a second crash before that flush the same steps are repeated.

After a clean shutdown step 5 reads only the headers after the last index entry, and leader epochs and transaction indexes are read when
they are needed. A replica with a recovery point below its end was damaged by an earlier crash, and is opened as after a crash.

The order of flushing is in `durability`; the files of the whole data directory are in `directory.data_directory`.
"""

from __future__ import annotations

import errno
import logging
import os
import uuid
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ottla.errors import CorruptRecordError, ErrorCode, IllegalStateError, KafkaError
from ottla.model import INT64_MAX, Buffer, FileSlice, OffsetAndTimestamp
from ottla.records.batch import BatchHeader, iter_headers, verify
from ottla.records.end_marker import EndMarker, decode_end_marker
from ottla.storage.batches.damage import (
    Damage,
    DamagedLogError,
    OutOfServiceError,
    UnsureEnd,
    not_a_file_error,
    repair_remedy,
    survey_batches,
)
from ottla.storage.batches.verified_walk import Bounds
from ottla.storage.files.durable import sync_path
from ottla.storage.files.storage_error import storage_error
from ottla.storage.indexes.index_set import IndexSavepoint
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log.append_path import (
    Appended,
    LogEnd,
    append_batches,
    check_place,
    roll_back_append,
    segment_for,
)
from ottla.storage.log.durability import Durability
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import NONE, Origin
from ottla.storage.producers.producer_snapshot import snapshot_offsets, snapshot_path
from ottla.storage.producers.producer_state import AbortedTxn, find_first_unsure
from ottla.storage.producers.snapshot_keeper import SnapshotKeeper
from ottla.storage.recovery.epoch_check import verify_epochs
from ottla.storage.recovery.log_loader import LogLoader, Recovery
from ottla.storage.recovery.lost_offsets import drop_lost
from ottla.storage.recovery.producer_recovery import (
    ProducerRecovery,
    begin_recovery,
    open_transactions_at,
    recover_producers,
)
from ottla.storage.recovery.transaction_check import find_aborted_transactions, verify_transaction_index
from ottla.storage.segments.gaps import find_lost_offsets
from ottla.storage.segments.log_folder import find_segments, remove_folder
from ottla.storage.segments.log_start import find_lost_start, record_deletion
from ottla.storage.segments.retention import count_deletable
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_list import READER_LOCK, SegmentList
from ottla.storage.segments.succession import compare_segments, record_unknown, row_of, write_rows

LOG = logging.getLogger(__name__)
EARLIEST_TIMESTAMP = -0x8000_0000_0000_0000
"""A timestamp before that of any record. Markers have it, because they do not count for the age of a segment."""
FULL_SURVEY_BYTES = 64 * 1024 * 1024
"""A segment up to this size is surveyed from its start, a larger one from the index entry before the offset."""
REFETCH_HINT = "nothing of it was kept, and it is fetched again"


class FetchedBatch(NamedTuple):
    """A leader's batch that was checked and can be written."""

    view: memoryview
    header: BatchHeader
    marker: EndMarker | None
    """The end of a transaction, if the batch is a marker."""


class Log(LogEnd):
    """Record batches by offset, from `start_offset` up to (not including) `end_offset`."""

    def __init__(self, directory: Path, config: LogConfig) -> None:
        """Use `Log.open`."""
        segments = SegmentList(directory, lambda: self.epochs.entries)
        super().__init__(
            directory, config, segments.segments, LeaderEpochs(directory, partial(verify_epochs, segments.segments))
        )
        self._list = segments
        self.bases = segments.bases
        """Base offsets of the segments."""
        self._ended_above_watermark: dict[int, int] = {}
        # First offsets of transactions that ended at or above the high watermark, with the offsets of their markers.
        self.recovery: Recovery | None = None
        """The result of the truncation when the log was opened after a crash."""
        self.torn_at: int | None = None
        """The first offset that a crash left damaged with whole batches after it, until the log is truncated there.

        The recovery point stays below it.
        """
        self.fallen_short: Damage | None = None
        """The end of the log that a crash is known to have removed, until the log has followed a complete replica."""
        self.lost: Damage | None = None
        """The offsets before the first segment, if their files are gone and were not deleted by the broker."""
        self._snapshots = SnapshotKeeper(directory)
        self.cleaning = False
        """True while compaction uses the segments' files."""
        self._durability = Durability(self._list, self.epochs)
        self._truncation_listeners: list[Callable[[int], None]] = []

    def __repr__(self) -> str:
        return f"Log({self.directory}, offsets {self.start_offset} to {self.end_offset})"

    # --- Opening, flushing and closing ---------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        directory: Path,
        config: LogConfig,
        *,
        now_ms: int,
        clean: bool = False,
        recovery_point: int = 0,
        start_offset: int | None = None,
        committed: int | None = None,
        noted_start: int | None = None,
    ) -> Log:
        """Open the log in `directory`, which is created if it does not exist.

        Unless the last shutdown was `clean`, all batches from `recovery_point` on are checked, and a torn end is truncated
        (`log.recovery` describes it). `start_offset` is the checkpointed start of the records that were not deleted, `committed` the checkpointed
        high watermark of a log with other replicas. `noted_start` is an offset at which the log is known to have started once:
        offsets from there on without a file were not deleted, and readers get an error for them.
        """
        log = cls(directory, config)
        log.active_since_ms = now_ms
        try:
            if not directory.is_dir():
                directory.mkdir(parents=True, exist_ok=True)
            log.replicated = committed is not None
            log._find_segments(start_offset or 0)
            found = log._resume(recovery_point, now_ms) if clean else log._recover(recovery_point, now_ms)
            log.producers, log._snapshots.latest = found.state, found.latest
        except IsADirectoryError as error:
            raise not_a_file_error(Path(error.filename or directory)) from error
        except OSError as error:
            raise storage_error(f"cannot open the log in {directory}", error) from error
        active = log.segments[-1]
        active.trust_appended(log.end_offset)
        log.start_offset = min(max(log._find_start(noted_start), start_offset or 0), log.end_offset)
        log.fallen_short = log._find_lost_end(committed or 0)
        log._resume_high_watermark(committed)
        log.size_bytes = log._list.size_bytes
        log.release()
        if log.recovery is not None:
            LOG.warning("%s", log.recovery)
        return log

    def _find_segments(self, start_offset: int) -> None:
        found = find_segments(self.directory)
        for base_offset, status in found.items():
            self._list.add(Segment(self.directory, base_offset, status.st_size, self.config.index_interval_bytes))
        if not found:
            self._create_segment(start_offset)
        if len(found) > 1:
            self._add_missing_segments(found)

    def _find_start(self, noted: int | None) -> int:
        """Return the start of the log: the first segment's base offset, or an offset before it if files are gone."""
        self.lost = find_lost_start(self.directory, noted, self.bases[0])
        if self.lost is None:
            return self.bases[0]
        LOG.error("%s; %s", self.lost, self._damage_consequence())
        return self.lost.offset

    def _resume(self, recovery_point: int, now_ms: int) -> ProducerRecovery:
        """Find the end of the log after a clean shutdown: only the end of the last segment is read."""
        loader = LogLoader(recovery_point, True, self.epochs, copied=self.replicated)
        self.end_offset, _ = loader.load_segment(self.segments[-1], last=True)
        # An earlier crash damaged the log, and it has not followed a leader since.
        if self.replicated and recovery_point < self.end_offset:
            return self._recover(recovery_point, now_ms)
        self._durability.forced_to = self.end_offset
        return recover_producers(self.directory, self.segments, self.end_offset, now_ms)

    def _recover(self, recovery_point: int, now_ms: int) -> ProducerRecovery:
        """Find the end of the log after a crash: check the segments that may be incomplete on the disk."""
        unsure = self._list.number_of(recovery_point)
        self.epochs.load(all_is_read=recovery_point <= self.bases[0])
        found = begin_recovery(self.directory, self.segments, unsure, recovery_point, now_ms)
        loader = LogLoader(recovery_point, False, self.epochs, found, copied=self.replicated)
        self.end_offset, self.recovery = loader.load(self._list, unsure)
        self.torn_at = loader.torn_at
        self.epochs.truncate_from(self.end_offset)
        self._durability.forced_to = min(recovery_point, self.end_offset)
        self._durability.entries_changed = True
        return found

    @property
    def is_awaiting_flush(self) -> bool:
        """True if a full segment is not known to be on the disk."""
        return self._durability.forced_to < self.bases[-1]

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is known to be complete on the disk."""
        point = self._durability.forced_to
        return point if self.torn_at is None else min(point, self.torn_at)

    @property
    def has_unforced(self) -> bool:
        """True if `close` would have to flush anything."""
        return self._durability.has_unforced

    def flush(self, *, sync: bool = True) -> None:
        """Flush everything appended so far to the disk, including indexes and directory entries.

        Without `sync` the files are only written, and the caller must force the whole file system before it uses the recovery point.
        """
        try:
            self._durability.flush(self.end_offset, sync=sync)
        except OSError as error:
            if not self.closed:  # a deletion may have closed it meanwhile
                raise storage_error(f"cannot flush the log in {self.directory}", error) from error

    def release(self) -> None:
        """Close the files until they are used again."""
        for segment in self.segments:
            segment.release()

    def close(self, *, sync: bool = True) -> None:
        """Write the producer snapshot of the end, flush the log, and close its files. May be called twice. `sync` is passed to `flush`."""
        if self.closed:
            return
        try:
            self.segments[-1].complete_time_index()
            self._snapshots.write_last(self.end_offset, self.producers, self.size_bytes)
        except OSError as error:
            raise storage_error(f"cannot close the log in {self.directory}", error) from error
        self.flush(sync=sync)
        self.closed = True
        self.release()

    def delete(self, unique: uuid.UUID | None = None) -> None:
        """Delete the log and its directory, so that no crash brings it back."""
        self.closed = True
        try:
            remove_folder(self.directory, unique or uuid.uuid4())
        except OSError as error:
            raise storage_error(f"cannot delete {self.directory}", error) from error
        self.release()

    # --- Appending -----------------------------------------------------------------------------------------------

    def append(
        self,
        data: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Append the batches in `data`, which get their offsets and are stamped in place if the buffer is writable.

        For batches that a producer sends again the position of the first copy is returned. If any batch is rejected nothing is written.
        Raises CorruptRecordError for damaged bytes, and KafkaError if the log (MESSAGE_TOO_LARGE, OUT_OF_ORDER_SEQUENCE_NUMBER, …) or the
        disk (KAFKA_STORAGE_ERROR) rejects the batches.
        """
        return append_batches(self, data, leader_epoch, now_ms, origin, transaction_version)

    def append_as_is(self, data: Buffer, *, leader_epoch: int, now_ms: int) -> int:
        """Append a leader's batches with their offsets, epochs and timestamps; return the log's end after that.

        Raises CorruptRecordError, before anything is written, if the batches do not continue this log, or have an epoch above
        `leader_epoch`, that of the leader. Raises KafkaError(KAFKA_STORAGE_ERROR) if the disk rejects them. An incomplete batch at the
        end of `data` is ignored.
        """
        if self.closed:
            raise IllegalStateError(f"the log in {self.directory} is closed")
        check_place(self, now_ms)
        batches = list(self._checked_batches(memoryview(data), leader_epoch))
        if batches and batches[0].header.base_offset < self.end_offset:
            self.truncate_fully_and_start_at(batches[0].header.base_offset, now_ms=now_ms)
        for batch in batches:
            self._append_fetched(batch, now_ms)
        return self.end_offset

    def _checked_batches(self, view: memoryview, leader_epoch: int) -> Iterator[FetchedBatch]:
        expected, latest, position = self.end_offset, self.epochs.latest(), 0
        for position, header in iter_headers(view):
            try:
                verify(view, position, header)
            except CorruptRecordError as error:
                raise CorruptRecordError(
                    f"{self.directory.name}: the leader sent a damaged batch at offset {header.base_offset}: {error}; {REFETCH_HINT}"
                ) from None
            is_inside = header.base_offset < self.end_offset < header.next_offset
            if not position and not self.size_bytes and is_inside:
                expected = header.base_offset  # the leader's log starts inside this batch
            self._check_continues(header, expected, latest, leader_epoch)
            expected, latest = header.next_offset, max(latest, header.leader_epoch)
            marker = decode_end_marker(view, position, header) if header.is_control else None
            yield FetchedBatch(view[position : position + header.size_bytes], header, marker)
            position += header.size_bytes
        if view and not position:
            raise CorruptRecordError(
                f"{self.directory.name}: the leader sent {len(view)} bytes without a complete batch; {REFETCH_HINT}"
            )

    def _check_continues(self, header: BatchHeader, expected: int, latest: int, leader_epoch: int) -> None:
        """Raise CorruptRecordError if a batch does not follow the log's end."""
        if header.base_offset < expected:
            fault = f"the batch has offset {header.base_offset}, expected {expected} or more"
        elif header.leader_epoch < latest:
            fault = f"the batch at offset {header.base_offset} has leader epoch {header.leader_epoch}, after {latest}"
        elif header.leader_epoch > leader_epoch:
            fault = f"the batch at offset {header.base_offset} has leader epoch {header.leader_epoch}, the leader's is {leader_epoch}"
        else:
            return
        raise CorruptRecordError(
            f"{self.directory.name}: the leader sent batches that do not continue this replica: {fault}; {REFETCH_HINT}"
        )

    def _append_fetched(self, batch: FetchedBatch, now_ms: int) -> None:
        view, header, marker = batch
        latest = EARLIEST_TIMESTAMP if header.is_control else header.max_timestamp
        segment = segment_for(self, header.size_bytes, latest, header.base_offset, header.last_offset, now_ms)
        before = self._prepare_fetched(segment, now_ms, has_marker=marker is not None)
        try:
            segment.write(view)
            segment.add_batch(header)
            segment.changed = True
            self.epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                if marker is not None and self.replicated:
                    self.record_transaction_end(header)
                aborted = self.producers.add(header, marker, now_ms)
                if aborted is not None:
                    segment.transactions.append(aborted)
        except BaseException:
            roll_back_append(self, segment, before, now_ms)
            raise
        self.end_offset = header.next_offset
        if not self.replicated:
            self.high_watermark = self.end_offset
        self.size_bytes += header.size_bytes

    def _prepare_fetched(self, segment: Segment, now_ms: int, *, has_marker: bool) -> IndexSavepoint:
        """Read everything that the append will change; return the state to which a failed append is rolled back."""
        try:
            if self.producers_in_doubt:
                self.restore_producers(now_ms)
            self.epochs.load()
            if has_marker:
                verify_transaction_index(self.directory, self.segments, len(self.segments) - 1, now_ms)
            return segment.savepoint()
        except OSError as error:
            raise storage_error(f"cannot read the indexes of {segment.path}", error) from error

    @property
    def is_in_place(self) -> bool:
        """True if the file that is written to is still the one in the directory."""
        try:
            segment = self.segments[-1]
            file = segment.file  # held
            return os.path.samestat(os.stat(segment.path), os.fstat(file.fileno()))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # a failing disk is reported elsewhere

    # --- The high watermark and transactions ---------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """The exclusive end for `read_committed`: everything before the first transaction that is open or not yet stable."""
        first = self.producers.first_unstable_offset
        if not self.replicated:
            return self.end_offset if first is None else max(first, self.start_offset)
        watermark = self.high_watermark
        unstable = min(self._ended_above_watermark, default=watermark)
        return max(min(watermark, unstable, watermark if first is None else first), self.start_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Record that everything below `offset` is committed, as far as the log has it. Return True if that is new."""
        offset = self._clamp(offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self._ended_above_watermark:
            self._ended_above_watermark = {
                first: marker for first, marker in self._ended_above_watermark.items() if marker >= offset
            }
        return True

    def set_replicated(self, replicated: bool) -> None:
        """Set whether other brokers have replicas from now on. Without any, everything in the log is committed."""
        self.replicated = replicated
        if not replicated:
            self.high_watermark, self._ended_above_watermark = self.end_offset, {}

    def record_transaction_end(self, header: BatchHeader) -> None:
        """Record, before a marker is applied, that its transaction is not stable until the marker is committed."""
        entry = self.producers.entries.get(header.producer_id)
        if entry is not None and entry.transaction_start != NONE:
            self._ended_above_watermark[entry.transaction_start] = header.base_offset

    def lower_high_watermark(self, end_offset: int) -> None:
        """Lower the high watermark after a truncation: transactions with removed markers are open again."""
        self.high_watermark = min(self.high_watermark, end_offset)
        self._ended_above_watermark = {
            first: marker for first, marker in self._ended_above_watermark.items() if marker < end_offset
        }

    def copy_transaction_ends(self, source: Log) -> None:
        """Take over from another copy of this log which transactions are not stable yet."""
        self._ended_above_watermark = dict(source._ended_above_watermark)

    def _resume_high_watermark(self, checkpoint: int | None) -> None:
        """Set the high watermark after opening: the checkpoint, or the end of a log without other replicas."""
        self.high_watermark = self.end_offset if checkpoint is None else self._clamp(checkpoint)
        if self.high_watermark < self.end_offset:
            still_open = set(self.producers.open)
            opened = open_transactions_at(self.directory, self.segments, self.high_watermark)
            # the markers are above the high watermark; the last possible offset is used for each
            self._ended_above_watermark = {first: self.end_offset - 1 for first in opened if first not in still_open}

    def _clamp(self, offset: int) -> int:
        return min(max(offset, self.start_offset), self.end_offset)

    # --- Reading -------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, min_one: bool = True, up_to: int | None = None) -> FileSlice | None:
        """Return whole batches of one segment, from the one that holds `offset`; None at `up_to` or at the end of the log.

        Consumers read up to the high watermark. The batches have at most `max_bytes`, but with `min_one` the first is returned
        whole whatever its size; without it, None means that it did not fit. KafkaError(OFFSET_OUT_OF_RANGE) is raised outside the log.
        """
        found = self._slice(offset, max_bytes, min_one, self.end_offset if up_to is None else up_to)
        return None if found is None else found[0]

    def read_committed(
        self, offset: int, max_bytes: int, *, min_one: bool = True
    ) -> tuple[FileSlice | None, list[AbortedTxn]]:
        """Read up to the last stable offset; return the batches and the aborted transactions among them."""
        return self._read_committed(offset, max_bytes, min_one, self.last_stable_offset)

    def read_last_append(self, offset: int, max_bytes: int) -> FileSlice | None:
        """Return the batches from `offset` to the log's end from memory, if they are the last append.

        None if they may be anything else, if a transaction may have been aborted among them, or if anything is wrong with the
        log: `read` and `read_committed` handle these cases.
        """
        return None if offset < self.start_offset else self.segments[-1].read_last_append(offset, max_bytes)

    def _read_committed(
        self, offset: int, max_bytes: int, min_one: bool, up_to: int
    ) -> tuple[FileSlice | None, list[AbortedTxn]]:
        found = self._slice(offset, max_bytes, min_one, up_to)
        if found is None:
            return None, []
        piece, number = found
        if self._list.has_no_aborted_from(number):
            return piece, []
        try:
            upper = self._list.offset_above(number, piece)
            aborted = self.find_aborted(number, offset, up_to if upper is None else min(upper, up_to))
        except OSError as error:
            raise storage_error(f"cannot read a transaction index in {self.directory}", error) from error
        unsure = find_first_unsure(aborted) if aborted else None
        if unsure is None:
            return piece, aborted
        before = self._read_committed(offset, max_bytes, min_one, unsure.first_offset)
        if before[0] is None:
            raise DamagedLogError(self.unsure_end(unsure))
        return before

    def _slice(self, offset: int, max_bytes: int, min_one: bool, up_to: int) -> tuple[FileSlice, int] | None:
        """Return a piece of a segment, and the number of the segment."""
        if not self.start_offset <= offset <= self.end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside of {self.start_offset} to {self.end_offset}",
            )
        if offset >= up_to:
            return None
        end = up_to if up_to < self.end_offset else None
        if self.lost is not None and offset < self.bases[0]:
            raise DamagedLogError(self.lost)
        try:
            return self._list.slice(offset, max_bytes, min_one=min_one, end=end)
        except DamagedLogError:
            raise
        except CorruptRecordError:
            with self._list.distrust_from(offset, self.end_offset):
                return self._list.slice(offset, max_bytes, min_one=min_one, end=end)

    def find_aborted(self, number: int, offset: int, upper: int) -> list[AbortedTxn]:
        """Return the aborted transactions with records from `offset`, in segment `number`, up to (not including) `upper`."""
        return find_aborted_transactions(self.directory, self.segments, number, offset, upper)

    def offset_for_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """Return the first record, by offset, with a timestamp of at least `timestamp` (ms)."""
        return self._list.offset_for_timestamp(timestamp, self.start_offset)

    def max_timestamp(self) -> OffsetAndTimestamp | None:
        """Return the first record with the largest timestamp; None if the log is empty."""
        return self._list.max_timestamp()

    # --- Segments: rolling, retention, compaction ----------------------------------------------------------------

    def roll(self, now_ms: int) -> None:
        """Start a new segment at the log's end, unless the active one is empty."""
        try:
            if self.segments[-1].size:
                self.begin_segment(now_ms)
        except OSError as error:
            raise storage_error(f"cannot create a new segment in {self.directory}", error) from error

    def begin_segment(self, now_ms: int, base_offset: int = 0) -> None:
        """Close the active segment and create the next one at the log's end, or at a later offset if the offsets between are compacted away.

        Raises OSError if the disk rejects it.
        """
        self.segments[-1].seal()
        ended, self.end_offset = self.end_offset, max(self.end_offset, base_offset)
        self._snapshots.write(self.end_offset, self.producers)
        self._create_segment(self.end_offset)
        self._record_gap(self.segments[-2], ended)
        self.active_since_ms = now_ms

    def _create_segment(self, base_offset: int) -> None:
        self._list.add(Segment.create(self.directory, base_offset, self.config.index_interval_bytes))
        self._durability.entries_changed = True

    def retain(self, now_ms: int) -> list[Segment]:
        """Delete the segments that are expired or below the log's start, and return them.

        Nothing is deleted during a compaction, which reads the same files.
        """
        if self.cleaning:
            return []
        try:
            count = count_deletable(
                self._list.ages(self.end_offset),
                self.size_bytes,
                self.config,
                start_offset=self.start_offset,
                now_ms=now_ms,
                high_watermark=self.high_watermark,
            )
            deleted = self.segments[:count]
            if count == len(self.segments):
                self._roll_before_deleting_all(now_ms)
            if deleted:
                record_deletion(self.directory, self.bases[count])
            for segment in deleted:
                segment.path.unlink(missing_ok=True)  # if that fails the segment stays in the log, for another attempt
                self._remove_first()
                segment.delete()
                snapshot_path(self.directory, segment.base_offset).unlink(missing_ok=True)
            if deleted:
                sync_path(self.directory)
        except OSError as error:
            raise storage_error(f"cannot delete old segments in {self.directory}", error) from error
        return deleted

    def _roll_before_deleting_all(self, now_ms: int) -> None:
        """Create the segment that stays. A full disk must not prevent the deletion that frees space."""
        try:
            self.begin_segment(now_ms)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._create_segment(self.end_offset)
            self.active_since_ms = now_ms

    def _remove_first(self) -> None:
        self.size_bytes -= self._list.remove_first().size
        self.start_offset = max(self.start_offset, self.bases[0])

    def replace(self, bases: Sequence[int], segment: Segment) -> None:
        """Use a compacted `segment` instead of the segments with these base offsets, which are adjacent and not active."""
        replaced = self._list.replace(bases, segment)
        self.size_bytes += segment.size - sum(one.size for one in replaced)
        for one in replaced:
            one.retire()

    def advance_start(self, offset: int) -> None:
        """Move the log's start to `offset`; the segments before it are deleted by the next `retain`."""
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"cannot delete up to offset {offset}: the log ends at {self.end_offset}"
            )
        self.start_offset = max(self.start_offset, offset)

    # --- Truncation ----------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int, *, now_ms: int) -> int:
        """Remove everything from `offset` on and return the new end; a batch that holds the offset is removed whole.

        KafkaError(KAFKA_STORAGE_ERROR) is raised if the disk fails, or if compaction is using the segments.
        """
        # The producers are in doubt after a truncation that failed halfway.
        if offset >= self.end_offset and not self.producers_in_doubt:
            self.epochs.truncate_from(self.end_offset)  # an epoch may have started without a batch
            return self.end_offset
        if offset < self.bases[0]:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return offset
        # If the truncation would leave a segment empty, that segment is deleted and the one before it becomes active.
        segment = self.segments[max(bisect_left(self.bases, offset) - 1, 0)]
        self._check_not_cleaning(segment)
        try:
            position, end = segment.truncation_point(offset)
            self._announce_truncation(end)
            self._durability.lower_recovery_point(end)
            record_unknown(self.directory, segment.base_offset)
            self._drop_segments_after(segment.base_offset)
            segment.truncate(position, end)
            self._finish_truncation(end, now_ms)
        except OSError as error:
            raise storage_error(f"cannot truncate the log in {self.directory} at offset {offset}", error) from error
        return end

    def add_truncation_listener(self, listener: Callable[[int], None]) -> None:
        """Call `listener` with the new end before each truncation, the last added first.

        The owner of checkpoints lowers them in it before records are removed.
        """
        self._truncation_listeners.insert(0, listener)

    def _announce_truncation(self, end: int) -> None:
        for listener in self._truncation_listeners:
            listener(end)

    def truncate_torn(self, *, now_ms: int) -> int:
        """Truncate the log at the first damage of a crash (`torn_at`), and remove an epoch without a batch, before a leader is followed."""
        return self.truncate_to(self.end_offset if self.torn_at is None else self.torn_at, now_ms=now_ms)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Remove everything and continue at `offset`."""
        self._check_not_cleaning(self.segments[0])
        try:
            record_deletion(self.directory, max(offset, self.bases[0]))
            self._announce_truncation(0)
            self._durability.lower_recovery_point(0)
            self._delete_snapshots()
            self._drop_segments_after(-1)
            self._start_at(offset)
            self._finish_truncation(offset, now_ms)
            # Written now: without batches a start cannot detect that the epochs in the file are outdated.
            self.epochs.flush(offset)
        except OSError as error:
            self.closed = self.closed or not self.segments
            raise storage_error(f"cannot restart the log in {self.directory} at offset {offset}", error) from error

    def _check_not_cleaning(self, segment: Segment) -> None:
        """Raise KafkaError if compaction uses files that would be removed. The caller retries the truncation after the compaction."""
        if self.cleaning and segment is not self.segments[-1]:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self.directory.name} is being compacted and can be truncated at offset {segment.base_offset} only after that: try again",
            )

    def _drop_segments_after(self, offset: int) -> None:
        """Delete the segments with a base offset above `offset`, the last first, so that the rest is a prefix at any time."""
        is_dropped = self.producers_in_doubt  # the deletions of a truncation that failed halfway may not be on the disk
        while self.segments and self.segments[-1].base_offset > offset:
            segment = self.segments[-1]
            segment.retire()
            try:
                segment.delete()
            finally:
                if not segment.path.exists():
                    with READER_LOCK:
                        self._forget_last_segment()
                    is_dropped = True
        if is_dropped:
            sync_path(self.directory)

    def _forget_last_segment(self) -> None:
        """Remove the last segment after the deletion of its file: the log ends at its base offset, even if the rest of the truncation fails."""
        (deleted,) = self._list.remove_from(len(self.segments) - 1)
        self.end_offset = min(self.end_offset, deleted.base_offset)
        self.size_bytes -= deleted.size
        self.lower_high_watermark(self.end_offset)
        self.producers_in_doubt = self._durability.entries_changed = True
        if self.segments:
            self.segments[-1].next_base = INT64_MAX
        self.epochs.truncate_from(self.end_offset)

    def _start_at(self, offset: int) -> None:
        """Create the first segment of a log that has none."""
        self.epochs.truncate_from(0)
        self._create_segment(offset)
        self.start_offset = self.end_offset = self.high_watermark = self._durability.forced_to = offset
        self.torn_at = self.lost = None

    def _finish_truncation(self, end: int, now_ms: int) -> None:
        """Derive the log's limits, epochs, transactions and producers from the remaining batches."""
        self.end_offset = end
        if self.torn_at is not None and end <= self.torn_at:
            self.torn_at = None
        self.start_offset = min(self.start_offset, end)
        self.active_since_ms = now_ms
        self.size_bytes = sum(segment.size for segment in self.segments)
        self.lower_high_watermark(end)
        drop_lost(self.directory, end)
        self.epochs.truncate_from(end)
        try:
            self.segments[-1].transactions.truncate(end)
        except CorruptRecordError:
            pass  # it is rebuilt from the log before it is read
        self.producers_in_doubt = True
        self.restore_producers(now_ms)

    # --- Producer state ------------------------------------------------------------------------------------------

    def restore_producers(self, now_ms: int) -> None:
        """Rebuild the producer state from the log. Snapshots above the log's end are deleted."""
        self._snapshots.roll_back_to(self.end_offset)
        if self._durability.entries_changed:
            sync_path(self.directory)  # a dropped segment must not return after batches that are appended from now on
        found = recover_producers(self.directory, self.segments, self.end_offset, now_ms)
        self.producers, self._snapshots.latest = found.state, found.latest
        self.producers_in_doubt = False

    def _delete_snapshots(self) -> None:
        self._snapshots.roll_back_to(0)
        for offset in snapshot_offsets(self.directory):
            snapshot_path(self.directory, offset).unlink(missing_ok=True)

    def keeping_producers(self) -> Callable[[], None] | None:
        """Return a function that writes a producer snapshot, callable in any thread; None if a restart would gain nothing."""
        return self._snapshots.prepare_snapshot(self.end_offset, self.recovery_point, self.producers)

    # --- Damage --------------------------------------------------------------------------------------------------

    def known_damages(self) -> Iterator[Damage]:
        """Yield the damages that are known, in the order of their offsets, without searching for others."""
        if self.lost is not None and self.start_offset < self.bases[0]:
            yield self.lost
        for segment in self.segments:
            for damage in tuple(segment.ranges.damages):
                if damage.offset >= self.start_offset or damage.next_offset > self.start_offset:
                    yield damage

    def find_damage(self, offset: int) -> Damage | None:
        """Check every CRC from `offset` on. Return the first damage, which is known from then on; None if there is none."""
        first = max(bisect_right(self.bases, offset) - 1, 0)
        for number, segment in enumerate(self.segments[first:]):
            bounds = Bounds(min(segment.next_base, self.end_offset), segment.epochs())
            start = 0 if segment.size <= FULL_SURVEY_BYTES or number else segment.entry_before(offset)[1]
            for found in survey_batches(segment.file, segment.path, segment.size, segment.base_offset, bounds, start):
                if isinstance(found, Damage) and (found.next_offset > offset or not found.size_bytes):
                    segment.ranges.add_checksum_damage(found)
                    return found
            for missing in segment.ranges.missing:
                if missing.next_offset > offset:
                    return missing
        return None

    def unsure_end(self, unsure: AbortedTxn) -> UnsureEnd:
        """Return the damage in which a transaction may have ended."""
        segment = self.segments[max(bisect_right(self.bases, unsure.last_offset) - 1, 0)]
        damage = segment.ranges.damage_at(unsure.last_offset)
        position, size = (damage.position, damage.size_bytes) if damage is not None else (0, 0)
        return UnsureEnd(
            segment.path,
            position,
            size,
            unsure.first_offset,
            unsure.last_offset + 1,
            "the log is damaged",
            unsure.producer_id,
        )

    def out_of_service(self, offset: int, error: Exception) -> OutOfServiceError:
        """Return the error for a log that must be read as a whole, and cannot be read from `offset` on because of `error`."""
        return OutOfServiceError(f"{self.find_damage(offset) or error}; {repair_remedy(self.directory)}")

    def _add_missing_segments(self, found: Mapping[int, os.stat_result]) -> None:
        """Compare the segments that were found with `segment-succession`: add the missing ones as damages."""
        missing, unnoted = compare_segments(self.directory, found)
        self._list.unnoted = deque(each for each in self.segments if each.base_offset in set(unnoted))
        for each in missing:
            segment = self.segments[bisect_left(self.bases, each.base_offset)]
            unsound = find_lost_offsets(segment.path, segment.size, each)
            if unsound is None:
                self._list.unnoted.append(segment)
                continue
            damage = segment.ranges.add_missing(unsound)
            segment.transactions.distrust()
            LOG.error("%s; %s", damage, self._damage_consequence())

    def _record_gap(self, segment: Segment, ended: int) -> None:
        """Record the end of a segment in `segment-succession` if the next segment starts after `ended`.

        If its end is lost, later starts report the damage until it is repaired. If the leader has compacted the offsets in between away,
        there is no damage.
        """
        due = segment.ranges.expected_next_base(segment.size, segment.next_base)
        if min(due, ended) < segment.next_base:
            write_rows(segment.directory, [row_of(segment.path, due)])

    def _find_lost_end(self, committed: int) -> Damage | None:
        """Return the damage at the end of a log that was just opened: it was truncated, is torn, or ends below `committed`."""
        end = self.end_offset if self.torn_at is None else self.torn_at
        if self.recovery is None and end >= committed and self.torn_at is None:
            return None
        last = self.segments[-1]
        reason = f"a crash has taken what it had from offset {end} on"
        return Damage(last.path, last.size, 0, end, max(end + 1, committed), reason)

    def _damage_consequence(self) -> str:
        """Return, for a log line, what damage in the log leads to and how it is repaired."""
        if self.replicated:
            return "the copy is made whole from another broker's, if one has all of it"
        return f"readers that reach it get an error; {repair_remedy(self.directory)}"
