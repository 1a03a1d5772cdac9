"""Descriptions of the quorum: a leader returns all, another replica the leader, a controller the controllers."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.described import CONTROLLERS, describe_cluster, describe_quorum
from ottla.coordination.quorum.events import RequestReceived, SendRequest, Tick
from ottla.coordination.quorum.log_shape import LogShape
from ottla.coordination.quorum.observer import METADATA_TOPIC
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import ElectionState
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.coordination.quorum.voters_record import Endpoint, KRaftVersionFeature, Voter
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from tests.coordination.quorum.test_raft import FIRST, ME, OTHER, THIRD, VOTERS, fetches, leading, replica

WALL_MS = 1_700_000_000_000
FOURTH = ReplicaKey(4, UUID(int=4))


def quorum_request(*places: tuple[str, int]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        [RequestTopicData(topic, [RequestPartitionData(index)]) for topic, index in places or [(METADATA_TOPIC, 0)]]
    )


def describe(raft: Raft) -> PartitionData:
    (topic,) = describe_quorum(raft, quorum_request(), 2, WALL_MS).topics
    (partition,) = topic.partitions
    assert (topic.topic_name, partition.partition_index) == (METADATA_TOPIC, 0)
    return partition


def test_a_leader_describes_the_progress_and_last_fetch_of_each_replica() -> None:
    raft = leading()
    raft.step(RequestReceived(1, fetches()), 9.1, 0.0)
    raft.step(RequestReceived(2, fetches(LogShape(0, 0, ()), committed=0, who=FOURTH)), 9.25, 0.0)
    found = describe(raft)
    assert (found.error_code, found.leader_id, found.leader_epoch, found.high_watermark) == (0, 1, 1, 1)
    assert found.current_voters == [
        ReplicaState(1, ME.directory_id, 1, WALL_MS, WALL_MS),
        ReplicaState(2, OTHER.directory_id, 1, WALL_MS - 150, WALL_MS - 150),
        ReplicaState(3, THIRD.directory_id, -1, -1, -1),
    ]
    assert found.observers == [ReplicaState(4, FOURTH.directory_id, 0, WALL_MS, -1)]


def test_a_leader_that_removed_itself_is_an_observer() -> None:
    raft = leading()
    raft.log = FIRST._replace(voters=VOTERS.without(1))
    found = describe(raft)
    assert [each.replica_id for each in found.current_voters] == [2, 3]
    assert [each.replica_id for each in found.observers] == [1]


def test_a_replica_that_does_not_lead_names_the_leader() -> None:
    raft = replica()
    found = describe(raft)
    assert (found.error_code, found.leader_id, found.leader_epoch) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 3)
    assert found.error_message == "node 1 does not lead the quorum, no node is known to in epoch 3"
    raft.step(RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])), 0.1, 0.0)
    found = describe(raft)
    assert (found.error_code, found.leader_id, found.leader_epoch) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2, 4)
    assert found.error_message == "node 1 does not lead the quorum, node 2 does in epoch 4"
    assert (found.current_voters, found.observers) == ((), ())


def test_only_the_metadata_partition_has_a_quorum() -> None:
    response = describe_quorum(leading(), quorum_request((METADATA_TOPIC, 1), ("flights", 0)), 2, WALL_MS)
    assert [each.error_code for topic in response.topics for each in topic.partitions] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ] * 2
    assert response.nodes == ()


def placed(*ids: int) -> VoterSet:
    """The voters with known endpoints, except for the last."""
    return VoterSet(
        Voter(
            id_,
            UUID(int=id_),
            [Endpoint("CONTROLLER", f"h{id_}", 9090 + id_)] if id_ != ids[-1] else [],
            KRaftVersionFeature(0, 1),
        )
        for id_ in ids
    )


def alone(voters: VoterSet) -> Raft:
    return Raft(ME, "cluster", LogShape(0, 1, ((1, 0),), 1, voters=voters), ElectionState(1), QuorumConfig(), 0.0, 0.0)


def test_a_described_partition_includes_the_endpoints_of_all_voters() -> None:
    raft = leading()
    raft.log = FIRST._replace(voters=placed(2, 1, 3))
    response = describe_quorum(raft, quorum_request(("flights", 0), (METADATA_TOPIC, 0)), 2, WALL_MS)
    nodes = [(each.node_id, [(one.name, one.host, one.port) for one in each.listeners]) for each in response.nodes]
    assert nodes == [(1, [("CONTROLLER", "h1", 9091)]), (2, [("CONTROLLER", "h2", 9092)]), (3, [])]
    assert describe_quorum(replica(), quorum_request(), 2, WALL_MS).nodes == ()


def test_a_controller_lists_controllers_voters_first_and_registered_ones() -> None:
    raft = alone(placed(2, 1, 3))
    registered = {1: ("elsewhere", 1), 4: ("h4", 9094), 3: ("h3", 9093)}
    found = describe_cluster(raft, DescribeClusterRequest(endpoint_type=CONTROLLERS), registered)
    assert (found.error_code, found.cluster_id, found.controller_id, found.endpoint_type) == (0, "cluster", -1, 2)
    assert [(each.broker_id, each.host, each.port) for each in found.brokers] == [
        (1, "h1", 9091),
        (2, "h2", 9092),
        (3, "h3", 9093),
        (4, "h4", 9094),
    ]
    raft.step(RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])), 0.1, 0.0)
    assert describe_cluster(raft, DescribeClusterRequest(endpoint_type=CONTROLLERS)).controller_id == 2


@pytest.mark.parametrize("kind", [0, 1, 3])
def test_a_broker_request_to_a_controller_is_rejected(kind: int) -> None:
    found = describe_cluster(replica(), DescribeClusterRequest(endpoint_type=kind))
    assert found.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert "bootstrap controllers" in (found.error_message or "")


def test_responses_contain_the_leaders_endpoint_from_the_voters_or_the_leader() -> None:
    raft = alone(placed(1, 2, 3))
    assert (raft._responses.leader_id, raft._responses.endpoints) == (-1, [])
    raft.step(RequestReceived(1, wire.begin_request("cluster", 2, ME, 4, [])), 0.1, 0.0)
    assert (raft._responses.epoch, raft._responses.endpoints) == (4, [(2, "h2", 9092)])
    raft.step(
        RequestReceived(2, wire.begin_request("cluster", 3, ME, 5, [Endpoint("CONTROLLER", "there", 9)])), 0.2, 0.0
    )
    assert (raft._responses.epoch, raft._responses.endpoints) == (5, [(3, "there", 9)])


def test_a_restarted_leader_tells_the_voters_that_it_resigned() -> None:
    raft = replica(ElectionState(3, ME.id))
    done = raft.step(Tick(), 0.1, 0.0)
    told_to = {wish.to: wish.request for wish in done if isinstance(wish, SendRequest)}
    assert set(told_to) == {2, 3}
    assert all(isinstance(request, EndQuorumEpochRequest) for request in told_to.values())
