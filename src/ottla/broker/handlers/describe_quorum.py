"""DescribeQuorum: the cluster's metadata is kept by one voter, which leads: this broker."""

from __future__ import annotations

import uuid

from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partitions import CLUSTER_METADATA
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.kafka_id import id_of
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    PartitionData,
    ReplicaState,
    TopicData,
)
from ottla.protocol.messages.describe_quorum import Node as Voter
from ottla.protocol.schema import ZERO_UUID

DETAILS_SINCE = 2
"""From this version on voters have directories and addresses (KIP-853)."""
ABSENT = "only __cluster_metadata-0 has a quorum"


def handle(node: BrokerNode, call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Only one partition has a quorum; of others we know nothing."""
    response = DescribeQuorumResponse(
        topics=[
            TopicData(
                topic.topic_name,
                [described(node, call, topic.topic_name, partition.partition_index) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    if call.version >= DETAILS_SINCE and any(
        not partition.error_code for topic in response.topics for partition in topic.partitions
    ):
        response.nodes = [Voter(node.config.node_id, [listener(node, call)])]
    return response


def described(node: BrokerNode, call: Call, topic: str, index: int) -> PartitionData:
    """The quorum of one partition."""
    if (topic, index) != (CLUSTER_METADATA, 0):
        return PartitionData(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ABSENT)
    log, now_ms = node.metadata_log, node.clock.wall_ms()
    directory_id = id_of_directory(node) if call.version >= DETAILS_SINCE else ZERO_UUID
    return PartitionData(
        index,
        leader_id=node.config.node_id,
        leader_epoch=log.epochs.latest(),
        high_watermark=log.high_watermark,
        current_voters=[ReplicaState(node.config.node_id, directory_id, log.end_offset, now_ms, now_ms)],
    )


def id_of_directory(node: BrokerNode) -> uuid.UUID:
    """The id in `meta.properties`; none where a person wrote something else there."""
    try:
        return id_of(node.directory.meta.directory_id)
    except ValueError:
        return ZERO_UUID


def listener(node: BrokerNode, call: Call) -> Listener:
    """Where the voter is reached: as the client came, since there is no other way to it."""
    host, port = node.address_for(call.connection)
    return Listener(call.connection.listener, host, port)
