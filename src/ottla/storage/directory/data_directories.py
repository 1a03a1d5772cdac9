"""Several data directories as one: each partition is in one of them, and the failure of one affects only its own partitions (JBOD).

    assigned? ──► there, or offline        a partition of a missing directory is not created again in another one
    a folder? ──► the directory with it
    neither   ──► the directory with the fewest partitions

Kafka's LogManager with several `log.dirs`. Each is a complete `DataDirectory`, with its lock, id, checkpoints and clean shutdown file.
The metadata log is in the main one. A directory that is offline stays offline until the next start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.storage.directory.data_directory import DataDirectory


import logging
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from uuid import UUID

from ottla.errors import ConfigError, KafkaError
from ottla.kafka_id import LAST_RESERVED, text_of
from ottla.storage.batches.damage import OfflineError, OutOfServiceError
from ottla.storage.directory.clean_shutdown import NO_EPOCH
from ottla.storage.directory.data_directory import DataDirectory, UnusableError
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.files.storage_error import is_fatal, storage_error
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig

LOG = logging.getLogger(__name__)
STATE_TOPIC = "__cluster_metadata"
LOST = UUID(int=2)
MOST_PREFERRED = 10_000
REMEDY = "mend or mount it, and start the broker again"


class DataDirectories:
    """All data directories, with the interface of a single `DataDirectory`."""

    def __init__(self, main: DataDirectory, others: Sequence[DataDirectory], offline: Mapping[str, str]) -> None:
        """Use `open_directories`. `others` are the directories with partitions; `main` has partitions only if it is one of them."""
        self.main = main
        self.assigned: Callable[[TopicPartition], UUID | None] = lambda partition: None
        """Returns the id of the directory to which the metadata assign a partition."""
        self.is_assignment_complete = False
        """True if a partition without an assigned directory is new: in a cluster the directory is registered when the partition is created."""
        self.cordoned: Set[UUID] = frozenset()
        """Directories that get new partitions only by an assignment, while there are others (KIP-1066)."""
        self.preferred: dict[TopicPartition, DataDirectory] = {}
        """The requested directories of partitions that do not exist here yet."""
        self._online = list(others)
        self._offline = dict(offline)
        self._began_without = bool(offline)
        self._fresh: set[TopicPartition] = set()
        """Partitions that were created in this run, so that no offline directory can have them."""
        self._lost: dict[TopicPartition, str] = {}
        self._unknown: set[UUID] = set()
        """Ids of directories that the metadata name, and that are none of `log.dirs`."""
        self._homes = PartitionDirectories()
        for each in others:
            for partition in each.logs():
                self._homes.add(partition, each)

    # checks the owner

    @property
    def path(self) -> Path:
        return self.main.path

    @property
    def meta(self) -> MetaProperties:
        return self.main.meta

    @property
    def cluster_id(self) -> str:
        return self.main.cluster_id

    @property
    def was_clean_shutdown(self) -> bool:
        return all(each.was_clean_shutdown for each in self._all())

    @property
    def broker_epoch(self) -> int:
        return self.main.broker_epoch

    @broker_epoch.setter
    def broker_epoch(self, epoch: int) -> None:
        for each in self._all():
            each.broker_epoch = epoch

    @property
    def previous_epoch(self) -> int:
        """The common broker epoch, if all directories were closed cleanly and together."""
        epochs = {each.previous_epoch for each in self._all()}
        return epochs.pop() if len(epochs) == 1 and not self._began_without else NO_EPOCH

    def online(self) -> Sequence[DataDirectory]:
        return self._online

    @property
    def offline(self) -> Mapping[str, str]:
        return self._offline

    def _all(self) -> list[DataDirectory]:
        return [self.main, *(each for each in self._online if each is not self.main)]

    # where partitions are

    def place(self, partition: TopicPartition) -> DataDirectory:
        """Return the directory that has a partition, or gets it.

        Raises OfflineError if that directory is offline, and OutOfServiceError if two directories have the partition and the metadata assign neither.
        """
        if partition.topic == STATE_TOPIC:
            return self.main
        homes = self._homes.find_directories(partition)
        if len(homes) == 1:
            return homes[0]
        home = self._find_assigned_directory(partition, homes) if homes else self._choose_new_directory(partition)
        self._homes.put(partition, home)
        return home

    def has_less_than(self, partition: TopicPartition, former: UUID) -> bool:
        """Return the result of `DataDirectory.has_less_than`. A partition that is in another of these directories was only moved."""
        home = self.find_directory(partition)
        return (
            home is not None
            and all(each.directory_id != former for each in self._online)
            and home.has_less_than(partition, former)
        )

    def find_directory(self, partition: TopicPartition) -> DataDirectory | None:
        """Return the directory that has a partition, if one is assigned; unlike `place` this assigns none."""
        homes = self._homes.find_directories(partition)
        return homes[0] if len(homes) == 1 else None

    def find(self, path: str) -> DataDirectory | None:
        """Return the directory at a path; None if it is not in use."""
        return next((each for each in self._online if str(each.path) == path), None)

    def set_preferred_directory(self, partition: TopicPartition, home: DataDirectory) -> None:
        """Set the directory in which a partition will be created. The oldest requests are dropped if there are too many."""
        self.preferred.pop(partition, None)
        self.preferred[partition] = home
        while len(self.preferred) > MOST_PREFERRED:
            del self.preferred[next(iter(self.preferred))]

    def _preferred_directory(self, partition: TopicPartition) -> DataDirectory | None:
        home = self.preferred.pop(partition, None)
        return home if home in self._online else None

    def _choose_new_directory(self, partition: TopicPartition) -> DataDirectory:
        if partition in self._lost:
            raise self._offline_error(partition, self._lost[partition])
        assigned = self.assigned(partition)
        if assigned is not None and assigned > LAST_RESERVED:
            named = next(
                (each for each in self._online if each.directory_id == assigned or assigned in each.lost), None
            )
            if named is None:
                self._warn_of_unknown_directory(partition, assigned)
                raise self._offline_error(
                    partition, ", ".join(self._offline) or f"of id {text_of(assigned)}, which is none of log.dirs"
                )
            if partition in named.futures:  # an incomplete copy that was being moved there
                raise self._offline_error(partition, ", ".join(self._offline) or f"{named.path} has not all of it")
            return named
        known = next((each for each in self._online if each.has_checkpoint(partition)), None)
        if known is not None:
            return known  # opening the log there reports that its folder is missing
        if self._offline and not (partition in self._fresh or self.is_assignment_complete or assigned == LOST):
            raise self._offline_error(partition, ", ".join(self._offline))
        return self._preferred_directory(partition) or self._find_emptiest()

    def _warn_of_unknown_directory(self, partition: TopicPartition, assigned: UUID) -> None:
        """Log once that replicas are in a directory that is none of `log.dirs`. An offline one was reported already."""
        if self._offline or assigned in self._unknown:
            return
        self._unknown.add(assigned)
        LOG.warning(
            "%s and possibly other replicas of this broker are in the directory with the id %s, which is none of log.dirs, and are out "
            "of service: mount its disk and start again; if it is lost, move these replicas to another broker and back "
            "(ottla cluster reassign)",
            partition, text_of(assigned),
        )  # fmt: skip

    def _offline_error(self, partition: TopicPartition, where: str) -> OfflineError:
        return OfflineError(f"{partition} is in a directory that is not there ({where}): {REMEDY}")

    def _find_assigned_directory(self, partition: TopicPartition, homes: Sequence[DataDirectory]) -> DataDirectory:
        """Return the directory that the metadata assign. The folders in the others are renamed, so that they are not used later."""
        assigned = self.assigned(partition)
        named = next((each for each in homes if each.directory_id == assigned), None)
        if named is None:
            places = " and ".join(str(each.folder(partition)) for each in homes)
            raise OutOfServiceError(f"{partition} is twice here, as {places}: move the one that you do not need away")
        for each in homes:
            if each is not named:
                folder = each.folder(partition)
                try:
                    aside = each.set_aside_folder(partition)
                except OSError as error:
                    raise storage_error(f"cannot put {folder} aside", error) from error
                LOG.warning(
                    "%s is in %s as well, which counts: renamed to %s, remove it if you do not need it",
                    folder, named.path, aside,
                )  # fmt: skip
        return named

    def _find_emptiest(self) -> DataDirectory:
        return min(self.candidates(), key=self._homes.counts.__getitem__)

    def candidates(self) -> list[DataDirectory]:
        """Return the directories for new partitions. Full or cordoned ones are returned only if there are no others."""
        free = [each for each in self._online if each.directory_id not in self.cordoned] or self._online
        return [each for each in free if has_space(each)] or free

    def record_move(self, partition: TopicPartition, home: DataDirectory) -> None:
        """Record that a partition was moved to a directory."""
        self._homes.put(partition, home)

    def _group_by_directory(self, partitions: Sequence[TopicPartition]) -> dict[DataDirectory, list[TopicPartition]]:
        """Group the partitions that exist by their directories."""
        found: dict[DataDirectory, list[TopicPartition]] = {}
        for partition in partitions:
            for home in self._homes.find_directories(partition):
                found.setdefault(home, []).append(partition)
        return found

    # failed directories

    def find_failed_directory(
        self, error: BaseException | None, partition: TopicPartition | None = None
    ) -> DataDirectory | None:
        """Return the directory that has failed according to an error: that of the partition, or of the file named in the error."""
        if not is_fatal(error):
            return None
        if partition is not None:
            homes = [self.main] if partition.topic == STATE_TOPIC else self._homes.find_directories(partition)
            return homes[0] if len(homes) == 1 else None
        cause = error.__cause__ if isinstance(error, KafkaError) else error
        name = getattr(cause, "filename", None)
        path = Path(name) if isinstance(name, str) else None
        return next((each for each in self._all() if path is not None and path.is_relative_to(each.path)), None)

    def fail(self, directory: DataDirectory, why: str) -> tuple[list[TopicPartition], Callable[[], None]]:
        """Stop using a directory. Return its partitions, and the remaining work, which may be done in any thread."""
        self._online.remove(directory)
        self._offline[str(directory.path)] = why
        gone = self._homes.partitions_in(directory)
        for partition in gone:
            self._homes.put(partition)
            self._lost[partition] = str(directory.path)
        return gone, directory.stop_using()

    def ensure_in_place(self, partition: TopicPartition) -> None:
        self.main.ensure_in_place(partition)

    # what a data directory does

    @property
    def open_logs(self) -> dict[TopicPartition, Log]:
        """Return the open logs of all directories."""
        return {partition: log for each in self._all() for partition, log in each.open_logs.items()}

    @property
    def deletions(self) -> AllDeletions:
        return AllDeletions(self._all())

    def logs(self) -> dict[TopicPartition, Path]:
        return {partition: folder for each in self._online for partition, folder in each.logs().items()}

    def unsure_bytes(self, partition: TopicPartition, folder: Path) -> int:
        return next(each for each in self._all() if each.path == folder.parent).unsure_bytes(partition, folder)

    def folder(self, partition: TopicPartition) -> Path:
        """Return the folder of a partition; in the main directory if it has none yet."""
        if partition.topic == STATE_TOPIC:
            return self.main.folder(partition)
        homes = self._homes.find_directories(partition)
        return (homes[0] if homes else self.main).folder(partition)

    def open_log(
        self,
        partition: TopicPartition,
        config: LogConfig,
        *,
        now_ms: int,
        topic_id: UUID | None = None,
        replicated: bool = False,
    ) -> Log:
        return self.place(partition).open_log(
            partition, config, now_ms=now_ms, topic_id=topic_id, replicated=replicated
        )

    def lend_log(self, partition: TopicPartition) -> Log:
        return self.place(partition).lend_log(partition)

    def ensure_space(self, folders: int) -> None:
        """Raise KafkaError if no directory has space."""
        faults = []
        for each in self.candidates():
            try:
                return each.ensure_space(folders)
            except KafkaError as error:
                faults.append(error)
        raise faults[0]

    def ensure_whole(self, partition: TopicPartition, *, is_copy: bool = False) -> None:
        self.main.ensure_whole(partition, is_copy=is_copy)

    def forget_checkpoints(self, partitions: Sequence[TopicPartition]) -> None:
        for each in self._online:
            each.forget_checkpoints(partitions)
        for partition in partitions:
            self._lost.pop(partition, None)
            self._homes.put(partition)
        self._fresh.update(partitions)

    def set_stray_folder_aside(self, partition: TopicPartition, topic_id: UUID) -> None:
        homes = self._homes.find_directories(partition)
        for each in homes:
            each.set_stray_folder_aside(partition, topic_id)
        kept = [each for each in homes if each.folder(partition).exists() or each.has_checkpoint(partition)]
        self._homes.put(partition, *kept)

    def begin_deletion(self, partitions: Sequence[TopicPartition], topic_id: UUID | None = None) -> None:
        """Start a deletion as `DataDirectory` does. Folders in an offline directory are deleted when it is online again."""
        for home, found in self._group_by_directory(partitions).items():
            home.begin_deletion(found, topic_id)
        for partition in partitions:
            self._homes.put(partition)
            self._lost.pop(partition, None)
            self._fresh.discard(partition)

    def cleaned_to(self, partition: TopicPartition) -> int:
        return self.place(partition).cleaned_to(partition)

    def record_cleaned(self, partition: TopicPartition, offset: int) -> Callable[[], None]:
        return self.place(partition).record_cleaned(partition, offset)

    def checkpoint(self) -> None:
        self.prepare_checkpoint(snapshots=False)()

    def prepare_checkpoint(self, *, snapshots: bool = True) -> Callable[[], None]:
        return run_all([each.prepare_checkpoint(snapshots=snapshots) for each in self._all()])

    def prepare_high_watermarks(self) -> Callable[[], None] | None:
        works = [work for each in self._all() if (work := each.prepare_high_watermarks()) is not None]
        return run_all(works) if works else None

    def close(self, *, clean: bool = True) -> None:
        """Close all directories, then raise the first error."""
        run_all([lambda each=each: each.close(clean=clean) for each in self._all()])()  # type: ignore[misc]


class AllDeletions:
    """The pending deletions of all directories."""

    def __init__(self, directories: Sequence[DataDirectory]) -> None:
        self._directories = directories

    def free_names(self, partitions: Sequence[TopicPartition]) -> None:
        for each in self._directories:
            each.deletions.free_names(partitions)

    def remove(self) -> None:
        for each in self._directories:
            each.deletions.remove()


def run_all(works: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Run all functions, then raise the first error."""

    def work() -> None:
        faults: list[Exception] = []
        for each in works:
            try:
                each()
            except Exception as error:
                faults.append(error)
        if faults:
            raise faults[0]

    return work


def has_space(directory: DataDirectory) -> bool:
    try:
        directory.ensure_space(1)
    except KafkaError:
        return False
    return True


def open_directories(
    paths: Sequence[str], *, node_id: int, formatted: bool = False, main: str = ""
) -> DataDirectory | DataDirectories:
    """Open the directories in `log.dirs`. `main` is the one with the metadata log; the first one if it is empty.

    Raises ConfigError if the main directory cannot be used, or if any directory is in use, belongs to another node or cluster, or is
    a copy of another one. Other directories that the operating system cannot open are offline.
    """
    main = main or paths[0]
    if list(paths) == [main]:
        return DataDirectory.open(main, node_id=node_id, formatted=formatted)
    opened = {main: DataDirectory.open(main, node_id=node_id, formatted=formatted)}
    offline: dict[str, str] = {}
    try:
        for path in paths:
            if path not in opened:
                open_other(path, opened, offline)
    except BaseException:
        for each in opened.values():
            each.close(clean=False)
        raise
    for path, why in offline.items():
        LOG.error("log directory %s is offline: %s; what it has is out of service, %s", path, why, REMEDY)
    return DataDirectories(opened[main], [opened[path] for path in paths if path in opened], offline)


def open_other(path: str, opened: dict[str, DataDirectory], offline: dict[str, str]) -> None:
    """Open a directory without the metadata log; an empty one is formatted for this node."""
    meta = next(iter(opened.values())).meta
    try:
        found = DataDirectory.open(path, node_id=meta.node_id, cluster_id=meta.cluster_id)
    except UnusableError as error:
        offline[str(Path(path).absolute())] = error.reason
        return
    twin = next((each for each in opened.values() if each.directory_id == found.directory_id), None)
    if twin is None:
        opened[path] = found
        return
    found.close(clean=False)
    raise ConfigError(
        f"log.dirs: {path} has the directory.id of {twin.path}, as a copy of it has: take one of the two out, or move the "
        "meta.properties of the copy away if its partitions are not needed"
    )


class PartitionDirectories:
    """The directories of each partition, and the number of partitions of each directory, which placement reads for each new partition.

    A partition has more than one directory until `DataDirectories.place` has chosen one of them.
    """

    def __init__(self) -> None:
        self.counts: Counter[DataDirectory] = Counter()
        """The number of partitions of each directory."""
        self._locations: dict[TopicPartition, tuple[DataDirectory, ...]] = {}

    def find_directories(self, partition: TopicPartition) -> Sequence[DataDirectory]:
        """Return the directories of a partition; empty if it has none yet."""
        return self._locations.get(partition, ())

    def add(self, partition: TopicPartition, home: DataDirectory) -> None:
        """Add a directory of a partition."""
        self.put(partition, *self.find_directories(partition), home)

    def put(self, partition: TopicPartition, *homes: DataDirectory) -> None:
        """Set the only directory of a partition, or none."""
        self.counts.subtract(self._locations.pop(partition, ()))
        if homes:
            self._locations[partition] = homes
            self.counts.update(homes)

    def partitions_in(self, directory: DataDirectory) -> list[TopicPartition]:
        """Return the partitions in a directory, in no order."""
        return [partition for partition, homes in self._locations.items() if directory in homes]
