"""The quorum that keeps the metadata: described, and its voters changed; brokers that are gone struck off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, any_broker, controller
from ottla.client.admin.quorum import QuorumInfo, QuorumReplicaState, RaftVoterEndpoint, directory_id_of, directory_text
from ottla.client.interface.arguments import LAST_PARTITION, checked_broker, checked_list, checked_text, checked_whole
from ottla.errors import ErrorCode, error_for
from ottla.model import Node
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest

CLUSTER_METADATA = "__cluster_metadata"
EXAMPLE = "[RaftVoterEndpoint('CONTROLLER', 'host', 9093)]"
LAST_PORT = 2**16 - 1


class QuorumCalls:
    """What an admin does with the quorum; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_metadata_quorum(self, timeout: float | None) -> QuorumInfo:
        request = DescribeQuorumRequest([RequestTopicData(CLUSTER_METADATA, [RequestPartitionData(0)])])
        told = self._driver.ask_one(any_broker, request, "the quorum", timeout)
        found = next((each for topic in told.topics for each in topic.partitions), None)
        if found is None or found.error_code:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if found is None else found.error_code
            raise error_for(code, (found and found.error_message) or "the quorum was not told")
        nodes = {each.node_id: tuple(map(endpoint_of, each.listeners)) for each in told.nodes}
        voters, observers = (tuple(map(state_of, each)) for each in (found.current_voters, found.observers))
        return QuorumInfo(found.leader_id, found.leader_epoch, found.high_watermark, voters, observers, nodes)

    def fenced_brokers(self, timeout: float | None) -> tuple[Node, ...]:
        """Return the brokers that are registered and fenced."""
        request = DescribeClusterRequest(include_fenced_brokers=True)
        answer = self._driver.ask_one(any_broker, request, "the brokers that are fenced", timeout)
        return tuple(Node(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers if each.is_fenced)

    def add_raft_voter(
        self, voter_id: int, voter_directory_id: str, endpoints: Iterable[RaftVoterEndpoint], timeout: float | None
    ) -> None:
        voter, directory = checked_voter(voter_id), directory_id_of(voter_directory_id)
        listeners = [checked_endpoint(each) for each in checked_list("endpoints", endpoints, EXAMPLE)]
        if not listeners:
            raise ValueError(f"endpoints = []: say where the voter is reached, such as {EXAMPLE}")
        request = AddRaftVoterRequest(None, self._driver.timeout_ms(timeout), voter, directory, listeners)
        self._driver.ask_one(controller, request, f"voter {voter}", timeout)

    def remove_raft_voter(self, voter_id: int, voter_directory_id: str, timeout: float | None) -> None:
        voter = checked_voter(voter_id)
        request = RemoveRaftVoterRequest(None, voter, directory_id_of(voter_directory_id))
        self._driver.ask_one(controller, request, f"voter {voter}", timeout)

    def unregister_broker(self, broker_id: int, timeout: float | None) -> None:
        broker = checked_broker(broker_id)
        self._driver.ask_one(controller, UnregisterBrokerRequest(broker), f"broker {broker}", timeout)


def checked_voter(voter_id: Any) -> int:
    return checked_whole("voter_id", voter_id, "the number of a controller", LAST_PARTITION)


def checked_endpoint(endpoint: Any) -> Listener:
    """Where a voter is reached, as it travels."""
    if not isinstance(endpoint, RaftVoterEndpoint):
        raise TypeError(f"{endpoint!r} is no endpoint of a voter: write {EXAMPLE}")
    name, host = (checked_text("endpoints", each, "CONTROLLER") for each in (endpoint.listener, endpoint.host))
    return Listener(name, host, checked_whole("port", endpoint.port, "a port", LAST_PORT))


def endpoint_of(told: Any) -> RaftVoterEndpoint:
    return RaftVoterEndpoint(told.name, told.host, told.port)


def state_of(told: ReplicaState) -> QuorumReplicaState:
    """One voter or observer."""
    fetched, caught_up = (None if at < 0 else at for at in (told.last_fetch_timestamp, told.last_caught_up_timestamp))
    return QuorumReplicaState(
        told.replica_id, directory_text(told.replica_directory_id), told.log_end_offset, fetched, caught_up
    )
