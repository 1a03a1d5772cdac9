"""The view of brokers: their leaders, lagging replicas and disks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nlargest
from typing import TYPE_CHECKING

from ottla.console.views import View

if TYPE_CHECKING:
    from ottla.client.admin import (
        ClusterDescription,
        LogDirDescription,
        QuorumInfo,
        QuorumReplicaState,
        TopicDescription,
    )
    from ottla.model import Node, PartitionInfo

Directories = Mapping[int, Mapping[str, "LogDirDescription"]]


def brokers_view(
    cluster: ClusterDescription, topics: Iterable[TopicDescription], directories: Directories, quorum: QuorumInfo | None
) -> View:
    """Return the view of all brokers; without `directories` it has no disks."""
    partitions = [partition for topic in topics for partition in topic.partitions]
    return {
        "cluster": cluster.cluster_id,
        "brokers": [broker_row(node, partitions, directories.get(node.node_id, {})) for node in sorted(cluster.nodes)],
        "quorum": None if quorum is None else quorum_view(quorum),
    }


def broker_row(node: Node, partitions: Iterable[PartitionInfo], directories: Mapping[str, LogDirDescription]) -> View:
    """Return the row of a broker; `lagging` lists the partitions in which its replica is not in sync."""
    copied = [p for p in partitions if node.node_id in p.replicas]
    return {
        "id": node.node_id,
        "address": str(node),
        "rack": node.rack,
        "leads": sum(p.leader == node.node_id for p in copied),
        "preferred": sum(p.replicas[0] == node.node_id for p in copied),
        "copies": len(copied),
        "lagging": sorted(f"{p.topic}-{p.partition}" for p in copied if node.node_id not in p.in_sync_replicas),
        "directories": [directory_row(path, directories[path]) for path in sorted(directories)],
    }


def directory_row(path: str, directory: LogDirDescription) -> View:
    copies = directory.replica_infos.values()
    largest = nlargest(5, directory.replica_infos.items(), key=lambda copy: copy[1].size)
    return {
        "path": path,
        "copies": len(copies),
        "bytes": sum(copy.size for copy in copies),
        "total": directory.total_bytes,
        "usable": directory.usable_bytes,
        "cordoned": directory.is_cordoned,
        "moving_here": sum(copy.is_future for copy in copies),
        "largest": [{"partition": str(tp), "bytes": copy.size} for tp, copy in largest],
    }


def quorum_view(quorum: QuorumInfo) -> View:
    """Return the voters and observers of the metadata log with their lag behind the leader."""
    end = max((voter.log_end_offset for voter in quorum.voters), default=0)
    return {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": [replica_row(each, end) for each in quorum.voters],
        "observers": [replica_row(each, end) for each in quorum.observers],
    }


def replica_row(replica: QuorumReplicaState, end: int) -> View:
    """Return the row of a voter or an observer; the lag is None if it has not fetched yet."""
    known = replica.log_end_offset >= 0
    return {"id": replica.replica_id, "behind": end - replica.log_end_offset if known else None}
