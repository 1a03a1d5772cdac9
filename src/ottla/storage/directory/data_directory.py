"""The directory in which a broker keeps its logs, one folder for each partition.

.lock  meta.properties  .kafka_cleanshutdown
recovery-point-offset-checkpoint  log-start-offset-checkpoint  cleaner-offset-checkpoint  replication-offset-checkpoint
<topic>-<partition>/…

**Start.** `open` acquires the lock, reads `meta.properties` and the checkpoints, and deletes the folders of deleted logs. A damaged
checkpoint is logged and counts as empty, so that more is checked. Last, `open` deletes the clean shutdown file and forces that to the
disk: from then on every end of the process counts as a crash, until `close` writes the file again. `ensure_whole` checks the metadata log
before that log is opened, because opening may truncate. `open_log` opens each log on its own and gives `Log.open` the recovery point, the
start and the high watermark of the checkpoints. A log without a recovery point is checked from its first batch. The steps inside a log are
listed in `log.log`.

**Checkpoints.** A recovery point is never ahead of the disk, because only a flush of the log moves it. A checkpoint writes the producer snapshots
first, then the log starts, then the recovery points. High watermarks have a file of their own, which is not forced to the disk. Before a log is
truncated its entries in all files are lowered. `close` flushes every log, then writes the checkpoints, the high watermarks and, last, the
clean shutdown file.
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
from ottla.storage.batches.damage import OutOfServiceError, not_a_file_error, repair_remedy
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
"""Disk blocks that a partition needs for its first record: directory, log, two indexes, topic id, leader epochs."""
SPARE_BLOCKS = 16
"""Disk blocks that stay free for deletions: for the metadata log and checkpoints."""
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
ONE_BY_ONE = 8
"""Up to this number of logs, a shutdown forces each log to the disk; with more, it forces the whole file system once."""


class DataDirectory:
    """A locked data directory and the logs that are open in it."""

    def __init__(self, path: Path, lock: DirectoryLock, meta: MetaProperties) -> None:
        """Use `DataDirectory.open`."""
        self.path = path
        self.meta = meta
        self.was_clean_shutdown = False
        """True if the last shutdown was clean, so that logs need no recovery."""
        self.broker_epoch = NO_EPOCH
        """The broker epoch of this run; the clean shutdown file contains it."""
        self.previous_epoch = NO_EPOCH
        """The broker epoch of the last run, if its shutdown was clean (KIP-966)."""
        self.open_logs: dict[TopicPartition, Log] = {}
        self.cleaner_offsets: dict[TopicPartition, int] = {}
        """The offset up to which each log is compacted."""
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
        """Lock the directory, which is created if it does not exist, and read the files of the last run.

        Raises ConfigError if the directory cannot be used: it is not a directory, not writable, in use, or belongs to another node or
        cluster. With `formatted`, ConfigError is also raised if it has no `meta.properties`.
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
            directory._log_full_disk()
        except OSError as error:
            lock.release()
            raise UnusableError(path, error) from error
        except BaseException:
            lock.release()
            raise
        return directory

    def _log_full_disk(self) -> None:
        """Log that the disk is full. The broker starts, because records can still be read and deleted."""
        if (why := space_problem(self.path, 1)) is not None:
            LOG.error("the disk of %s %s; what is there is served, and topics can be deleted", self.path, why)

    def ensure_in_place(self, partition: TopicPartition) -> None:
        """Raise OttlaError if the directory, or the log of this partition, was removed or replaced while the broker runs."""
        if self._lock.is_held and not self._lock.is_in_place:
            raise OttlaError(
                f"data directory {self.path} was removed, moved or replaced while the broker ran: it stops, since what it "
                "writes would be lost; put the directory back, or start with another"
            )
        log = self.open_logs.get(partition) or self._lent.get(partition)
        if log is not None and not log.is_in_place:
            raise OttlaError(
                f"{log.directory} was removed, moved or replaced while the broker ran: it stops, since nothing that "
                "changes could be kept; restore the folder from a backup"
            )

    @property
    def cluster_id(self) -> str:
        return self.meta.cluster_id

    @property
    def directory_id(self) -> uuid.UUID:
        """The id of the directory in the cluster's metadata."""
        return id_of(self.meta.directory_id)

    @property
    def main(self) -> DataDirectory:
        """The directory with the metadata log."""
        return self

    def online(self) -> Sequence[DataDirectory]:
        return (self,)

    @property
    def offline(self) -> Mapping[str, str]:
        """The partitions that must not be used, with the reasons."""
        return {}

    def place(self, partition: TopicPartition) -> DataDirectory:
        """Return the directory that has a partition, or will have it. Raises OutOfServiceError if it is ambiguous."""
        return self

    def find_directory(self, partition: TopicPartition) -> DataDirectory | None:
        """Return the directory that has a partition; None if none is assigned."""
        return self

    def find_failed_directory(
        self, error: BaseException | None, partition: TopicPartition | None = None
    ) -> DataDirectory | None:
        """Return the directory that has failed according to an error; None if none has."""
        return self if is_fatal(error) else None

    def ensure_healthy(self) -> None:
        """Raise OttlaError if the directory was removed or replaced, or cannot be written to."""
        if self._lock.is_held and not self._lock.is_in_place:
            raise OttlaError("it was removed, moved or replaced while the broker ran")
        if os.statvfs(self.path).f_flag & os.ST_RDONLY:
            raise OttlaError("it is read-only")

    def has_checkpoint(self, partition: TopicPartition) -> bool:
        """Return True if the checkpoints contain the partition."""
        return partition in self._checkpoints.recovery_points

    def has_less_than(self, partition: TopicPartition, former: uuid.UUID) -> bool:
        """Return True if a partition has, or will have, less here than the cluster expects of the lost directory `former`."""
        return former != self.directory_id and self.lost.has_less_than(self.folder(partition), former)

    def set_aside_folder(self, partition: TopicPartition) -> Path:
        """Rename the folder of a partition that is in another directory. Raises OSError if that fails."""
        aside = set_aside(self.folder(partition))
        self.forget_partitions([partition])
        return aside

    def forget_partitions(self, partitions: Sequence[TopicPartition]) -> None:
        """Remove partitions from all checkpoints."""
        self._checkpoints.forget_partitions(partitions)
        self._high_watermarks.forget_partitions(partitions)

    def stop_using(self) -> Callable[[], None]:
        """Stop using the directory, because it has failed. Return the remaining work, which may be done in any thread."""
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
        """Return the partitions with a folder in this directory, open or not."""
        found = {}
        for entry in os.scandir(self.path):
            if (partition := partition_of(entry.name)) is not None and entry.is_dir():
                found[partition] = Path(entry.path)
        return found

    def unsure_bytes(self, partition: TopicPartition, folder: Path) -> int:
        """Return the bytes of a log that may not have been forced to the disk before a crash."""
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
        """Return the partition's log. It is created if it does not exist, and recovered if the last shutdown was not clean.

        Raises OutOfServiceError, and leaves the folder unchanged, if the folder belongs to another topic, if its topic id is damaged,
        or if the folder or all its segments are missing although the checkpoints or the topic id show that there was a log.
        """
        if partition in self.open_logs:
            return self.open_logs[partition]
        folder = self.folder(partition)
        if not self._lock.is_in_place:
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
            clean=self.was_clean_shutdown,
            recovery_point=recovery_point,
            start_offset=self._checkpoints.start_offsets.get(partition),
            committed=committed,
            noted_start=self._checkpoints.find_start(partition),
        )
        self._check_start(partition, log)
        log.add_truncation_listener(partial(self._lower_checkpoints, partition))
        if topic_id is not None and not id_known:
            self._write_topic_id(folder, topic_id)
        if log.recovery is not None and partition in self.cleaner_offsets:
            self.cleaner_offsets[partition] = min(self.cleaner_offsets[partition], log.end_offset)
        self.open_logs[partition] = log
        return log

    def adopt(self, partition: TopicPartition, future: Log, *, now_ms: int, committed: int | None) -> Log:
        """Replace the partition's log by its complete copy. Raises OSError or KafkaError if that fails.

        The checkpoints that a start after a crash needs are written before the folder is renamed. `committed` is passed to `Log.open`.
        """
        future.close()
        self._checkpoints.record_log(partition, future)
        self.checkpoint()
        folder = self.futures.promote_folder(partition)
        end, start = future.end_offset, future.start_offset
        try:
            log = Log.open(
                folder, future.config, now_ms=now_ms, clean=True, recovery_point=end, start_offset=start, committed=committed
            )  # fmt: skip
        except KafkaError:
            self.set_aside_folder(partition)  # otherwise the next start would use it as the partition's log
            raise
        log.add_truncation_listener(partial(self._lower_checkpoints, partition))
        self.open_logs[partition] = log
        return log

    def lend_log(self, partition: TopicPartition) -> Log:
        """Return an open log for another thread, which must close it before this directory is closed."""
        log = self._lent[partition] = self.open_logs.pop(partition)
        return log

    def ensure_space(self, folders: int) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) if the disk has no space for that many new folders, or cannot be written to."""
        ensure_disk_space(self.path, folders)

    def ensure_whole(self, partition: TopicPartition, *, is_copy: bool = False) -> None:
        """Raise ConfigError if the metadata log is missing or damaged. A missing copy of a broker is no error: it is fetched again."""
        others, point = self.logs().keys() - {partition}, self._checkpoints.recovery_points.get(partition, 0)
        if not ensure_whole(self.folder(partition), others, point, self.meta.node_id, is_copy=is_copy):
            self.forget_partitions([partition])

    def forget_checkpoints(self, partitions: Sequence[TopicPartition]) -> None:
        """Remove the checkpoints of deleted topics with these names, before new topics are created.

        Raises OutOfServiceError if a file or a folder with such a name exists.
        """
        self.deletions.free_names(partitions)
        taken = [folder for folder in map(self.folder, partitions) if os.path.lexists(folder)]
        if taken:
            raise OutOfServiceError(
                f"{taken[0]} is there already and of no topic of now: move it away, or choose another name"
            )
        self.forget_partitions(partitions)

    def set_stray_folder_aside(self, partition: TopicPartition, topic_id: uuid.UUID) -> None:
        """Rename the folder of an older topic with the same name, before a log is opened. A folder with a damaged topic id stays."""
        self.deletions.free_names([partition])
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
            self.forget_partitions([partition])

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
        """Delete a partition's log and folder, open or not. A folder that belongs to another topic than `topic_id` is renamed."""
        self.begin_deletion([partition], topic_id)
        self.deletions.remove()

    def cleaned_to(self, partition: TopicPartition) -> int:
        return self.cleaner_offsets.get(partition, 0)

    def record_cleaned(self, partition: TopicPartition, offset: int) -> Callable[[], None]:
        """Record the offset up to which a log is compacted. Return the function that writes the file, for any thread."""
        self.cleaner_offsets[partition] = offset
        return partial(self.write_cleaned, dict(self.cleaner_offsets))

    def write_cleaned(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the offsets up to which logs are compacted; may run in another thread."""
        try:
            write_offsets(self.path / CLEANER_OFFSETS, offsets)
        except OSError as error:
            raise storage_error(f"cannot write {CLEANER_OFFSETS} in {self.path}", error) from error

    def checkpoint(self) -> None:
        """Write the recovery points and the start offsets of the logs, so that a restart has less to check."""
        self.prepare_checkpoint(snapshots=False)()

    def prepare_high_watermarks(self) -> Callable[[], None] | None:
        """Return a function that writes the high watermarks, for any thread; None if they have not changed."""
        return self._high_watermarks.prepare_write(self.open_logs)

    def prepare_checkpoint(self, *, snapshots: bool = True) -> Callable[[], None]:
        """Return a function that writes the checkpoints and the producer snapshots, for any thread."""
        keeping = [keep for log in self.open_logs.values() if snapshots and (keep := log.keeping_producers())]
        for partition, log in self.open_logs.items():
            self._checkpoints.record_log(partition, log)
        writing = self._checkpoints.prepare_write()

        def work() -> None:
            for keep in keeping:
                keep()
            writing()

        return work

    def close(self, *, clean: bool = True) -> None:
        """Close every log, write the clean shutdown file, and unlock; with `clean=False` only unlock.

        If a log cannot be closed, the others are closed, the clean shutdown file is not written, and KafkaError is raised.
        """
        try:
            self.futures.release()
            if clean and self._lock.is_held:
                self._close_logs()
                self._checkpoints.record_closed_logs(self._lent)
                self.checkpoint()
                if (writing := self.prepare_high_watermarks()) is not None:
                    writing()
                replace_file(self.path / CLEAN_SHUTDOWN, clean_shutdown_text(self.broker_epoch))
        except OSError as error:
            raise storage_error(f"cannot mark the clean shutdown in {self.path}", error) from error
        finally:
            self.open_logs.clear()
            self._lock.release()

    def _lower_checkpoints(self, partition: TopicPartition, offset: int) -> None:
        """Lower the checkpoints before a log is truncated, because a start after a crash relies on them."""
        if self._checkpoints.lower_offsets(partition, offset):
            self._checkpoints.prepare_write()()
        self._high_watermarks.lower_offset(partition, offset)
        if self.cleaner_offsets.get(partition, 0) > offset:
            self.write_cleaned({**self.cleaner_offsets, partition: offset})
            self.cleaner_offsets[partition] = offset

    def _write_cleaner_offsets(self, partition: TopicPartition) -> None:
        """Write the cleaner offsets without a partition that is about to be deleted: a new topic of that name must not count as compacted."""
        try:
            self.write_cleaned(self.cleaner_offsets)
        except KafkaError as error:
            LOG.error("%s; a new topic in the place of %s may keep superseded records", error, partition.topic)

    def _close_logs(self) -> None:
        """Flush all logs to the disk. One call for the file system is much faster than one per file."""
        together = sum(log.has_unforced for log in self.open_logs.values()) > ONE_BY_ONE and can_sync_file_system()
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
            self._checkpoints.create_files()
        self.futures.find()
        mark = self.path / CLEAN_SHUTDOWN
        self.was_clean_shutdown = mark.exists()
        self.cleaner_offsets = read_offsets(self.path / CLEANER_OFFSETS)
        if self.was_clean_shutdown:
            self.previous_epoch = epoch_in(mark)
            # Forced to the disk, so that a later crash, also of the machine, is not taken for a clean shutdown.
            mark.unlink()
            sync_path(self.path)

    def _ensure_usable(self, partition: TopicPartition, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise OutOfServiceError(f"{folder} is a file, where the folder of {partition} belongs: move it away")
        if not folder.exists() and self.has_checkpoint(partition):
            raise OutOfServiceError(
                f"{folder} is gone, though there was a log in it: restore it from a backup; or, for the partition to "
                f"start empty, and to be copied from its leader in a cluster, {repair_remedy(folder)}"
            )

    def _without_segments(self, folder: Path, replicated: bool) -> int:
        """Return the committed offset to assume for a replica without segments: the highest. Raises OutOfServiceError if there is no other replica."""
        # The first segment is created before the topic id, so a folder with an id has lost its segments.
        # A folder with a recovery point is not handled here: opening the log reports the lost end.
        if not replicated:
            raise OutOfServiceError(
                f"{folder} has no segment any more, though there was one in it: restore it from a backup; or, for the "
                f"partition to start empty, {repair_remedy(folder)}"
            )
        return INT64_MAX

    def _check_start(self, partition: TopicPartition, log: Log) -> None:
        """Raise OutOfServiceError if the start offset in the checkpoint is above the log's end. After a crash that is possible, and only logged."""
        doubt = self._checkpoints.find_doubt(partition, log)
        if doubt and self.was_clean_shutdown:
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
    """Return True if the folder has a topic id; OutOfServiceError if it is another topic's."""
    try:
        found = read_topic_id(folder)
    except IsADirectoryError as error:
        raise not_a_file_error(folder / METADATA_FILE) from error
    except OSError as error:
        raise storage_error(f"no topic id for {folder}", error) from error
    except ValueError as error:
        raise OutOfServiceError(f"{error}; {repair_remedy(folder)}") from error
    if found is not None and found != topic_id:
        raise OutOfServiceError(
            f"{folder} belongs to topic id {text_of(found)}, not {text_of(topic_id)}: move that folder away, or if "
            f"its {METADATA_FILE} is damaged, {repair_remedy(folder)}"
        )
    return found is not None


def ensure_disk_space(path: Path, folders: int) -> None:
    """Raise KafkaError(KAFKA_STORAGE_ERROR) if the disk has no space for that many new folders, or cannot be written to."""
    if (why := space_problem(path, folders)) is not None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {path} takes no new partitions: it {why}")


def space_problem(path: Path, folders: int) -> str | None:
    """Return why a disk has no space for that many new folders, and the remedy; None if it has. KafkaError if it cannot be read."""
    try:
        disk = os.statvfs(path)
    except OSError as error:
        raise storage_error(f"cannot inspect the disk of {path}", error) from error
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    if disk.f_flag & os.ST_RDONLY:
        return "is read-only"
    if blocks < SPARE_BLOCKS + folders * PARTITION_BLOCKS:
        return "is full: free some space, and try again"
    if disk.f_files > 0 and disk.f_ffree < folders:
        return "has no inodes left: delete files, and try again"
    return None


class UnusableError(ConfigError):
    """A directory that the operating system does not let us use."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.reason, remedy = str(error.strerror), "choose another or mend its permissions"
        if isinstance(error, FileExistsError):
            self.reason = "it is a file"
        elif isinstance(error, IsADirectoryError):
            kind = kind_of(Path(error.filename))
            self.reason = f"{error.filename} is {kind}, where a file belongs"
            remedy = f"move that {kind.removeprefix('a ')} away or choose another directory"
        elif isinstance(error, PermissionError) and error.filename and Path(error.filename) != path:
            self.reason = f"{error.filename}: {error.strerror}"
            remedy = "the user of this process must own all files in it: chown -R, or choose another directory"
        super().__init__(f"data directory {path} cannot be used: {self.reason}; {remedy}")
