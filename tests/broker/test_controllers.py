"""Controllers in processes and threads: they elect a leader, answer clients, and add voters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.controller.formatting import format_without_voters
from ottla.errors import ErrorCode
from ottla.kafka_id import id_of
from ottla.protocol.apis import APIS
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.envelope import EnvelopeRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from ottla.protocol.messages.unregister_controller import UnregisterControllerRequest
from tests.broker.quorum_nodes import CLUSTER, PORT, Place, leader_of, new_hosts, three
from tests.broker.wire import Wire
from tests.patience import eventually
from tests.protocol.codecs import joined


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Place]:
    """A controller that votes alone, in a thread."""
    (host,) = new_hosts(1)
    place = Place(tmp_path, 1, host)
    place.format([place.voter])
    with place.serving():
        eventually(place.leads)
        yield place


def test_three_processes_elect_a_leader_and_another_when_it_is_killed(tmp_path: Path) -> None:
    places = three(tmp_path)
    with ExitStack() as undo:
        for place in places:
            undo.callback(place.kill)
            place.start()
        eventually(lambda: leader_of(places))
        first = leader_of(places) or places[0]
        before = first.describe()

        first.kill()
        others = [place for place in places if place is not first]
        eventually(lambda: leader_of(others))
        assert others[0].describe().leader_epoch > before.leader_epoch or before.leader_id != first.node_id

        first.start()
        eventually(lambda: leader_of(places))
        eventually(lambda: {place.log for place in places} == {others[0].log})
        assert len(others[0].log) > 0


def test_an_unregistered_controller_registers_again_if_it_runs(tmp_path: Path) -> None:
    places = three(tmp_path)
    with ExitStack() as undo:
        servers = {place.node_id: undo.enter_context(place.serving()) for place in places}
        eventually(lambda: leader_of(places))
        leader = leader_of(places) or places[0]
        other = next(place for place in places if place is not leader)

        eventually(lambda: unregister(leader, other.node_id) == ErrorCode.NONE)
        eventually(lambda: unregister(leader, other.node_id) == ErrorCode.NONE)
        servers[other.node_id].stop()
        eventually(lambda: unregister(leader, other.node_id) == ErrorCode.CONTROLLER_ID_NOT_REGISTERED)


def unregister(place: Place, controller: int) -> int:
    """Return the error code of an UnregisterController request."""
    with Wire(place.address) as client:
        said: Any = client.ask(UnregisterControllerRequest(controller))
    code: int = said.error_code
    return code


def test_a_clean_stop_transfers_leadership_and_the_next_start_needs_no_recovery(tmp_path: Path) -> None:
    places = three(tmp_path)
    with ExitStack() as undo:
        servers = {place.node_id: undo.enter_context(place.serving()) for place in places}
        eventually(lambda: leader_of(places))
        first = leader_of(places) or places[0]
        servers[first.node_id].stop()
        others = [place for place in places if place is not first]
        eventually(lambda: leader_of(others))
        eventually(lambda: (first.data / ".kafka_cleanshutdown").exists())
        with first.serving():
            eventually(lambda: leader_of(places))


QUORUMS_APIS = {
    "AddRaftVoter", "ApiVersions", "BeginQuorumEpoch", "DescribeCluster", "DescribeQuorum", "EndQuorumEpoch",
    "Fetch", "FetchSnapshot", "RemoveRaftVoter", "SaslAuthenticate", "SaslHandshake", "UpdateRaftVoter", "Vote",
}  # fmt: skip


def test_a_controller_describes_its_apis_and_the_quorum(alone: Place) -> None:
    with Wire(alone.address) as client:
        said: Any = client.ask(ApiVersionsRequest("test", "1"))
        spoken = {APIS[each.api_key].name for each in said.api_keys}
        assert spoken > QUORUMS_APIS | {"BrokerRegistration", "Envelope", "CreateTopics"}
        assert {each.name: each.max_version for each in said.supported_features}["metadata.version"] == 33
        where: Any = client.ask(DescribeClusterRequest(endpoint_type=2))
        assert (where.cluster_id, where.controller_id) == (CLUSTER, 1)
        assert [(each.broker_id, each.port) for each in where.brokers] == [(1, PORT)]
        asked_for_brokers: Any = client.ask(DescribeClusterRequest(endpoint_type=1))
        assert asked_for_brokers.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def test_an_invalid_quorum_request_closes_only_its_connection(alone: Place) -> None:
    for frame in (b"", b"\0", b"GET / HTTP/1.1\r\n", b"\0\x34\0\x02\0\0\0\x01\xff\xff\0garbage"):
        with Wire(alone.address) as client:
            client.send_frame(frame)
            assert client.hung_up()
    with Wire(alone.address) as client:
        client.send(MetadataRequest())
        assert client.hung_up()
    assert alone.leads()


def test_pipelined_requests_are_answered_in_order(alone: Place) -> None:
    with Wire(alone.address) as client:
        request = ApiVersionsRequest("test", "1")
        asked = [client.send(request) for _ in range(500)]
        assert [client.receive(request)[0] for _ in asked] == asked


def test_an_envelope_is_processed_by_the_leader_and_rejected_by_others(alone: Place, tmp_path: Path) -> None:
    (host,) = new_hosts(1)
    other = Place(tmp_path, 2, host, controller_quorum_bootstrap_servers=alone.address)
    format_without_voters(other.config, CLUSTER)
    question = DescribeQuorumRequest([RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])
    letter = EnvelopeRequest(joined(encode_request(question, 2, 7, "a client")), None, b"\x7f\0\0\1")
    with other.serving(), Wire(alone.address) as leader, Wire(other.address) as follower:
        opened = leader.ask(letter)
        answer: Any = decode_response(DescribeQuorumResponse, 2, memoryview(opened.response_data))[1]
        assert (opened.error_code, answer.topics[0].partitions[0].leader_id) == (0, 1)
        assert follower.ask(letter).error_code == ErrorCode.NOT_CONTROLLER


def test_an_automatically_joining_controller_becomes_a_voter_and_is_listed(alone: Place, tmp_path: Path) -> None:
    (host,) = new_hosts(1)
    newcomer = Place(tmp_path, 2, host, controller_quorum_bootstrap_servers=alone.address)
    newcomer.settings["controller.quorum.auto.join.enable"] = "true"
    format_without_voters(newcomer.config, CLUSTER)
    with newcomer.serving():
        eventually(lambda: {each.replica_id for each in alone.describe().current_voters} == {1, 2})
        eventually(lambda: {1, 2} <= registered(alone))


def test_a_controller_with_a_new_address_updates_its_endpoint(tmp_path: Path) -> None:
    before, after = (Place(tmp_path, 1, host) for host in new_hosts(2))
    before.format([before.voter])
    with before.serving():
        eventually(before.leads)
    with after.serving() as server:
        assert server.controller is not None
        raft = server.controller.driver.raft
        eventually(lambda: [each.host for each in raft.voters.endpoints(1)] == [host_of(after)])
        assert registered(after) == {1}


def test_a_controller_describes_configs_and_applies_changes_of_them(alone: Place) -> None:
    everybody = DescribeConfigsRequest([DescribeConfigsResource(4, "")])
    own = DescribeConfigsRequest([DescribeConfigsResource(4, "1", ["node.id"])])
    change = AlterConfigsResource(4, "", [AlterableConfig("log.retention.ms", 0, "60000")])
    with Wire(alone.address) as client:
        (node,) = client.ask(own).results
        assert [(each.name, each.value) for each in node.configs] == [("node.id", "1")]
        (changed,) = client.ask(IncrementalAlterConfigsRequest([change])).responses
        assert changed.error_code == 0, changed.error_message
        eventually(
            lambda: (
                {each.name: each.value for each in client.ask(everybody).results[0].configs}
                == {"log.retention.ms": "60000", "min.insync.replicas": "1"}
            )
        )
        (missing,) = client.ask(DescribeConfigsRequest([DescribeConfigsResource(2, "nowhere")])).results
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_controller_without_an_authorizer_rejects_acl_requests_and_tokens(alone: Place) -> None:
    with Wire(alone.address) as client:
        assert client.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1)).error_code == ErrorCode.SECURITY_DISABLED
        answer = client.ask(CreateDelegationTokenRequest())
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert (answer.token_id, bytes(answer.hmac)) == ("", b"")


def registered(place: Place) -> set[int]:
    """Return the controllers that one of them lists."""
    with Wire(place.address) as client:
        answer = client.ask(DescribeClusterRequest(endpoint_type=2))
    return {each.broker_id for each in answer.brokers}


def host_of(place: Place) -> str:
    return place.address.rpartition(":")[0]


def test_a_controller_becomes_a_voter_once_it_has_the_log_and_can_be_removed(alone: Place, tmp_path: Path) -> None:
    (host,) = new_hosts(1)
    newcomer = Place(tmp_path, 2, host, controller_quorum_bootstrap_servers=alone.address)
    meta = format_without_voters(newcomer.config, CLUSTER)
    directory = id_of(meta.directory_id)
    add = AddRaftVoterRequest(CLUSTER, 30_000, 2, directory, [Listener("CONTROLLER", host, PORT)])
    with newcomer.serving():
        eventually(lambda: [each.replica_id for each in alone.describe().observers] == [2])
        with Wire(alone.address) as client:
            eventually(lambda: client.ask(add).error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER))
            assert {each.replica_id for each in alone.describe().current_voters} == {1, 2}
            eventually(lambda: newcomer.log == alone.log)
            remove = RemoveRaftVoterRequest(CLUSTER, 2, directory)
            eventually(lambda: client.ask(remove).error_code in (ErrorCode.NONE, ErrorCode.VOTER_NOT_FOUND))
        assert [each.replica_id for each in alone.describe().current_voters] == [1]
