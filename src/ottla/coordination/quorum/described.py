"""Responses that describe the quorum: DescribeQuorum and DescribeCluster for controllers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ottla.coordination.quorum.leadership import LeaderState, Progress
from ottla.coordination.quorum.observer import METADATA_TOPIC
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.voters import ReplicaKey
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from ottla.protocol.schema import ZERO_UUID

DETAILS_SINCE = 2
"""The first version of DescribeQuorum with directories and addresses (KIP-853)."""
NOBODY = -1
Place = tuple[str, int]
NOWHERE: Mapping[int, Place] = MappingProxyType({})
CONTROLLERS = 2
"""The endpoint type of controllers in DescribeCluster (KIP-919)."""


def describe_quorum(raft: Raft, request: DescribeQuorumRequest, version: int, wall_ms: int) -> DescribeQuorumResponse:
    """Return the progress of all replicas if this one leads, otherwise the error NOT_LEADER_OR_FOLLOWER with the leader's id.

    `wall_ms` is the present wall-clock time. Readings of the monotonic clock are converted with it.
    """
    topics = [
        TopicData(
            topic.topic_name,
            [partition(raft, topic.topic_name, each.partition_index, wall_ms) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    response = DescribeQuorumResponse(topics=topics)
    if version < DETAILS_SINCE:
        remove_details(response)
    elif any(not each.error_code for topic in topics for each in topic.partitions):
        response.nodes = [
            Node(id_, [Listener(each.name, each.host, each.port) for each in raft.voters.endpoints(id_)])
            for id_ in sorted(raft.voters.ids)
        ]
    return response


def remove_details(response: DescribeQuorumResponse) -> None:
    """Remove the directory ids and error messages, which versions before KIP-853 do not have."""
    for topic in response.topics:
        for each in topic.partitions:
            each.error_message = None
            for replica in (*each.current_voters, *each.observers):
                replica.replica_directory_id = ZERO_UUID


def partition(raft: Raft, topic: str, index: int, wall_ms: int) -> PartitionData:
    if (topic, index) != (METADATA_TOPIC, 0):
        return PartitionData(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"only {METADATA_TOPIC}-0 has a quorum")
    leadership = raft.leadership
    if leadership is None:
        known = "no node is known to" if raft.leader_id in (None, raft.me.id) else f"node {raft.leader_id} does"
        return PartitionData(
            index,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"node {raft.me} does not lead the quorum, {known} in epoch {raft.epoch}",
            NOBODY if raft.leader_id is None else raft.leader_id,
            raft.epoch,
            raft.high_watermark,
        )
    return PartitionData(
        index,
        leader_id=raft.me.id,
        leader_epoch=raft.epoch,
        high_watermark=raft.high_watermark,
        current_voters=[state(raft, leadership, key, wall_ms) for key in raft.voters.keys],
        observers=[state(raft, leadership, key, wall_ms) for key in observers(raft, leadership)],
    )


def observers(raft: Raft, leadership: LeaderState) -> Iterator[ReplicaKey]:
    """Yield the replicas that fetch without a vote, including a leader that has removed itself."""
    if not raft.is_voter:
        yield raft.me
    for key in leadership.replicas:
        if not raft.voters.has(key) and key != raft.me:
            yield key


def state(raft: Raft, leadership: LeaderState, key: ReplicaKey, wall_ms: int) -> ReplicaState:
    """Return the progress of one replica."""
    if key.is_same(raft.me):
        return ReplicaState(raft.me.id, raft.me.directory_id, raft.log.end, wall_ms, wall_ms)
    progress = leadership.replicas.get(key, Progress())
    moments = (moment_ms(each, raft.now, wall_ms) for each in (progress.fetched_at, progress.caught_up_at))
    return ReplicaState(*key, progress.end, *moments)


def moment_ms(moment: float, now: float, wall_ms: int) -> int:
    """Convert a reading of the monotonic clock to wall-clock time; -1 if the event has not happened yet."""
    return NOBODY if moment == float("-inf") else wall_ms - round((now - moment) * 1000)


def describe_cluster(
    raft: Raft, request: DescribeClusterRequest, registered: Mapping[int, Place] = NOWHERE
) -> DescribeClusterResponse:
    """Return the voters and all other registered controllers, and the id of the leader."""
    if request.endpoint_type != CONTROLLERS:
        sentence = (
            "this address belongs to a controller, not to a broker: use it for bootstrap controllers, not servers"
        )
        return DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=sentence)
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=raft.cluster_id,
        controller_id=NOBODY if raft.leader_id is None else raft.leader_id,
        brokers=controllers(raft, registered),
    )


def controllers(raft: Raft, registered: Mapping[int, Place]) -> Sequence[DescribeClusterBroker]:
    voters = ((id_, raft.voters.endpoints(id_)) for id_ in raft.voters.ids)
    places = {**registered, **{id_: (place[0].host, place[0].port) for id_, place in voters if place}}
    return [DescribeClusterBroker(id_, *place) for id_, place in sorted(places.items())]
