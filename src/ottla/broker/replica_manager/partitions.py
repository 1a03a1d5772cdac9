"""All partitions of this broker, by name and by topic id."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from ottla.broker.event_loop.disk import Disk
from ottla.broker.metadata.metadata_log import CLUSTER_METADATA
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.repeated_warnings import RepeatedWarnings
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.metadata import ClusterTopic, PartitionState
from ottla.coordination.cluster.topic_configs import validated_columns
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OutOfServiceError
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.log_folder import read_topic_id

log = logging.getLogger(__name__)
RECOVERY_THREADS = 8
AT_ONCE_BYTES = 1 << 20
"""The number of bytes that are checked in some milliseconds."""


class Partitions:
    """The partitions of this broker in the metadata, and their logs."""

    def __init__(
        self, config: BrokerConfig, directory: DataDirectory | DataDirectories, clock: Clock, disk: Disk
    ) -> None:
        self._config = config
        self._directory = directory
        self._clock = clock
        self._disk = disk
        self.complaints = RepeatedWarnings(clock)
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._log_configs: dict[str, LogConfig] = {}
        self._same: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        """Configs by the topics' own settings, so that topics without own settings share one."""
        self._unchecked: list[Partition] = []

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, topic: str, index: int) -> Partition | None:
        """Return the partition, or None."""
        return self._by_name.get((topic, index))

    def list_compacted(self) -> list[Partition]:
        """Return the partitions of topics with the policy `compact`."""
        topics = {topic for topic, config in self._log_configs.items() if config.is_compacted}
        return [partition for (topic, _), partition in self._by_name.items() if topic in topics] if topics else []

    def list_uncompacted(self) -> list[Partition]:
        """Return the partitions of topics without the policy `compact`."""
        return [each for each in self if not self._log_configs[each.topic_partition.topic].is_compacted]

    def configure(self, config: BrokerConfig) -> None:
        """Apply other settings to topics that are added from now on."""
        self._config = config
        self._same.clear()

    def add(self, topic: ClusterTopic, states: Iterable[PartitionState] | None = None) -> None:
        """Add a topic, or its new partitions and changed configs. Logs are opened at their first use.

        `states` are the partitions on this broker, None for all.
        """
        self._log_configs[topic.name] = self._log_config(topic)
        in_sync = int(topic.configs.get("min.insync.replicas", self._config.min_insync_replicas))
        validates_schemas = bool(validated_columns(topic.configs))
        for state in topic.partitions if states is None else states:
            known = self._by_name.get((topic.name, state.index))
            quorum = min(in_sync, len(state.replicas))
            if known is not None:
                known.validates_schemas = validates_schemas
                known.replicas_in_sync, known.min_insync_replicas = len(state.isr), quorum
                if known.opened_log is not None:
                    known.opened_log.config = self._log_configs[topic.name]
                continue
            added = self._by_name[topic.name, state.index] = Partition(
                TopicPartition(topic.name, state.index),
                topic.topic_id,
                self._open,
                leader_epoch=state.leader_epoch,
                replicas_in_sync=len(state.isr),
                min_insync_replicas=quorum,
                internal=topic.is_internal,
            )
            added.validates_schemas = validates_schemas

    def apply_configs(self, topics: Iterable[ClusterTopic]) -> None:
        """Apply the settings of the broker to the topics that have a partition here."""
        for topic in topics:
            if topic.name in self._log_configs:
                self.add(topic, [each for each in topic.partitions if (topic.name, each.index) in self._by_name])

    def _log_config(self, topic: ClusterTopic) -> LogConfig:
        key = tuple(sorted(topic.configs.items()))
        found = self._same.get(key)
        if found is None:
            found = self._same[key] = self._config.log_config(topic.configs)
        return found

    def remove_partitions(self, topic: ClusterTopic, indices: Iterable[int]) -> list[Partition]:
        """Remove some partitions of a topic, with their files: they are on other brokers, or were deleted."""
        found = [self._by_name.pop((topic.name, index), None) for index in indices]
        gone = [each for each in found if each is not None]
        self._directory.begin_deletion([each.topic_partition for each in gone], topic.topic_id)
        self._disk.submit(self._directory.deletions.remove, log_removal)
        return gone

    def remove_topic(self, topic: ClusterTopic) -> None:
        """Remove a topic that has no partitions here."""
        self._log_configs.pop(topic.name, None)

    def set_aside(self, partition: TopicPartition, topic_id: uuid.UUID) -> None:
        """Move a folder of another topic with the same name aside, before the log is opened for the first time."""
        self._directory.set_stray_folder_aside(partition, topic_id)

    def list_unknown_folders(self) -> list[Path]:
        """Return the folders of unknown partitions."""
        return [
            folder
            for partition, folder in self._directory.logs().items()
            if partition.topic != CLUSTER_METADATA and self.find(*partition) is None
        ]

    def recover(self) -> None:
        """Open the logs that may need a long check after a crash.

        Each of the others takes less than a request or two, at its first use or when `list_unrecovered` is walked. Reading and
        checking large batches releases Python's lock, so that several threads are faster.
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
    def list_unrecovered(self) -> list[Partition]:
        """Return the partitions that a crash left and that are still unopened: each must be opened before a shutdown can be clean."""
        found = (each for each in self._unchecked if each.opened_log is None and each.fault is None)
        self._unchecked = [each for each in found if self.find(*each.topic_partition) is each]
        return self._unchecked

    def finish_deletions(
        self, is_known: Callable[[uuid.UUID], bool], removed: Callable[[], Collection[uuid.UUID]]
    ) -> None:
        """Delete the folders of deleted topics that a stop or a disk error has left.

        `is_known` is True for a topic of the metadata; `removed` returns the topics that the metadata log says were deleted. A
        folder of any other topic is kept, since it is not known why its topic is unknown.
        """
        gone: Collection[uuid.UUID] | None = None
        left: list[TopicPartition] = []
        for topic_partition, folder in self._directory.logs().items():
            found = None if topic_partition.topic == CLUSTER_METADATA else read_id(folder)
            if found is None or is_known(found):
                continue
            if gone is None:
                gone = removed()
            if found in gone:
                self._directory.begin_deletion([topic_partition], found)
                left.append(topic_partition)
        if left:
            log.info("deleting the files of deleted topics that an earlier run left: %d folders", len(left))
            self._directory.deletions.free_names(left)
            self._disk.submit(self._directory.deletions.remove, log_removal)

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


def log_removal(error: BaseException | None) -> None:
    """Log a failure to delete the files of deleted topics."""
    if error is not None:
        log.error("cannot delete the files of deleted topics, they are deleted at the next start: %s", error)


def ensure_open(partition: Partition) -> None:
    """Open a partition's log. A failure is logged, and the other partitions are served."""
    try:
        partition.log  # noqa: B018
    except OutOfServiceError:
        pass  # logged before
    except KafkaError as error:
        log.error("%s: %s", partition.topic_partition, error)


def read_id(folder: Path) -> uuid.UUID | None:
    """Return the topic id in a partition's folder, None if it cannot be read."""
    try:
        return read_topic_id(folder)
    except (OSError, ValueError):
        return None
