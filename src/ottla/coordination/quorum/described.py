"""What a replica tells of its quorum to those who ask how it is: who leads, who votes, how far each has come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ottla.coordination.quorum.leadership import Leadership, Progress
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

NOBODY = -1
Place = tuple[str, int]
NOWHERE: Mapping[int, Place] = MappingProxyType({})
CONTROLLERS = 2
"""The kind of endpoints that a controller tells of (KIP-919)."""


def describe_quorum(raft: Raft, request: DescribeQuorumRequest, wall_ms: int) -> DescribeQuorumResponse:
    """The leader alone knows; whoever asks another is told to look for it. `wall_ms` is what the clock says, for moments."""
    topics = [
        TopicData(
            topic.topic_name,
            [partition(raft, topic.topic_name, each.partition_index, wall_ms) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    response = DescribeQuorumResponse(topics=topics)
    if any(not each.error_code for topic in topics for each in topic.partitions):
        response.nodes = [
            Node(id_, [Listener(each.name, each.host, each.port) for each in raft.voters.endpoints(id_)])
            for id_ in sorted(raft.voters.ids)
        ]
    return response


def partition(raft: Raft, topic: str, index: int, wall_ms: int) -> PartitionData:
    if (topic, index) != (METADATA_TOPIC, 0):
        return PartitionData(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"only {METADATA_TOPIC}-0 has a quorum")
    leadership = raft.leadership
    if leadership is None:
        known = "nobody is known to" if raft.leader_id in (None, raft.me.id) else f"node {raft.leader_id} does"
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


def observers(raft: Raft, leadership: Leadership) -> Iterator[ReplicaKey]:
    """Who has fetched and has no vote; the leader itself, where it has taken itself out."""
    if not raft.is_voter:
        yield raft.me
    for key in leadership.replicas:
        if not raft.voters.has(key) and key != raft.me:
            yield key


def state(raft: Raft, leadership: Leadership, key: ReplicaKey, wall_ms: int) -> ReplicaState:
    """How far one has come."""
    if key.is_same(raft.me):
        return ReplicaState(raft.me.id, raft.me.directory_id, raft.log.end, wall_ms, wall_ms)
    progress = leadership.replicas.get(key, Progress())
    moments = (moment_ms(each, raft.now, wall_ms) for each in (progress.fetched_at, progress.caught_up_at))
    return ReplicaState(*key, progress.end, *moments)


def moment_ms(moment: float, now: float, wall_ms: int) -> int:
    """A reading of the monotonic clock as a time of day; -1 for what never was."""
    return NOBODY if moment == float("-inf") else wall_ms - round((now - moment) * 1000)


def describe_cluster(
    raft: Raft, request: DescribeClusterRequest, registered: Mapping[int, Place] = NOWHERE
) -> DescribeClusterResponse:
    """The controllers, as far as it is known where they are: those who vote, and who else has registered."""
    if request.endpoint_type != CONTROLLERS:
        sentence = "this address belongs to a controller, not to a broker: ask as bootstrap controllers, not servers"
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
