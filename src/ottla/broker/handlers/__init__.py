"""What the broker does for each request: one module for each API, one line in the table.

What ApiVersions tells clients is made from this table, so it cannot say more than there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.call import Call, Outcome
from ottla.broker.handlers import (
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)
from ottla.broker.node import Node
from ottla.protocol.apis import Api, api_of
from ottla.protocol.messages.alter_configs import AlterConfigsRequest
from ottla.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest
from ottla.protocol.messages.create_topics import CreateTopicsRequest
from ottla.protocol.messages.delete_records import DeleteRecordsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from ottla.protocol.messages.list_offsets import ListOffsetsRequest
from ottla.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
from ottla.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.schema import Message, Range

Handle = Callable[[Node, Call, Any], Message | Outcome]
"""Answers a request, at once or later."""


class Line(NamedTuple):
    """An API that is spoken here."""

    api: Api
    handle: Handle
    versions: Range
    """The versions that are taken."""


def line(request: type[Message], handle: Handle) -> Line:
    """A line of the table: the versions are those that can be read and are told to clients."""
    api = api_of(request)
    first = max(api.versions.first, api.advertised.first)
    return Line(api, handle, Range(first, min(api.versions.last, api.advertised.last)))


HANDLERS: dict[int, Line] = {
    each.api.key: each
    for each in (
        line(ProduceRequest, produce.handle),
        line(FetchRequest, fetch.handle),
        line(ListOffsetsRequest, list_offsets.handle),
        line(MetadataRequest, metadata.handle),
        line(OffsetCommitRequest, offset_commit.handle),
        line(OffsetFetchRequest, offset_fetch.handle),
        line(FindCoordinatorRequest, find_coordinator.handle),
        line(ApiVersionsRequest, api_versions.handle),
        line(CreateTopicsRequest, create_topics.handle),
        line(DeleteTopicsRequest, delete_topics.handle),
        line(InitProducerIdRequest, init_producer_id.handle),
        line(DescribeClusterRequest, describe_cluster.handle),
        line(CreatePartitionsRequest, create_partitions.handle),
        line(DeleteRecordsRequest, delete_records.handle),
        line(OffsetForLeaderEpochRequest, offset_for_leader_epoch.handle),
        line(DescribeConfigsRequest, describe_configs.handle),
        line(IncrementalAlterConfigsRequest, incremental_alter_configs.handle),
        line(AlterConfigsRequest, alter_configs.handle),
        line(ListConfigResourcesRequest, list_config_resources.handle),
        line(DescribeTopicPartitionsRequest, describe_topic_partitions.handle),
        line(DescribeLogDirsRequest, describe_log_dirs.handle),
        line(ElectLeadersRequest, elect_leaders.handle),
        line(ListPartitionReassignmentsRequest, list_partition_reassignments.handle),
        line(AlterPartitionReassignmentsRequest, alter_partition_reassignments.handle),
    )
}
"""API key → who answers."""


def spoken_versions() -> list[ApiVersion]:
    """The table as ApiVersions tells it."""
    return [ApiVersion(key, *each.api.advertised) for key, each in sorted(HANDLERS.items())]
