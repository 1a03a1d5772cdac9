"""Functions that build and read the messages of the quorum. Every message concerns one partition, `__cluster_metadata-0`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.observer import METADATA_TOPIC, METADATA_TOPIC_ID
from ottla.coordination.quorum.voters import ReplicaKey
from ottla.coordination.quorum.voters_record import Endpoint
from ottla.protocol.messages import begin_quorum_epoch as begin
from ottla.protocol.messages import end_quorum_epoch as end
from ottla.protocol.messages import fetch, fetch_snapshot, vote
from ottla.protocol.messages.begin_quorum_epoch import NodeEndpoint, PartitionData, TopicData
from ottla.protocol.schema import Message

NO_NODE = -1


def metadata_partition(message: Any) -> Any | None:
    """Return the entry of a message for `__cluster_metadata-0`; None if the message has no such entry, or others too."""
    topics: Sequence[Any] = message.responses if isinstance(message, fetch.FetchResponse) else message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, (partition,) = topics[0], topics[0].partitions
    if isinstance(message, fetch.FetchRequest | fetch.FetchResponse):
        named = topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC
        number = partition.partition if isinstance(message, fetch.FetchRequest) else partition.partition_index
    elif isinstance(message, fetch_snapshot.FetchSnapshotRequest | fetch_snapshot.FetchSnapshotResponse):
        named = topic.name == METADATA_TOPIC
        number = partition.partition if hasattr(partition, "partition") else partition.index
    else:
        named, number = topic.topic_name == METADATA_TOPIC, partition.partition_index
    return partition if named and number == 0 else None


def sender_id(request: Any) -> int:
    """Return the number of the node that sent a request; -1 if the request does not name it."""
    if isinstance(request, fetch.FetchRequest) and request.replica_state is not None:
        return int(request.replica_state.replica_id)
    if isinstance(request, fetch.FetchRequest | fetch_snapshot.FetchSnapshotRequest):
        return int(request.replica_id)
    partition = metadata_partition(request)
    return (
        NO_NODE
        if partition is None
        else int(getattr(partition, "replica_id", getattr(partition, "leader_id", NO_NODE)))
    )


# Requests


def vote_request(
    cluster_id: str, me: ReplicaKey, voter: ReplicaKey, epoch: int, log: LogShape, *, pre_vote: bool
) -> Message:
    partition = vote.RequestPartitionData(
        replica_epoch=epoch,
        replica_id=me.id,
        replica_directory_id=me.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=log.epoch,
        last_offset=log.end,
        pre_vote=pre_vote,
    )
    return vote.VoteRequest(cluster_id, voter.id, [vote.RequestTopicData(METADATA_TOPIC, [partition])])


def begin_request(
    cluster_id: str, leader_id: int, voter: ReplicaKey, epoch: int, endpoints: Iterable[Endpoint]
) -> Message:
    partition = begin.RequestPartitionData(
        voter_directory_id=voter.directory_id, leader_id=leader_id, leader_epoch=epoch
    )
    leader_endpoints = [begin.LeaderEndpoint(each.name, each.host, each.port) for each in endpoints]
    topics = [begin.RequestTopicData(METADATA_TOPIC, [partition])]
    return begin.BeginQuorumEpochRequest(cluster_id, voter.id, topics, leader_endpoints)


def end_request(
    cluster_id: str, leader_id: int, epoch: int, successors: Sequence[ReplicaKey], endpoints: Iterable[Endpoint]
) -> Message:
    partition = end.RequestPartitionData(
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_successors=[key.id for key in successors],
        preferred_candidates=[end.ReplicaInfo(*key) for key in successors],
    )
    leader_endpoints = [begin.LeaderEndpoint(each.name, each.host, each.port) for each in endpoints]
    return end.EndQuorumEpochRequest(cluster_id, [end.RequestTopicData(METADATA_TOPIC, [partition])], leader_endpoints)


def fetch_request(
    cluster_id: str, me: ReplicaKey, epoch: int, log: LogShape, high_watermark: int, max_wait_ms: int, max_bytes: int
) -> Message:
    partition = fetch.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=log.end,
        last_fetched_epoch=log.epoch,
        log_start_offset=log.start,
        replica_directory_id=me.directory_id,
        high_watermark=high_watermark,
    )
    topics = [fetch.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])]
    return fetch.FetchRequest(
        cluster_id,
        replica_state=fetch.ReplicaState(me.id, -1),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=topics,
    )


def snapshot_request(
    cluster_id: str, me: ReplicaKey, epoch: int, snapshot: SnapshotId, position: int, max_bytes: int
) -> Message:
    partition = fetch_snapshot.RequestPartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot.SnapshotId(*snapshot),
        position=position,
        replica_directory_id=me.directory_id,
    )
    topics = [fetch_snapshot.RequestTopicSnapshot(METADATA_TOPIC, [partition])]
    return fetch_snapshot.FetchSnapshotRequest(cluster_id, me.id, max_bytes, topics)


# Responses


class ResponseBuilder:
    """A builder of responses. Every response names the known leader, its epoch and its address."""

    def __init__(self, epoch: int, leader_id: int | None, endpoints: Sequence[Endpoint]) -> None:
        self.epoch = epoch
        self.leader_id = NO_NODE if leader_id is None else leader_id
        self.endpoints = [(self.leader_id, each.host, each.port) for each in endpoints[:1]]

    def vote_response(self, code: int, *, granted: bool) -> Message:
        partition = vote.PartitionData(0, code, self.leader_id, self.epoch, granted)
        endpoints = [vote.NodeEndpoint(*each) for each in self.endpoints]
        return vote.VoteResponse(0, [vote.TopicData(METADATA_TOPIC, [partition])], endpoints)

    def begin_response(self, code: int) -> Message:
        return begin.BeginQuorumEpochResponse(0, self._topics(code), self._endpoints())

    def end_response(self, code: int) -> Message:
        return end.EndQuorumEpochResponse(0, self._topics(code), self._endpoints())

    def fetch_response(
        self,
        code: int,
        high_watermark: int = -1,
        log_start: int = -1,
        diverging: tuple[int, int] | None = None,
        snapshot: SnapshotId | None = None,
    ) -> Message:
        partition = fetch.PartitionData(
            error_code=code,
            high_watermark=high_watermark,
            log_start_offset=log_start,
            diverging_epoch=fetch.EpochEndOffset(*diverging) if diverging else None,
            current_leader=fetch.LeaderIdAndEpoch(self.leader_id, self.epoch),
            snapshot_id=fetch.SnapshotId(*snapshot) if snapshot else None,
            records=b"",
        )
        topics = [fetch.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])]
        return fetch.FetchResponse(
            responses=topics, node_endpoints=[fetch.NodeEndpoint(*each) for each in self.endpoints]
        )

    def snapshot_response(self, code: int, snapshot: SnapshotId, position: int) -> Message:
        """Return a response without the bytes of the snapshot; the driver adds them."""
        partition = fetch_snapshot.PartitionSnapshot(
            error_code=code,
            snapshot_id=fetch_snapshot.SnapshotId(*snapshot),
            current_leader=fetch_snapshot.LeaderIdAndEpoch(self.leader_id, self.epoch),
            position=position,
        )
        endpoints = [fetch_snapshot.NodeEndpoint(*each) for each in self.endpoints]
        topics = [fetch_snapshot.TopicSnapshot(METADATA_TOPIC, [partition])]
        return fetch_snapshot.FetchSnapshotResponse(topics=topics, node_endpoints=endpoints)

    def _topics(self, code: int) -> list[TopicData]:
        return [TopicData(METADATA_TOPIC, [PartitionData(0, code, self.leader_id, self.epoch)])]

    def _endpoints(self) -> list[NodeEndpoint]:
        return [NodeEndpoint(*each) for each in self.endpoints]


def error_response(request: Message, code: int) -> Message:
    """Return a response with a top-level error and no partition."""
    match request:
        case vote.VoteRequest():
            return vote.VoteResponse(code)
        case begin.BeginQuorumEpochRequest():
            return begin.BeginQuorumEpochResponse(code)
        case end.EndQuorumEpochRequest():
            return end.EndQuorumEpochResponse(code)
        case fetch_snapshot.FetchSnapshotRequest():
            return fetch_snapshot.FetchSnapshotResponse(error_code=code)
    return fetch.FetchResponse(error_code=code)
