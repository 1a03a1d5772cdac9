"""The log of one partition: segments in a folder, one writer, any number of readers.

    append ──► [ segment │ segment │ active segment ] ──► read
                └ start_offset                   end_offset ┘

Every call may block on the disk. All belong to one thread, but for `flush`, and `read` with `READER_LOCK` held.
"""

from __future__ import annotations

import errno
import logging
import os
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import INT64_MAX, Buffer, FileSlice, OffsetAndTimestamp
from ottla.storage.batches.damage import Damage, DamagedLogError, folder_in_place
from ottla.storage.files.durable import sync_path
from ottla.storage.files.storage_error import storage_error
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import high_watermark
from ottla.storage.log.appending import Appended, append
from ottla.storage.log.durability import Durability
from ottla.storage.log.following import append_as_is
from ottla.storage.log.log_damage import fallen_short, note_gap, note_missing, outlook, unsure_end
from ottla.storage.log.log_end import LogEnd
from ottla.storage.log.truncation import start_anew, truncate_to
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.producers.producer_snapshot import snapshot_offsets, snapshot_path
from ottla.storage.producers.producer_state import AbortedTransaction, first_unsure
from ottla.storage.producers.snapshot_keeper import SnapshotKeeper
from ottla.storage.recovery.epoch_check import true_epochs
from ottla.storage.recovery.log_loader import LogLoader, Recovery, recover_from
from ottla.storage.recovery.producer_recovery import ProducerRecovery, begin_recovery, recover_producers
from ottla.storage.recovery.transaction_check import aborted_transactions
from ottla.storage.segments.beginning import lost_beginning, note_deleted
from ottla.storage.segments.log_folder import find_segments, remove_folder
from ottla.storage.segments.retention import deletable
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.segment_list import SegmentList

LOG = logging.getLogger(__name__)


class Log(LogEnd):
    """Record batches by offset, from `start_offset` up to (not including) `end_offset`."""

    def __init__(self, directory: Path, config: LogConfig) -> None:
        """Use `Log.open`."""
        segments = SegmentList(directory, lambda: self.epochs.entries)
        super().__init__(
            directory, config, segments.segments, LeaderEpochs(directory, partial(true_epochs, segments.segments))
        )
        self._list = segments
        self.bases = segments.bases
        """Base offsets of the segments."""
        self.unreplicated: dict[int, int] = {}
        """First offsets of transactions that have ended above the high watermark, and the offsets of their markers."""
        self.recovery: Recovery | None = None
        """What was cut off when the log was opened after a crash."""
        self.torn_at: int | None = None
        """The first offset that a crash left damaged with whole batches behind it, until the log is cut there. The recovery point waits there."""
        self.fallen_short: Damage | None = None
        """What a crash has taken from its end, as far as that can be seen, until it has followed somebody who has all."""
        self.lost: Damage | None = None
        """The offsets before the first segment, if they are gone and nobody deleted them."""
        self._snapshots = SnapshotKeeper(directory)
        self.cleaning = False
        """Whether compaction is at work on the segments' files."""
        self._durability = Durability(self._list, self.epochs)
        self.before_cut: Callable[[int], None] = lambda offset: None
        """Told the new end before the log is cut; what was written down elsewhere must not speak of more."""

    def __repr__(self) -> str:
        return f"Log({self.directory}, offsets {self.start_offset} to {self.end_offset})"

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
        """Open the log in `directory`, which is made if it is not there.

        Unless the last shutdown was `clean`, all batches from `recovery_point` on are checked and a torn tail is
        cut off (`log.recovery` tells). `start_offset` is where records begin that were not deleted, `committed` the high
        watermark that was written down of a log of which other brokers have copies. `noted_start` is where it is sure to have begun
        once: offsets from there on that are in no file were not deleted, and readers are told so.
        """
        log = cls(directory, config)
        log.active_since_ms = now_ms
        try:
            if not directory.is_dir():
                directory.mkdir(parents=True, exist_ok=True)
            log.replicated = committed is not None
            log._find(start_offset or 0)
            found = log._resume(recovery_point, now_ms) if clean else log._recover(recovery_point, now_ms)
            log.producers, log._snapshots.latest = found.state, found.latest
        except IsADirectoryError as error:
            raise folder_in_place(Path(error.filename or directory)) from error
        except OSError as error:
            raise storage_error(f"cannot open the log in {directory}", error) from error
        active = log.segments[-1]
        active.own_position, active.own_offset = active.size, log.end_offset
        log.start_offset = min(max(log._begin(noted_start), start_offset or 0), log.end_offset)
        log.fallen_short = fallen_short(log, committed or 0)
        high_watermark.resume(log, committed)
        log.size_bytes = log._list.size_bytes
        log.release()
        if log.recovery is not None:
            LOG.warning("%s", log.recovery)
        return log

    @property
    def last_stable_offset(self) -> int:
        """What readers of committed records may see: everything before the first transaction that is open."""
        if self.replicated:
            return high_watermark.stable_offset(self)
        first = self.producers.first_unstable_offset
        return self.end_offset if first is None else max(first, self.start_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Note that all below `offset` is committed, as far as it is here; whether that is news."""
        return high_watermark.advance(self, offset)

    def replicate(self, replicated: bool) -> None:
        """Note whether other brokers have copies from now on. Without any, all that is here is committed."""
        self.replicated = replicated
        if not replicated:
            self.high_watermark, self.unreplicated = self.end_offset, {}

    def append(
        self,
        data: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Append the batches in `data`, which get their offsets and are stamped in place if it is writable.

        What a producer sends a second time is answered with where it is. Nothing is written when anything is refused:
        CorruptRecordError for damaged bytes, KafkaError for what this log does not take (MESSAGE_TOO_LARGE,
        OUT_OF_ORDER_SEQUENCE_NUMBER, …) or the disk does not (KAFKA_STORAGE_ERROR).
        """
        return append(self, data, leader_epoch, now_ms, origin, transaction_version)

    def append_as_is(self, data: Buffer, *, leader_epoch: int, now_ms: int) -> int:
        """Append a leader's batches as a follower does, with their offsets, epochs and times; the log's end after that.

        CorruptRecordError, before anything is written, where they cannot be what comes next, also as they are of a later epoch
        than `leader_epoch`, the leader's; KafkaError(KAFKA_STORAGE_ERROR) where the disk does not take them.
        """
        return append_as_is(self, data, leader_epoch, now_ms)

    @property
    def in_place(self) -> bool:
        """Whether the file that is written to is still the one that others find."""
        try:
            segment = self.segments[-1]
            file = segment.file  # held
            return os.path.samestat(os.stat(segment.path), os.fstat(file.fileno()))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # A sick disk is another matter.

    def read(self, offset: int, max_bytes: int, *, min_one: bool = True, up_to: int | None = None) -> FileSlice | None:
        """Whole batches of one segment, from the one that holds `offset`; None at `up_to`, or at the end of the log.

        Consumers read up to the high watermark. They are at most `max_bytes`, but with `min_one` the first comes whole however large it is; without, None
        says that it did not fit. Raises KafkaError(OFFSET_OUT_OF_RANGE) outside the log.
        """
        found = self._slice(offset, max_bytes, min_one, self.end_offset if up_to is None else up_to)
        return None if found is None else found[0]

    def read_committed(
        self, offset: int, max_bytes: int, *, min_one: bool = True
    ) -> tuple[FileSlice | None, list[AbortedTransaction]]:
        """The same up to the last stable offset, and which transactions in there were aborted."""
        return self._read_committed(offset, max_bytes, min_one, self.last_stable_offset)

    def _read_committed(
        self, offset: int, max_bytes: int, min_one: bool, up_to: int
    ) -> tuple[FileSlice | None, list[AbortedTransaction]]:
        found = self._slice(offset, max_bytes, min_one, up_to)
        if found is None:
            return None, []
        piece, number = found
        if self._list.none_aborted_from(number):
            return piece, []
        try:
            upper = self._list.offset_above(number, piece)
            aborted = self.aborted(number, offset, up_to if upper is None else min(upper, up_to))
        except OSError as error:
            raise storage_error(f"cannot read a transaction index in {self.directory}", error) from error
        unsure = first_unsure(aborted) if aborted else None
        if unsure is None:
            return piece, aborted
        before = self._read_committed(offset, max_bytes, min_one, unsure.first_offset)
        if before[0] is None:
            raise DamagedLogError(unsure_end(self, unsure))
        return before

    def _slice(self, offset: int, max_bytes: int, min_one: bool, up_to: int) -> tuple[FileSlice, int] | None:
        """What is read, and the number of its segment."""
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
            with self._list.doubting(offset, self.end_offset):
                return self._list.slice(offset, max_bytes, min_one=min_one, end=end)

    def aborted(self, number: int, offset: int, upper: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `offset`, in segment `number`, up to (not including) `upper`."""
        return aborted_transactions(self.directory, self.segments, number, offset, upper)

    def offset_for_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """The first record, by offset, that is not earlier than `timestamp` (ms)."""
        return self._list.offset_for_timestamp(timestamp, self.start_offset)

    def max_timestamp(self) -> OffsetAndTimestamp | None:
        """The first record with the largest timestamp of the log; None where the log is empty."""
        return self._list.max_timestamp()

    @property
    def awaits_flush(self) -> bool:
        """Whether a full segment is not known to be on the disk."""
        return self._durability.forced_to < self.bases[-1]

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is known to be on the disk, and whole."""
        point = self._durability.forced_to
        return point if self.torn_at is None else min(point, self.torn_at)

    @property
    def unforced(self) -> bool:
        """Whether there is anything that `close` would have to force to the disk."""
        return self._durability.unforced

    def flush(self, *, sync: bool = True) -> None:
        """Force everything appended so far to the disk, indexes and folder entries included.

        Without `sync` it is only written, and the caller forces the whole file system before he relies on it.
        """
        try:
            self._durability.flush(self.end_offset, sync=sync)
        except OSError as error:
            if not self.closed:  # by a deletion meanwhile
                raise storage_error(f"cannot flush the log in {self.directory}", error) from error

    def retain(self, now_ms: int) -> list[Segment]:
        """Delete the segments that retention or the log's start no longer keep; they are returned.

        None while a cleaning is under way: it reads the same files.
        """
        if self.cleaning:
            return []
        try:
            count = deletable(
                self._list.ages(self.end_offset),
                self.size_bytes,
                self.config,
                start_offset=self.start_offset,
                now_ms=now_ms,
                high_watermark=self.high_watermark,
            )
            deleted = self.segments[:count]
            if count == len(self.segments):
                self._roll_before_all_goes(now_ms)
            if deleted:
                note_deleted(self.directory, self.bases[count])
            for segment in deleted:
                segment.path.unlink(missing_ok=True)  # As long as that fails the log has it, and tries again.
                self._remove_first()
                segment.delete()
                snapshot_path(self.directory, segment.base_offset).unlink(missing_ok=True)
            if deleted:
                sync_path(self.directory)
        except OSError as error:
            raise storage_error(f"cannot delete old segments in {self.directory}", error) from error
        return deleted

    def replace(self, bases: Sequence[int], segment: Segment) -> None:
        """Read a compacted `segment` instead of those with these base offsets, neighbours that are not active."""
        replaced = self._list.replace(bases, segment)
        self.size_bytes += segment.size - sum(one.size for one in replaced)
        for one in replaced:
            one.retire()

    def advance_start(self, offset: int) -> None:
        """Let the log begin at `offset`; the segments before it go with the next `retain`."""
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"cannot delete up to offset {offset}: the log ends at {self.end_offset}"
            )
        self.start_offset = max(self.start_offset, offset)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the log's end, unless the present one is empty."""
        try:
            if self.segments[-1].size:
                self.begin_segment(now_ms)
        except OSError as error:
            raise storage_error(f"cannot begin a new segment in {self.directory}", error) from error

    def truncate_to(self, offset: int, *, now_ms: int) -> int:
        """Drop everything from `offset` on and return the new end; a batch that holds the offset is dropped whole.

        KafkaError(KAFKA_STORAGE_ERROR) where the disk refuses, or compaction is at work there.
        """
        return truncate_to(self, offset, now_ms)

    def truncate_torn(self, *, now_ms: int) -> int:
        """Give up, before a leader is followed, what no leader has: all from where a crash tore it, and an epoch without a batch."""
        return self.truncate_to(self.end_offset if self.torn_at is None else self.torn_at, now_ms=now_ms)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Drop everything and go on at `offset`."""
        start_anew(self, offset, now_ms)

    def lower_recovery_point(self, offset: int) -> None:
        """Before files are cut: what lies from `offset` on is not to be believed any more."""
        self._durability.lower(offset)

    def forget_snapshots(self) -> None:
        """Keep nothing that was written down of producers."""
        self._snapshots.go_back(0)
        for offset in snapshot_offsets(self.directory):
            snapshot_path(self.directory, offset).unlink(missing_ok=True)

    def restore_producers(self, now_ms: int) -> None:
        """Find in the log what its producers are at; what was written down of a later end goes."""
        self._snapshots.go_back(self.end_offset)
        if self._durability.entries_changed:
            sync_path(self.directory)  # What a cut has dropped must not come back behind what is appended from now on.
        found = recover_producers(self.directory, self.segments, self.end_offset, now_ms)
        self.producers, self._snapshots.latest = found.state, found.latest
        self.producers_in_doubt = False

    def drop_last(self) -> None:
        """Know no more of the last segment, whose file is gone: the log ends where it began, whether what else is to be cut can be or not."""
        (gone,) = self._list.remove_from(len(self.segments) - 1)
        self.end_offset = min(self.end_offset, gone.base_offset)
        self.size_bytes -= gone.size
        high_watermark.forget_from(self, self.end_offset)
        self.producers_in_doubt = self._durability.entries_changed = True
        if self.segments:
            self.segments[-1].below = INT64_MAX
        self.epochs.truncate_from(self.end_offset)

    def begin_at(self, offset: int) -> None:
        """Have a first segment, where there is none any more."""
        self.epochs.truncate_from(0)
        self._create(offset)
        self.start_offset = self.end_offset = self.high_watermark = self._durability.forced_to = offset
        self.torn_at = self.lost = None

    def keeping_producers(self) -> Callable[[], None] | None:
        """What writes down the producers known here, in any thread; None where a restart would gain nothing."""
        return self._snapshots.keeping(self.end_offset, self.recovery_point, self.producers)

    def release(self) -> None:
        """Close files until they are used again."""
        for segment in self.segments:
            segment.release()

    def close(self, *, sync: bool = True) -> None:
        """Write what a clean shutdown needs and close the files; may be called twice. `sync` is that of `flush`."""
        if self.closed:
            return
        try:
            self.segments[-1].complete()
            self._snapshots.write_last(self.end_offset, self.producers, self.size_bytes)
        except OSError as error:
            raise storage_error(f"cannot close the log in {self.directory}", error) from error
        self.flush(sync=sync)
        self.closed = True
        self.release()

    def delete(self, unique: uuid.UUID | None = None) -> None:
        """Remove the log and its folder, so that no crash brings it back."""
        self.closed = True
        try:
            remove_folder(self.directory, unique or uuid.uuid4())
        except OSError as error:
            raise storage_error(f"cannot delete {self.directory}", error) from error
        self.release()

    def _find(self, start_offset: int) -> None:
        found = find_segments(self.directory)
        for base_offset, status in found.items():
            self._list.add(Segment(self.directory, base_offset, status.st_size, self.config.index_interval_bytes))
        if not found:
            self._create(start_offset)
        if len(found) > 1:
            note_missing(self._list, found, outlook(self))

    def _begin(self, noted: int | None) -> int:
        """Where the log begins: at its first segment, or before it where files are gone."""
        self.lost = lost_beginning(self.directory, noted, self.bases[0])
        if self.lost is None:
            return self.bases[0]
        LOG.error("%s; %s", self.lost, outlook(self))
        return self.lost.offset

    def _create(self, base_offset: int) -> None:
        self._list.add(Segment.create(self.directory, base_offset, self.config.index_interval_bytes))
        self._durability.entries_changed = True

    def _resume(self, recovery_point: int, now_ms: int) -> ProducerRecovery:
        """Go on after a clean shutdown: only the end of the last segment is looked at."""
        loader = LogLoader(recovery_point, True, self.epochs, copied=self.replicated)
        self.end_offset, _ = loader.load_segment(self.segments[-1], last=True)
        if self.replicated and recovery_point < self.end_offset:  # it was torn, and did not come to follow anybody
            return self._recover(recovery_point, now_ms)
        self._durability.forced_to = self.end_offset
        return recover_producers(self.directory, self.segments, self.end_offset, now_ms)

    def _recover(self, recovery_point: int, now_ms: int) -> ProducerRecovery:
        """Check the segments that may not be whole on the disk."""
        unsure = self._list.number_of(recovery_point)
        self.epochs.load(all_is_read=recovery_point <= self.bases[0])
        found = begin_recovery(self.directory, self.segments, unsure, recovery_point, now_ms)
        loader = LogLoader(recovery_point, False, self.epochs, found, copied=self.replicated)
        self.end_offset, self.recovery = recover_from(self._list, unsure, loader)
        self.torn_at = loader.torn_at
        self.epochs.truncate_from(self.end_offset)
        self._durability.forced_to = min(recovery_point, self.end_offset)
        self._durability.entries_changed = True
        return found

    def begin_segment(self, now_ms: int, base_offset: int = 0) -> None:
        """Close the active segment and begin the next at the log's end, or at a later offset if none comes before that.

        OSError where the disk does not let us.
        """
        self.segments[-1].seal()
        ended, self.end_offset = self.end_offset, max(self.end_offset, base_offset)
        self._snapshots.write(self.end_offset, self.producers)
        self._create(self.end_offset)
        note_gap(self.segments[-2], ended)
        self.active_since_ms = now_ms

    def _roll_before_all_goes(self, now_ms: int) -> None:
        """The same where no segment is to stay: a full disk must not keep what makes room from going."""
        try:
            self.begin_segment(now_ms)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._create(self.end_offset)
            self.active_since_ms = now_ms

    def _remove_first(self) -> None:
        self.size_bytes -= self._list.remove_first().size
        self.start_offset = max(self.start_offset, self.bases[0])
