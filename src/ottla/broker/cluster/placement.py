"""Where partitions lie, where there are several directories: said by the metadata, as in a cluster.

A partition that is on no disk that is there must not be begun anew on another: so it is written down where each is before anything is
written to it. With one directory there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from ottla.broker.machines.runtime import Runtime
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.cluster.events import CopiesPlaced
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic import Topic
from ottla.errors import KafkaError
from ottla.kafka_id import LAST_RESERVED
from ottla.model import TopicPartition
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory


class Placement:
    """Of this broker's copies. Called in the loop."""

    def __init__(
        self, directory: DataDirectory | DataDirectories, cluster: Runtime[ClusterMetadata], config: BrokerConfig
    ) -> None:
        self._cluster = cluster
        self._me = config.node_id
        self._joins = config.joins
        self._directories = directory if isinstance(directory, DataDirectories) else None
        if self._directories is not None:
            self._directories.assigned = self.assigned
            self._directories.tells_all = config.joins
            self._directories.cordoned = cordoned(config, self._directories)

    def assigned(self, partition: TopicPartition) -> UUID | None:
        """Where the metadata say that the copy of this broker is; None where there is none."""
        topic = self._cluster.machine.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        state = topic.partitions[partition.partition]
        return dict(zip(state.replicas, state.directories, strict=False)).get(self._me)

    def settle(self, topics: Iterable[Topic]) -> None:
        """Write down where partitions lie of which nothing is said so far; in a cluster the controllers do."""
        if self._directories is None or self._joins:
            return
        found: dict[TopicPartition, UUID] = {}
        for topic in topics:
            for state in topic.partitions:
                if state.directories and state.directories[0] <= LAST_RESERVED:
                    partition = TopicPartition(topic.name, state.index)
                    try:
                        found[partition] = self._directories.place(partition).directory_id
                    except KafkaError:
                        continue  # Who uses it is told.
        self.note(found)

    def note(self, directories: dict[TopicPartition, UUID]) -> None:
        """Write down that partitions lie there. KafkaError where that cannot be kept."""
        if directories and not self._joins:
            self._cluster.ask(lambda ticket: CopiesPlaced(ticket, directories))


def cordoned(config: BrokerConfig, directories: DataDirectory | DataDirectories) -> frozenset[UUID]:
    """The directories that get no partition that nobody has put there (KIP-1066)."""
    # A guest among others' brokers takes nothing unasked; one that votes in its cluster is none.
    is_guest = config.joins and not config.combines
    if not is_guest and "cordoned_log_dirs" not in config.given:
        return frozenset()
    named = {each.strip() for each in config.cordoned_log_dirs.split(",")}
    return frozenset(
        each.directory_id
        for each in directories.online()
        if "*" in named or not named.isdisjoint(names_of(each, config))
    )


def names_of(directory: DataDirectory, config: BrokerConfig) -> set[str]:
    """How the settings may name a directory: in full, or as `log.dirs` does."""
    given = [each.strip() for each in config.log_dirs.split(",")]
    path = str(directory.path)
    return {path, *(name for name, whole in zip(given, config.directories, strict=True) if whole == path)}
