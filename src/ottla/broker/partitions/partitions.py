"""All partitions of this broker, by name and by topic id."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from ottla.broker.disk import Disk
from ottla.broker.partitions.complaints import Complaints
from ottla.broker.partitions.partition import Partition
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.metadata import PartitionState, Topic
from ottla.errors import ErrorCode, KafkaError
from ottla.model import INT32_MAX, TopicPartition
from ottla.storage.batches.damage import OutOfServiceError
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.log_folder import read_topic_id

log = logging.getLogger(__name__)
RECOVERY_THREADS = 8
AT_ONCE_BYTES = 1 << 20
"""So much is checked in some milliseconds."""
CLUSTER_METADATA = "__cluster_metadata"
METADATA_PARTITION = TopicPartition(CLUSTER_METADATA, 0)
METADATA_LOG = LogConfig(max_message_bytes=INT32_MAX, segment_bytes=INT32_MAX, retention_ms=-1)
"""The config of the metadata log: nothing is rejected for its size, and snapshots decide what is deleted."""
"""The topic that is no topic, but knows all others."""


class Partitions:
    """What the cluster's metadata says there is, and the logs behind it."""

    def __init__(
        self, config: BrokerConfig, directory: DataDirectory | DataDirectories, clock: Clock, disk: Disk
    ) -> None:
        self._config = config
        self._directory = directory
        self._clock = clock
        self._disk = disk
        self.complaints = Complaints(clock)
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._log_configs: dict[str, LogConfig] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._same: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        """By what topics set themselves: mostly nothing."""
        self._unchecked: list[Partition] = []
        self.elsewhere: Callable[[uuid.UUID], str | None] | None = None
        """In a cluster: the name of a topic, of which there may be nothing here; None where this broker has everything."""
        self.suspect: Callable[[BaseException | None, Partition | None], None] = lambda error, partition: None
        """Told of errors that may mean that a directory has failed."""
        self.relieves: Callable[[Partition], bool] = lambda partition: False
        """Told of a copy in which damage was met; whether another leads it, or is asked to, so that one had better ask again."""
        self.absent_code: Callable[[str, int], ErrorCode] = lambda topic, index: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        """What is said of a partition that is not here: in a cluster others may have it."""

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, topic: str, index: int) -> Partition | None:
        """The partition, None where there is none."""
        return self._by_name.get((topic, index))

    def compacted(self) -> list[Partition]:
        """Those of topics that keep the last record of each key."""
        topics = {topic for topic, config in self._log_configs.items() if config.compacts}
        return [partition for (topic, _), partition in self._by_name.items() if topic in topics] if topics else []

    def uncompacted(self) -> list[Partition]:
        """All but the compacted ones."""
        return [each for each in self if not self._log_configs[each.topic_partition.topic].compacts]

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The topic with that id."""
        name = self._names.get(topic_id)
        return self.elsewhere(topic_id) if name is None and self.elsewhere is not None else name

    def configure(self, config: BrokerConfig) -> None:
        """Take other settings; topics have them once they are added again."""
        self._config = config
        self._same.clear()

    def ensure_room(self, count: int) -> None:
        """KafkaError(KAFKA_STORAGE_ERROR) where there is no room for `count` more.

        Their folders are made when they are first written to: a topic that could never be written is not to be made.
        """
        self._directory.ensure_room(count)

    def add(self, topic: Topic, states: Iterable[PartitionState] | None = None) -> None:
        """Take up a topic, or what is new of it: partitions, whose logs are opened when they are used, and configs.

        Where not all of it is here, `states` are those that are.
        """
        self._names[topic.topic_id] = topic.name
        self._log_configs[topic.name] = self._log_config(topic)
        in_sync = int(topic.configs.get("min.insync.replicas", self._config.min_insync_replicas))
        for state in topic.partitions if states is None else states:
            known = self._by_name.get((topic.name, state.index))
            if known is not None:
                known.replicas_in_sync, known.min_insync_replicas = len(state.isr), in_sync
                if known.opened_log is not None:
                    known.opened_log.config = self._log_configs[topic.name]
                continue
            self._by_name[topic.name, state.index] = Partition(
                TopicPartition(topic.name, state.index),
                topic.topic_id,
                self._open,
                leader_epoch=state.leader_epoch,
                replicas_in_sync=len(state.isr),
                min_insync_replicas=in_sync,
                internal=topic.internal,
            )

    def _log_config(self, topic: Topic) -> LogConfig:
        key = tuple(sorted(topic.configs.items()))
        found = self._same.get(key)
        if found is None:
            found = self._same[key] = self._config.log_config(topic.configs)
        return found

    def remove(self, topic: Topic) -> list[Partition]:
        """Forget a topic's partitions; who waited for them is still with them. Their files go in a disk thread."""
        self._names.pop(topic.topic_id, None)
        self._log_configs.pop(topic.name, None)
        gone = [self._by_name.pop((topic.name, state.index)) for state in topic.partitions]
        self._directory.begin_deletion([partition.topic_partition for partition in gone], topic.topic_id)
        self._disk.submit(self._directory.deletions.remove, note_removal)
        return gone

    def give_up(self, topic: Topic, indices: Iterable[int]) -> list[Partition]:
        """Forget some partitions of a topic, with their files: others have them, or nobody any more."""
        found = [self._by_name.pop((topic.name, index), None) for index in indices]
        gone = [each for each in found if each is not None]
        self._directory.begin_deletion([each.topic_partition for each in gone], topic.topic_id)
        self._disk.submit(self._directory.deletions.remove, note_removal)
        return gone

    def forget(self, topic: Topic) -> None:
        """Know the topic no more, of which there is nothing here."""
        self._names.pop(topic.topic_id, None)
        self._log_configs.pop(topic.name, None)

    def make_way(self, partition: TopicPartition, topic_id: uuid.UUID) -> None:
        """Before a log is opened for the first time: a folder that another topic of that name left is put aside."""
        self._directory.make_way(partition, topic_id)

    def strays(self) -> list[Path]:
        """Folders of partitions that are not known here."""
        return [
            folder
            for partition, folder in self._directory.logs().items()
            if partition.topic != CLUSTER_METADATA and self.find(*partition) is None
        ]

    def recover(self) -> None:
        """After a crash: open the logs in which there may be much to check.

        The others take less than a request or two, each when somebody uses it, or when `unchecked` is walked. Reading and
        checking large batches leaves Python to others, so several threads are as many times quicker.
        """
        from concurrent.futures import ThreadPoolExecutor  # a start after a clean shutdown does without

        large: list[Partition] = []
        for name, folder in self._directory.logs().items():
            partition = self._by_name.get(name)
            if partition is not None:
                much = self._directory.unsure_bytes(name, folder) > AT_ONCE_BYTES
                (large if much else self._unchecked).append(partition)
        with ThreadPoolExecutor(min(os.cpu_count() or 1, RECOVERY_THREADS), "ottla-recovery") as threads:
            for _ in threads.map(ensure_open, large):
                pass

    @property
    def unchecked(self) -> list[Partition]:
        """Those that a crash left and nobody has used since: each is to be opened before a shutdown can be clean."""
        found = (each for each in self._unchecked if each.opened_log is None and each.fault is None)
        self._unchecked = [each for each in found if self.find(*each.topic_partition) is each]
        return self._unchecked

    def take_out_of_service(self, partition: Partition, error: OutOfServiceError) -> KafkaError:
        """Let nobody use a partition whose log is to be read whole, and cannot be; what to tell of it.

        Where others have all of it one of them leads in a moment, and this copy is made whole: who asks is to look for that one.
        """
        if self.relieves(partition):
            return KafkaError(ErrorCode.NOT_COORDINATOR, f"{partition} is damaged here: another broker is to lead it")
        return partition.take_out_of_service(error)

    def ensure_vacant(self, partitions: Sequence[TopicPartition]) -> None:
        """OutOfServiceError where one that is to be made has a folder, of which nobody knows what is in it."""
        self._directory.begin_anew(partitions)

    def see_to_strays(self, deleted: Callable[[], Collection[uuid.UUID]]) -> None:
        """Look at the folders that belong to no topic of now.

        Those of topics that were `deleted` go now: the end of the last run, or a sick disk, came in between. Of all others it is
        not known why nobody knows them, so they stay.
        """
        gone: Collection[uuid.UUID] | None = None
        left: list[TopicPartition] = []
        for topic_partition, folder in self._directory.logs().items():
            if topic_partition.topic == CLUSTER_METADATA:
                continue
            found = read_id(folder)
            known = self.find(*topic_partition)
            if known is not None and found in (None, known.topic_id):
                continue
            if gone is None:
                gone = deleted()
            if found in gone:
                self._directory.begin_deletion([topic_partition], found)
                left.append(topic_partition)
            elif known is None:
                log.warning("%s belongs to no topic: it is left as it is, move it away if you do not need it", folder)

        if left:
            log.info("files of deleted topics were left, and go now: %d folders", len(left))
            self._directory.deletions.vacate(left)
            self._disk.submit(self._directory.deletions.remove, note_removal)

    def _open(self, topic_partition: TopicPartition, topic_id: uuid.UUID) -> Log:
        known = self._by_name.get(topic_partition)
        config = self._log_configs.get(topic_partition.topic)
        if known is None or known.topic_id != topic_id or config is None:
            text = f"{topic_partition} was deleted: its log is not opened any more"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return self._directory.open_log(
            topic_partition,
            config,
            now_ms=self._clock.wall_ms(),
            topic_id=topic_id,
            replicated=known.replicated,
        )


def note_removal(error: BaseException | None) -> None:
    """What has become of the files of topics that were deleted."""
    if error is not None:
        log.error("files of deleted topics are left, and go with the next start: %s", error)


def ensure_open(partition: Partition) -> None:
    """Open a partition's log; where that cannot be, it is said, and the others are served."""
    try:
        partition.log  # noqa: B018
    except OutOfServiceError:
        pass  # as it has said itself
    except KafkaError as error:
        log.error("%s: %s", partition.topic_partition, error)


def read_id(folder: Path) -> uuid.UUID | None:
    """The topic id in a partition's folder, None where there is none to be read."""
    try:
        return read_topic_id(folder)
    except (OSError, ValueError):
        return None
