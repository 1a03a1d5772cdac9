"""The directory in which a broker keeps its logs, one folder for each partition.

.lock  meta.properties  .kafka_cleanshutdown
recovery-point-offset-checkpoint  log-start-offset-checkpoint  cleaner-offset-checkpoint  replication-offset-checkpoint
<topic>-<partition>/…
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ottla.errors import ConfigError, ErrorCode, KafkaError, OttlaError
from ottla.kafka_id import id_of, text_of
from ottla.model import INT64_MAX, TopicPartition
from ottla.storage.batches.damage import OutOfServiceError, not_a_file_error, remedy
from ottla.storage.directory.clean_shutdown import CLEAN_SHUTDOWN, NO_EPOCH, clean_shutdown_text, epoch_in
from ottla.storage.directory.deletions import Deletions
from ottla.storage.directory.directory_lock import DirectoryLock
from ottla.storage.directory.future_logs import FutureLogs
from ottla.storage.directory.high_watermarks import HighWatermarks
from ottla.storage.directory.lost_directories import LostDirectories, ensure_identity
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.directory.offset_checkpoints import WITHOUT, OffsetCheckpoints
from ottla.storage.directory.privacy import make_private
from ottla.storage.directory.whole_state import ensure_whole
from ottla.storage.files.checkpoint import read_offsets, write_offsets
from ottla.storage.files.durable import can_sync_file_system, remove_tree, replace_file, sync_file_system, sync_path
from ottla.storage.files.regular_file import kind_of
from ottla.storage.files.storage_error import is_fatal, storage_error
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.log_folder import (
    DELETED_NAME,
    METADATA_FILE,
    are_same_id,
    has_segments,
    partition_of,
    read_topic_id,
    set_aside,
    size_from,
    write_topic_id,
)

LOG = logging.getLogger(__name__)
PARTITION_BLOCKS = 6
"""Disk blocks that a partition takes with its first record: directory, log, two indexes, topic id, checkpoint."""
SPARE_BLOCKS = 16
"""Disk blocks that stay free for deletions: for the metadata log and checkpoints."""
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
ONE_BY_ONE = 8
"""Logs that are forced to the disk each by itself at a shutdown; more go with the whole file system, in one go."""


class DataDirectory:
    """A locked data directory and the logs that are open in it."""

    def __init__(self, path: Path, lock: DirectoryLock, meta: MetaProperties) -> None:
        """Use `DataDirectory.open`."""
        self.path = path
        self.meta = meta
        self.clean = False
        """True if the last shutdown was clean, so that logs need no recovery."""
        self.broker_epoch = NO_EPOCH
        """The broker epoch of this run; the clean shutdown file contains it."""
        self.previous_epoch = NO_EPOCH
        """Under which they knew the last one, if its shutdown was clean (KIP-966)."""
        self.open_logs: dict[TopicPartition, Log] = {}
        self.cleaner_offsets: dict[TopicPartition, int] = {}
        """How far each log was compacted before."""
        self.deletions = Deletions(path)
        self.futures = FutureLogs(path)
        self.lost = LostDirectories(path)
        self._lent: dict[TopicPartition, Log] = {}
        self._lock = lock
        self._checkpoints = OffsetCheckpoints(path)
        self._high_watermarks = HighWatermarks(path)

    @classmethod
    def open(
        cls, path: Path | str, *, node_id: int, cluster_id: str | None = None, formatted: bool = False
    ) -> DataDirectory:
        """Lock the directory, which is made if it is not there, and read what the last run left.

        ConfigError where it cannot be used: not a directory, not writable, in use, of another node or cluster; where it has to be
        `formatted` before, also where it says of none.
        """
        path = Path(path).absolute()
        if formatted:
            MetaProperties.ensure_formatted(path)
        try:
            make_private(path)
            lock = DirectoryLock(path)
        except OSError as error:
            raise UnusableError(path, error) from error
        try:
            directory = cls(path, lock, ensure_identity(path, node_id, cluster_id))
            directory._read_last_run()
            directory._tell_of_a_full_disk()
        except OSError as error:
            lock.release()
            raise UnusableError(path, error) from error
        except BaseException:
            lock.release()
            raise
        return directory

    def _tell_of_a_full_disk(self) -> None:
        """It keeps no broker from starting: what is there can be read and deleted."""
        if (why := space_problem(self.path, 1)) is not None:
            LOG.error("the disk of %s %s; what is there is served, and topics can be deleted", self.path, why)

    def ensure_in_place(self, partition: TopicPartition) -> None:
        """OttlaError where the directory, or the log of this partition, was removed or replaced under a running broker."""
        if self._lock.held and not self._lock.in_place:
            raise OttlaError(
                f"data directory {self.path} was removed, moved or replaced while the broker ran: it stops, since what it "
                "writes would be lost; put the directory back, or start with another"
            )
        log = self.open_logs.get(partition)
        if log is not None and not log.in_place:
            raise OttlaError(
                f"{log.directory} was removed, moved or replaced while the broker ran: it stops, since nothing that "
                "changes could be kept; restore the folder from a backup"
            )

    @property
    def cluster_id(self) -> str:
        return self.meta.cluster_id

    @property
    def directory_id(self) -> uuid.UUID:
        """By which controllers know it."""
        return id_of(self.meta.directory_id)

    @property
    def main(self) -> DataDirectory:
        """The one that has the log of the metadata."""
        return self

    def online(self) -> Sequence[DataDirectory]:
        return (self,)

    @property
    def offline(self) -> Mapping[str, str]:
        """The partitions that must not be used, with the reasons."""
        return {}

    def place(self, partition: TopicPartition) -> DataDirectory:
        """The directory that has a partition, or is to have it. Of several: OutOfServiceError where it cannot be said."""
        return self

    def settled(self, partition: TopicPartition) -> DataDirectory | None:
        """The directory that has a partition, if that is decided."""
        return self

    def sick(self, error: BaseException | None, partition: TopicPartition | None = None) -> DataDirectory | None:
        """The directory that has failed, if that is what an error means."""
        return self if is_fatal(error) else None

    def ensure_well(self) -> None:
        """OttlaError where it was removed or replaced, or takes no writes any more."""
        if self._lock.held and not self._lock.in_place:
            raise OttlaError("it was removed, moved or replaced while the broker ran")
        if os.statvfs(self.path).f_flag & os.ST_RDONLY:
            raise OttlaError("it is read-only")

    def remembers(self, partition: TopicPartition) -> bool:
        """True if a log was here when checkpoints were last written."""
        return partition in self._checkpoints.recovery_points

    def begins_anew(self, partition: TopicPartition, former: uuid.UUID) -> bool:
        """True if a partition has, or will have, less here than the cluster expects of the lost directory `former`."""
        return former != self.directory_id and self.lost.begins_anew(self.folder(partition), former)

    def put_aside(self, partition: TopicPartition) -> Path:
        """Rename the folder of a partition that is in another directory; OSError where that cannot be."""
        aside = set_aside(self.folder(partition))
        self.forget([partition])
        return aside

    def forget(self, partitions: Sequence[TopicPartition]) -> None:
        """Tell of these in no checkpoint."""
        self._checkpoints.begin_anew(partitions)
        self._high_watermarks.begin_anew(partitions)

    def abandon(self) -> Callable[[], None]:
        """Use it no more, as it has failed; what is left to do for that may be done in any thread."""
        logs = [*self.open_logs.values(), *self.futures.logs]
        for log in logs:
            log.closed = True
        self.open_logs.clear()

        def let_go() -> None:
            for log in logs:
                log.release()
            self._lock.release()

        return let_go

    def logs(self) -> dict[TopicPartition, Path]:
        """The partitions that have a folder here, open or not."""
        found = {}
        for entry in os.scandir(self.path):
            if (partition := partition_of(entry.name)) is not None and entry.is_dir():
                found[partition] = Path(entry.path)
        return found

    def unsure_bytes(self, partition: TopicPartition, folder: Path) -> int:
        """How much of a log is not known to have been forced to the disk before a crash."""
        try:
            return size_from(folder, self._checkpoints.recovery_points.get(partition, 0))
        except OSError:
            return 0  # opening the log reports the error

    def folder(self, partition: TopicPartition) -> Path:
        return self.path / str(partition)

    def open_log(
        self,
        partition: TopicPartition,
        config: LogConfig,
        *,
        now_ms: int,
        topic_id: uuid.UUID | None = None,
        replicated: bool = False,
    ) -> Log:
        """The partition's log, made if it is not there, recovered if the last shutdown was not clean.

        OutOfServiceError where the folder is of another topic, or says of none that it can be believed to be of, and
        where it was there once: such a folder is left as it is.
        """
        if partition in self.open_logs:
            return self.open_logs[partition]
        folder = self.folder(partition)
        if not self._lock.in_place:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"data directory {self.path} is gone")
        self._ensure_usable(partition, folder)
        id_known = topic_id is None or check_topic_id(folder, topic_id)
        committed = self._high_watermarks.get(partition) if replicated else None
        recovery_point = self._checkpoints.recovery_points.get(partition, 0)
        if id_known and topic_id is not None and not (recovery_point or has_segments(folder)):
            committed = self._without_segments(folder, replicated)
        log = Log.open(
            folder,
            config,
            now_ms=now_ms,
            clean=self.clean,
            recovery_point=recovery_point,
            start_offset=self._checkpoints.start_offsets.get(partition),
            committed=committed,
            noted_start=self._checkpoints.noted_start(partition),
        )
        self._check_start(partition, log)
        log.before_cut = partial(self._lower, partition)
        if topic_id is not None and not id_known:
            self._write_topic_id(folder, topic_id)
        if log.recovery is not None and partition in self.cleaner_offsets:
            self.cleaner_offsets[partition] = min(self.cleaner_offsets[partition], log.end_offset)
        self.open_logs[partition] = log
        return log

    def adopt(self, partition: TopicPartition, future: Log, *, now_ms: int, committed: int | None) -> Log:
        """Make a whole copy of a partition the log that is here; OSError and KafkaError where that cannot be.

        All that a start after a crash would ask of it is written down before the folder has its name. `committed` is that of `Log.open`.
        """
        future.close()
        self._checkpoints.note(partition, future)
        self.checkpoint()
        folder = self.futures.take(partition)
        end, start = future.end_offset, future.start_offset
        try:
            log = Log.open(
                folder, future.config, now_ms=now_ms, clean=True, recovery_point=end, start_offset=start, committed=committed
            )  # fmt: skip
        except KafkaError:
            self.put_aside(partition)  # or a start would take it for the one that counts
            raise
        log.before_cut = partial(self._lower, partition)
        self.open_logs[partition] = log
        return log

    def lend_log(self, partition: TopicPartition) -> Log:
        """Leave an open log to another thread, which is to close it before this directory."""
        log = self._lent[partition] = self.open_logs.pop(partition)
        return log

    def ensure_room(self, folders: int) -> None:
        """KafkaError(KAFKA_STORAGE_ERROR) where the disk has no room for so many new folders, or takes none at all."""
        ensure_disk_space(self.path, folders)

    def ensure_whole(self, partition: TopicPartition, *, is_copy: bool = False) -> None:
        """ConfigError where the log of a state is missing or damaged, on which all other partitions depend; one may be a copy of others'."""
        others, point = self.logs().keys() - {partition}, self._checkpoints.recovery_points.get(partition, 0)
        if not ensure_whole(self.folder(partition), others, point, self.meta.node_id, is_copy=is_copy):
            self.forget([partition])

    def begin_anew(self, partitions: Sequence[TopicPartition]) -> None:
        """Before topics are made: forget what checkpoints tell of earlier ones of these names, of which nothing is left.

        OutOfServiceError where there is something.
        """
        self.deletions.vacate(partitions)
        taken = [folder for folder in map(self.folder, partitions) if os.path.lexists(folder)]
        if taken:
            raise OutOfServiceError(
                f"{taken[0]} is there already and of no topic of now: move it away, or choose another name"
            )
        self.forget(partitions)

    def make_way(self, partition: TopicPartition, topic_id: uuid.UUID) -> None:
        """Before a log is opened for a topic: put aside the folder that another one of that name left, unless its id is damaged."""
        self.deletions.vacate([partition])
        folder = self.folder(partition)
        try:
            found = read_topic_id(folder)
        except (OSError, ValueError):
            return  # opening the log reports the error
        if found is not None and not are_same_id(found, topic_id):
            aside = set_aside(folder)
            LOG.warning(
                "%s is of an earlier topic of that name: renamed to %s, remove it if you do not need it", folder, aside
            )
            self.forget([partition])

    def begin_deletion(self, partitions: Sequence[TopicPartition], topic_id: uuid.UUID | None = None) -> None:
        """Close the logs of partitions, open or not; `deletions.remove` deletes their folders, in any thread."""
        cleaned, logs = False, []
        for partition in partitions:
            log = self.open_logs.pop(partition, None)
            if log is not None:
                log.closed = True
                logs.append(log)
            self._checkpoints.remove(partition)
            self._high_watermarks.remove(partition)
            cleaned = self.cleaner_offsets.pop(partition, None) is not None or cleaned
        if cleaned:
            self._write_cleaner_offsets(partitions[0])
        self.deletions.add(partitions, topic_id, [log.release for log in logs])

    def delete_log(self, partition: TopicPartition, topic_id: uuid.UUID | None = None) -> None:
        """Remove a partition's log and folder, open or not; a folder that is not of `topic_id` is set aside."""
        self.begin_deletion([partition], topic_id)
        self.deletions.remove()

    def cleaned_to(self, partition: TopicPartition) -> int:
        return self.cleaner_offsets.get(partition, 0)

    def note_cleaned(self, partition: TopicPartition, offset: int) -> Callable[[], None]:
        """Note that a log is compacted up to there; the work that writes it down, in any thread."""
        self.cleaner_offsets[partition] = offset
        return partial(self.keep_cleaned, dict(self.cleaner_offsets))

    def keep_cleaned(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write down how far logs are compacted; may run in another thread."""
        try:
            write_offsets(self.path / CLEANER_OFFSETS, offsets)
        except OSError as error:
            raise storage_error(f"cannot write {CLEANER_OFFSETS} in {self.path}", error) from error

    def checkpoint(self) -> None:
        """Write down how far logs are flushed and where they begin, so that a restart has less to check."""
        self.checkpointing(snapshots=False)()

    def checkpointing_high_watermarks(self) -> Callable[[], None] | None:
        """Work that writes down up to where logs are committed, in any thread; None where that has not changed."""
        return self._high_watermarks.writing(self.open_logs)

    def checkpointing(self, *, snapshots: bool = True) -> Callable[[], None]:
        """The same as work that another thread may do, with what logs know of their producers."""
        keeping = [keep for log in self.open_logs.values() if snapshots and (keep := log.keeping_producers())]
        for partition, log in self.open_logs.items():
            self._checkpoints.note(partition, log)
        writing = self._checkpoints.writing()

        def work() -> None:
            for keep in keeping:
                keep()
            writing()

        return work

    def close(self, *, clean: bool = True) -> None:
        """Close every log, leave the mark of a clean shutdown and unlock; with `clean=False` only unlock.

        Where a log cannot be closed the others are, the shutdown was not clean, and KafkaError says why.
        """
        try:
            self.futures.release()
            if clean and self._lock.held:
                self._close_logs()
                self._checkpoints.note_closed(self._lent)
                self.checkpoint()
                if (writing := self.checkpointing_high_watermarks()) is not None:
                    writing()
                replace_file(self.path / CLEAN_SHUTDOWN, clean_shutdown_text(self.broker_epoch))
        except OSError as error:
            raise storage_error(f"cannot mark the clean shutdown in {self.path}", error) from error
        finally:
            self.open_logs.clear()
            self._lock.release()

    def _lower(self, partition: TopicPartition, offset: int) -> None:
        """Before a log is cut: a start after a crash believes what the checkpoints say of it."""
        if self._checkpoints.lower(partition, offset):
            self._checkpoints.writing()()
        self._high_watermarks.lower(partition, offset)
        if self.cleaner_offsets.get(partition, 0) > offset:
            self.keep_cleaned({**self.cleaner_offsets, partition: offset})
            self.cleaner_offsets[partition] = offset

    def _write_cleaner_offsets(self, partition: TopicPartition) -> None:
        """Remove the partition before its log is deleted: a new topic with the same name must not count as compacted."""
        try:
            self.keep_cleaned(self.cleaner_offsets)
        except KafkaError as error:
            LOG.error("%s; a new topic in the place of %s may keep superseded records", error, partition.topic)

    def _close_logs(self) -> None:
        """Force everything to the disk: file by file it takes longer by far than one call for all of it."""
        together = sum(log.unforced for log in self.open_logs.values()) > ONE_BY_ONE and can_sync_file_system()
        faults = []
        for log in self.open_logs.values():
            try:
                log.close(sync=not together)
            except KafkaError as error:
                LOG.error("%s", error)
                faults.append(error)
        if faults:
            raise faults[0]
        if together:
            sync_file_system(self._lock.fileno())

    def _read_last_run(self) -> None:
        for entry in os.scandir(self.path):
            if DELETED_NAME.fullmatch(entry.name):
                remove_tree(Path(entry.path))
        if not self.logs():
            self._checkpoints.begin()
        self.futures.find()
        mark = self.path / CLEAN_SHUTDOWN
        self.clean = mark.exists()
        self.cleaner_offsets = read_offsets(self.path / CLEANER_OFFSETS)
        if self.clean:
            self.previous_epoch = epoch_in(mark)
            # From here on a crash is a crash, also of the machine.
            mark.unlink()
            sync_path(self.path)

    def _ensure_usable(self, partition: TopicPartition, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise OutOfServiceError(f"{folder} is a file, where the folder of {partition} belongs: move it away")
        if not folder.exists() and self.remembers(partition):
            raise OutOfServiceError(
                f"{folder} is gone, though there was a log in it: restore it from a backup; or, for the partition to "
                f"start empty, {remedy(folder)}"
            )

    def _without_segments(self, folder: Path, replicated: bool) -> int:
        """Return the offset up to which a copy without its segments was committed; OutOfServiceError if no other broker has the records."""
        # The first segment is created before the topic id. The caller reports the loss of what was once forced to the disk.
        if not replicated:
            raise OutOfServiceError(
                f"{folder} has no segment any more, though there was one in it: restore it from a backup; or, for the "
                f"partition to start empty, {remedy(folder)}"
            )
        return INT64_MAX

    def _check_start(self, partition: TopicPartition, log: Log) -> None:
        """Raise OutOfServiceError if a log starts after its end after a clean shutdown. After a power failure that is possible, and only logged."""
        doubt = self._checkpoints.doubt(partition, log)
        if doubt and self.clean:
            raise OutOfServiceError(f"{doubt}. Stop the broker, and put the offset right or {WITHOUT}")
        if doubt:
            LOG.warning("%s. If they were not deleted, stop the broker before retention does, and %s", doubt, WITHOUT)

    def _write_topic_id(self, folder: Path, topic_id: uuid.UUID) -> None:
        try:
            write_topic_id(folder, topic_id)
        except OSError as error:
            # The next start writes it: a full disk must not keep the log from being read.
            LOG.error("%s", storage_error(f"cannot keep the topic id in {folder}", error))


def check_topic_id(folder: Path, topic_id: uuid.UUID) -> bool:
    """True if the folder has a topic id; OutOfServiceError if it is another topic's."""
    try:
        found = read_topic_id(folder)
    except IsADirectoryError as error:
        raise not_a_file_error(folder / METADATA_FILE) from error
    except OSError as error:
        raise storage_error(f"no topic id for {folder}", error) from error
    except ValueError as error:
        raise OutOfServiceError(f"{error}; {remedy(folder)}") from error
    if found is not None and found != topic_id:
        raise OutOfServiceError(
            f"{folder} belongs to topic id {text_of(found)}, not {text_of(topic_id)}: move that folder away, or if "
            f"its {METADATA_FILE} is damaged, {remedy(folder)}"
        )
    return found is not None


def ensure_disk_space(path: Path, folders: int) -> None:
    """KafkaError(KAFKA_STORAGE_ERROR) where the disk has no room for so many new folders, or takes none at all."""
    if (why := space_problem(path, folders)) is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {path} takes no new partitions: it {why}")


def space_problem(path: Path, folders: int) -> str | None:
    """Return why a disk has no space for that many new folders, and the remedy; None if it has. KafkaError if it cannot be read."""
    try:
        disk = os.statvfs(path)
    except OSError as error:
        raise storage_error(f"cannot look at the disk of {path}", error) from error
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    if disk.f_flag & os.ST_RDONLY:
        return "is read-only"
    if blocks < SPARE_BLOCKS + folders * PARTITION_BLOCKS:
        return "is full: make room, and try again"
    if disk.f_files > 0 and disk.f_ffree < folders:
        return "has no inodes left: delete files, and try again"
    return None


class UnusableError(ConfigError):
    """The system does not let us use a directory."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.reason, remedy = str(error.strerror), "choose another or mend its permissions"
        if isinstance(error, FileExistsError):
            self.reason = "it is a file"
        elif isinstance(error, IsADirectoryError):
            kind = kind_of(Path(error.filename))
            self.reason = f"{error.filename} is {kind}, where a file belongs"
            remedy = f"move that {kind.removeprefix('a ')} away or choose another directory"
        super().__init__(f"data directory {path} cannot be used: {self.reason}; {remedy}")
