"""The log directory of each replica on a broker with several directories, by the metadata (`AssignReplicasToDirs`, KIP-858).

A partition with an offline directory must not be created again in another one. So the broker assigns the directory of each replica in
the metadata before it writes to it. With one directory there is nothing to assign.
"""

from __future__ import annotations

from uuid import UUID

from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.settings.config import BrokerConfig
from ottla.model import TopicPartition
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory


def connect_placement(
    directory: DataDirectory | DataDirectories, cluster: ObservedMetadata, config: BrokerConfig
) -> None:
    """Make the directories place replicas as the metadata assigns them. The caller keeps `cordoned` up to date."""
    if not isinstance(directory, DataDirectories):
        return

    def assigned(partition: TopicPartition) -> UUID | None:
        topic = cluster.machine.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        state = topic.partitions[partition.partition]
        return dict(zip(state.replicas, state.directories, strict=False)).get(config.node_id)

    directory.assigned = assigned
    directory.is_assignment_complete = True


def list_cordoned(config: BrokerConfig, directories: DataDirectory | DataDirectories) -> frozenset[UUID]:
    """Return the cordoned directories, which get no new partitions (KIP-1066)."""
    named = {each.strip() for each in config.cordoned_log_dirs.split(",")} - {""}
    if not named:
        return frozenset()
    return frozenset(
        each.directory_id
        for each in directories.online()
        if "*" in named or not named.isdisjoint(list_names(each, config))
    )


def list_names(directory: DataDirectory, config: BrokerConfig) -> set[str]:
    """Return the names that settings may use for a directory: its path, or its entry in `log.dirs`."""
    given = [each.strip() for each in config.log_dirs.split(",")]
    path = str(directory.path)
    return {path, *(name for name, whole in zip(given, config.directories, strict=True) if whole == path)}
