"""Settings of a cluster that change at run time, and requests that its controller answers as a single broker does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla import Admin, Cluster
from ottla.client.admin import ClientQuotaEntity
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest
from ottla.protocol.messages.incremental_alter_configs import (
    SET,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.wire import Wire, batch, produce
from tests.patience import eventually

BIG = bytes(200_000)
BROKERS = 4
"""The resource type of brokers; without a name, of all of them."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def wire(cluster: Cluster) -> Iterator[Wire]:
    """A connection to the leader of the only partition of topic `t`."""
    with Wire(cluster.bootstrap_servers.split(",")[0]) as any_broker:
        any_broker.ask(CreateTopicsRequest([CreatableTopic("t", 1, 3)]))
        eventually(lambda: any(each.leader_id >= 0 for each in any_broker.metadata("t").topics[0].partitions))
        found = any_broker.metadata("t")
        leader = found.topics[0].partitions[0].leader_id
        (place,) = [f"{each.host}:{each.port}" for each in found.brokers if each.node_id == leader]
        with Wire(place, "greedy") as wire:
            eventually(lambda: wire.produce("t", b"a").error_code == 0)
            yield wire


def test_a_quota_set_at_run_time_throttles_clients(cluster: Cluster, wire: Wire) -> None:
    greedy = ClientQuotaEntity(client_id="greedy")
    with Admin(cluster.client_settings()) as admin:
        admin.alter_client_quotas({greedy: {"producer_byte_rate": 1e9}})
        eventually(lambda: admin.describe_client_quotas(greedy) != {})
        admin.alter_client_quotas({greedy: {"producer_byte_rate": 100_000.0}})
        eventually(lambda: wire.ask(produce("t", batch([BIG])), 11).throttle_time_ms > 0)
        admin.alter_client_quotas({greedy: {"producer_byte_rate": None}})


def test_a_changed_broker_config_applies_to_existing_topics(wire: Wire) -> None:
    def set_limit(value: str) -> None:
        resource = AlterConfigsResource(BROKERS, "", [AlterableConfig("message.max.bytes", SET, value)])
        (changed,) = wire.ask(IncrementalAlterConfigsRequest([resource])).responses
        assert changed.error_code == 0

    set_limit("100000")
    eventually(lambda: wire.produce("t", BIG).error_code == ErrorCode.MESSAGE_TOO_LARGE)
    set_limit("1000000")
    eventually(lambda: wire.produce("t", BIG).error_code == 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_in_every_version(wire: Wire, version: int) -> None:
    request = DescribeQuorumRequest([RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])
    response = wire.ask(request, version)
    (partition,) = response.topics[0].partitions
    assert [each.replica_id for each in partition.current_voters] == [1, 2, 3]
    assert bool(response.nodes) == (version == 2)


def test_an_election_of_all_partitions_reports_those_that_needed_one(wire: Wire) -> None:
    response = wire.ask(ElectLeadersRequest(1, None))
    assert (response.error_code, response.replica_election_results) == (0, [])


def test_acls_cannot_be_changed_without_an_authorizer(wire: Wire) -> None:
    created = wire.ask(CreateAclsRequest([AclCreation(2, "t", 3, "User:a", "*", 3, 3)])).results
    deleted = wire.ask(DeleteAclsRequest([DeleteAclsFilter(2, None, 3, None, None, 1, 1)])).filter_results
    assert [each.error_code for each in (*created, *deleted)] == [ErrorCode.SECURITY_DISABLED] * 2


def test_a_request_that_adds_more_than_ten_thousand_partitions_in_total_is_rejected(wire: Wire) -> None:
    wire.ask(CreateTopicsRequest([CreatableTopic("other", 1, 1)]))
    wanted = [CreatePartitionsTopic(name, 6_000) for name in ("t", "other")]
    results = wire.ask(CreatePartitionsRequest(wanted, 5000, True), 3).results
    assert [each.error_code for each in results] == [ErrorCode.POLICY_VIOLATION] * 2
