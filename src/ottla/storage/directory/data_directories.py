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
from ottla.kafka_id import LAST_RESERVED
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
        """Use `open_directories`. `others` have partitions, as `main` has if it is among them."""
        self.main = main
        self.assigned: Callable[[TopicPartition], UUID | None] = lambda partition: None
        """Returns the id of the directory to which the metadata assign a partition."""
        self.tells_all = False
        """True if a partition without an assigned directory is new: in a cluster the directory is registered when the partition is created."""
        self.cordoned: Set[UUID] = frozenset()
        """Directories that get new partitions only by an assignment, while there are others (KIP-1066)."""
        self.preferred: dict[TopicPartition, DataDirectory] = {}
        """The requested directories of partitions that do not exist here yet."""
        self._online = list(others)
        self._offline = dict(offline)
        self._began_without = bool(offline)
        self._fresh: set[TopicPartition] = set()
        """Partitions made in this run, so that they are in no directory that is not there."""
        self._lost: dict[TopicPartition, str] = {}
        self._homes = Homes()
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
    def clean(self) -> bool:
        return all(each.clean for each in self._all())

    @property
    def broker_epoch(self) -> int:
        return self.main.broker_epoch

    @broker_epoch.setter
    def broker_epoch(self, epoch: int) -> None:
        for each in self._all():
            each.broker_epoch = epoch

    @property
    def previous_epoch(self) -> int:
        """Only where all were stopped cleanly, and together."""
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

        OfflineError is raised if it is offline, OutOfServiceError if two have the partition and it is unknown which one counts.
        """
        if partition.topic == STATE_TOPIC:
            return self.main
        homes = self._homes.of(partition)
        if len(homes) == 1:
            return homes[0]
        home = self._true_home(partition, homes) if homes else self._chosen(partition)
        self._homes.put(partition, home)
        return home

    def begins_anew(self, partition: TopicPartition, former: UUID) -> bool:
        """True as in `DataDirectory`; a partition in another of these directories has only been moved."""
        home = self.settled(partition)
        return (
            home is not None
            and all(each.directory_id != former for each in self._online)
            and home.begins_anew(partition, former)
        )

    def settled(self, partition: TopicPartition) -> DataDirectory | None:
        """The directory that has a partition, if that is decided; unlike `place` this decides nothing."""
        homes = self._homes.of(partition)
        return homes[0] if len(homes) == 1 else None

    def find(self, path: str) -> DataDirectory | None:
        """The one at a path, if it is in use."""
        return next((each for each in self._online if str(each.path) == path), None)

    def prefer(self, partition: TopicPartition, home: DataDirectory) -> None:
        """Have one that is not here yet made there, once it is this broker's; of too many the first are forgotten."""
        self.preferred.pop(partition, None)
        self.preferred[partition] = home
        while len(self.preferred) > MOST_PREFERRED:
            del self.preferred[next(iter(self.preferred))]

    def _preferred(self, partition: TopicPartition) -> DataDirectory | None:
        home = self.preferred.pop(partition, None)
        return home if home in self._online else None

    def _chosen(self, partition: TopicPartition) -> DataDirectory:
        if partition in self._lost:
            raise self._away(partition, self._lost[partition])
        assigned = self.assigned(partition)
        if assigned is not None and assigned > LAST_RESERVED:
            named = next(
                (each for each in self._online if each.directory_id == assigned or assigned in each.lost), None
            )
            if named is None:
                raise self._away(partition, ", ".join(self._offline) or f"of id {assigned}, which is none of log.dirs")
            if partition in named.futures:  # a copy that was on its way there, and may lack what came last
                raise self._away(partition, ", ".join(self._offline) or f"{named.path} has not all of it")
            return named
        known = next((each for each in self._online if each.remembers(partition)), None)
        if known is not None:
            return known  # which says that it is gone
        if self._offline and not (partition in self._fresh or self.tells_all or assigned == LOST):
            raise self._away(partition, ", ".join(self._offline))
        return self._preferred(partition) or self._emptiest()

    def _away(self, partition: TopicPartition, where: str) -> OfflineError:
        return OfflineError(f"{partition} is in a directory that is not there ({where}): {REMEDY}")

    def _true_home(self, partition: TopicPartition, homes: Sequence[DataDirectory]) -> DataDirectory:
        """Return which of several directories counts: that of the metadata. The folders in the others are renamed, so that they are not used later."""
        assigned = self.assigned(partition)
        named = next((each for each in homes if each.directory_id == assigned), None)
        if named is None:
            places = " and ".join(str(each.folder(partition)) for each in homes)
            raise OutOfServiceError(f"{partition} is twice here, as {places}: move the one that you do not need away")
        for each in homes:
            if each is not named:
                folder = each.folder(partition)
                try:
                    aside = each.put_aside(partition)
                except OSError as error:
                    raise storage_error(f"cannot put {folder} aside", error) from error
                LOG.warning(
                    "%s is in %s as well, which counts: renamed to %s, remove it if you do not need it",
                    folder, named.path, aside,
                )  # fmt: skip
        return named

    def _emptiest(self) -> DataDirectory:
        return min(self.candidates(), key=self._homes.counts.__getitem__)

    def candidates(self) -> list[DataDirectory]:
        """Return the directories for new partitions. Full or cordoned ones are returned only if there are no others."""
        free = [each for each in self._online if each.directory_id not in self.cordoned] or self._online
        return [each for each in free if has_room(each)] or free

    def settle(self, partition: TopicPartition, home: DataDirectory) -> None:
        """A partition has moved there."""
        self._homes.put(partition, home)

    def _by_home(self, partitions: Sequence[TopicPartition]) -> dict[DataDirectory, list[TopicPartition]]:
        """Group the partitions that exist by their directories."""
        found: dict[DataDirectory, list[TopicPartition]] = {}
        for partition in partitions:
            for home in self._homes.of(partition):
                found.setdefault(home, []).append(partition)
        return found

    # one that fails

    def sick(self, error: BaseException | None, partition: TopicPartition | None = None) -> DataDirectory | None:
        """The directory that an error says has failed: that of the partition, or of the file that the error names."""
        if not is_fatal(error):
            return None
        if partition is not None:
            homes = [self.main] if partition.topic == STATE_TOPIC else self._homes.of(partition)
            return homes[0] if len(homes) == 1 else None
        cause = error.__cause__ if isinstance(error, KafkaError) else error
        name = getattr(cause, "filename", None)
        path = Path(name) if isinstance(name, str) else None
        return next((each for each in self._all() if path is not None and path.is_relative_to(each.path)), None)

    def fail(self, directory: DataDirectory, why: str) -> tuple[list[TopicPartition], Callable[[], None]]:
        """Use it no more. What it had, and what is left to do for that in any thread."""
        self._online.remove(directory)
        self._offline[str(directory.path)] = why
        gone = self._homes.inside(directory)
        for partition in gone:
            self._homes.put(partition)
            self._lost[partition] = str(directory.path)
        return gone, directory.abandon()

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
        """The folder that a partition has, or would have in the main directory."""
        if partition.topic == STATE_TOPIC:
            return self.main.folder(partition)
        homes = self._homes.of(partition)
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

    def ensure_room(self, folders: int) -> None:
        """KafkaError where none has room."""
        faults = []
        for each in self.candidates():
            try:
                return each.ensure_room(folders)
            except KafkaError as error:
                faults.append(error)
        raise faults[0]

    def ensure_whole(self, partition: TopicPartition, *, is_copy: bool = False) -> None:
        self.main.ensure_whole(partition, is_copy=is_copy)

    def begin_anew(self, partitions: Sequence[TopicPartition]) -> None:
        for each in self._online:
            each.begin_anew(partitions)
        for partition in partitions:
            self._lost.pop(partition, None)
            self._homes.put(partition)
        self._fresh.update(partitions)

    def make_way(self, partition: TopicPartition, topic_id: UUID) -> None:
        homes = self._homes.of(partition)
        for each in homes:
            each.make_way(partition, topic_id)
        kept = [each for each in homes if each.folder(partition).exists() or each.remembers(partition)]
        self._homes.put(partition, *kept)

    def begin_deletion(self, partitions: Sequence[TopicPartition], topic_id: UUID | None = None) -> None:
        """Start a deletion as `DataDirectory` does. Folders in an offline directory are deleted when it is online again."""
        for home, found in self._by_home(partitions).items():
            home.begin_deletion(found, topic_id)
        for partition in partitions:
            self._homes.put(partition)
            self._lost.pop(partition, None)
            self._fresh.discard(partition)

    def cleaned_to(self, partition: TopicPartition) -> int:
        return self.place(partition).cleaned_to(partition)

    def note_cleaned(self, partition: TopicPartition, offset: int) -> Callable[[], None]:
        return self.place(partition).note_cleaned(partition, offset)

    def checkpoint(self) -> None:
        self.checkpointing(snapshots=False)()

    def checkpointing(self, *, snapshots: bool = True) -> Callable[[], None]:
        return all_of([each.checkpointing(snapshots=snapshots) for each in self._all()])

    def checkpointing_high_watermarks(self) -> Callable[[], None] | None:
        works = [work for each in self._all() if (work := each.checkpointing_high_watermarks()) is not None]
        return all_of(works) if works else None

    def close(self, *, clean: bool = True) -> None:
        """Close each; the first of what went wrong is raised when all are."""
        all_of([lambda each=each: each.close(clean=clean) for each in self._all()])()  # type: ignore[misc]


class AllDeletions:
    """The pending deletions of all directories."""

    def __init__(self, directories: Sequence[DataDirectory]) -> None:
        self._directories = directories

    def vacate(self, partitions: Sequence[TopicPartition]) -> None:
        for each in self._directories:
            each.deletions.vacate(partitions)

    def remove(self) -> None:
        for each in self._directories:
            each.deletions.remove()


def all_of(works: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """All of that, also where something of it fails: the first error is raised at the end."""

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


def has_room(directory: DataDirectory) -> bool:
    try:
        directory.ensure_room(1)
    except KafkaError:
        return False
    return True


def open_directories(
    paths: Sequence[str], *, node_id: int, formatted: bool = False, main: str = ""
) -> DataDirectory | DataDirectories:
    """Open what `log.dirs` names. `main` has the metadata's log, the first where it is empty.

    ConfigError where the main one cannot be used, or one is in use, of another node or cluster, or named twice; others
    that the system does not let us use are offline.
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
    """Open one that has no metadata; an empty one becomes this node's."""
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


class Homes:
    """The directories of each partition, and the number of partitions of each directory, which placement reads for each new partition.

    A partition has more than one directory until it is decided which one counts.
    """

    def __init__(self) -> None:
        self.counts: Counter[DataDirectory] = Counter()
        """How many partitions each directory has."""
        self._homes: dict[TopicPartition, tuple[DataDirectory, ...]] = {}

    def of(self, partition: TopicPartition) -> Sequence[DataDirectory]:
        """Empty where the partition is nowhere yet."""
        return self._homes.get(partition, ())

    def add(self, partition: TopicPartition, home: DataDirectory) -> None:
        """It is there as well."""
        self.put(partition, *self.of(partition), home)

    def put(self, partition: TopicPartition, *homes: DataDirectory) -> None:
        """It is there and nowhere else; nowhere at all without any."""
        self.counts.subtract(self._homes.pop(partition, ()))
        if homes:
            self._homes[partition] = homes
            self.counts.update(homes)

    def inside(self, directory: DataDirectory) -> list[TopicPartition]:
        """The partitions that have a copy there, in no order."""
        return [partition for partition, homes in self._homes.items() if directory in homes]
