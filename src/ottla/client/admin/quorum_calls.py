"""Describe the metadata quorum, change its voters, and unregister brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, lookup_any_broker, lookup_controller
from ottla.client.admin.quorum import (
    QuorumInfo,
    QuorumReplicaState,
    RaftVoterEndpoint,
    format_directory_id,
    parse_directory_id,
)
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
from ottla.protocol.messages.unregister_controller import UnregisterControllerRequest

CLUSTER_METADATA = "__cluster_metadata"
EXAMPLE = "[RaftVoterEndpoint('CONTROLLER', 'host', 9093)]"
LAST_PORT = 2**16 - 1


class QuorumCalls:
    """Implements the quorum methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_metadata_quorum(self, timeout: float | None) -> QuorumInfo:
        request = DescribeQuorumRequest([RequestTopicData(CLUSTER_METADATA, [RequestPartitionData(0)])])
        response = self._driver.send_one(lookup_any_broker, request, "the quorum", timeout)
        found = next((each for topic in response.topics for each in topic.partitions), None)
        if found is None or found.error_code:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if found is None else found.error_code
            raise error_for(code, (found and found.error_message) or "the response does not contain the quorum")
        nodes = {each.node_id: tuple(map(parse_endpoint, each.listeners)) for each in response.nodes}
        voters, observers = (tuple(map(parse_replica_state, each)) for each in (found.current_voters, found.observers))
        return QuorumInfo(found.leader_id, found.leader_epoch, found.high_watermark, voters, observers, nodes)

    def find_fenced_brokers(self, timeout: float | None) -> tuple[Node, ...]:
        """Return the brokers that are registered and fenced."""
        request = DescribeClusterRequest(include_fenced_brokers=True)
        response = self._driver.send_one(lookup_any_broker, request, "the fenced brokers", timeout)
        return tuple(
            Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers if each.is_fenced
        )

    def add_raft_voter(
        self, voter_id: int, voter_directory_id: str, endpoints: Iterable[RaftVoterEndpoint], timeout: float | None
    ) -> None:
        voter, directory = checked_controller("voter_id", voter_id), parse_directory_id(voter_directory_id)
        listeners = [checked_endpoint(each) for each in checked_list("endpoints", endpoints, EXAMPLE)]
        if not listeners:
            raise ValueError(f"endpoints = []: give an address of the voter, such as {EXAMPLE}")
        request = AddRaftVoterRequest(None, self._driver.timeout_ms(timeout), voter, directory, listeners)
        self._driver.send_one(lookup_controller, request, f"voter {voter}", timeout)

    def remove_raft_voter(self, voter_id: int, voter_directory_id: str, timeout: float | None) -> None:
        voter = checked_controller("voter_id", voter_id)
        request = RemoveRaftVoterRequest(None, voter, parse_directory_id(voter_directory_id))
        self._driver.send_one(lookup_controller, request, f"voter {voter}", timeout)

    def unregister_broker(self, broker_id: int, timeout: float | None) -> None:
        broker = checked_broker(broker_id)
        self._driver.send_one(lookup_controller, UnregisterBrokerRequest(broker), f"broker {broker}", timeout)

    def unregister_controller(self, controller_id: int, timeout: float | None) -> None:
        controller = checked_controller("controller_id", controller_id)
        request = UnregisterControllerRequest(controller)
        self._driver.send_one(lookup_controller, request, f"controller {controller}", timeout)


def checked_controller(name: str, controller_id: Any) -> int:
    return checked_whole(name, controller_id, "the number of a controller", LAST_PARTITION)


def checked_endpoint(endpoint: Any) -> Listener:
    """Return an endpoint in the form of the protocol."""
    if not isinstance(endpoint, RaftVoterEndpoint):
        raise TypeError(f"{endpoint!r} is not a RaftVoterEndpoint: write {EXAMPLE}")
    name, host = (checked_text("endpoints", each, "CONTROLLER") for each in (endpoint.listener, endpoint.host))
    return Listener(name, host, checked_whole("port", endpoint.port, "a port", LAST_PORT))


def parse_endpoint(response: Any) -> RaftVoterEndpoint:
    return RaftVoterEndpoint(response.name, response.host, response.port)


def parse_replica_state(response: ReplicaState) -> QuorumReplicaState:
    """Return one voter or observer."""
    fetched, caught_up = (
        None if at < 0 else at for at in (response.last_fetch_timestamp, response.last_caught_up_timestamp)
    )
    return QuorumReplicaState(
        response.replica_id,
        format_directory_id(response.replica_directory_id),
        response.log_end_offset,
        fetched,
        caught_up,
    )
