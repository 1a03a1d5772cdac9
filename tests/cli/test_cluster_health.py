"""A stopped node of three, as `ottla cluster status`, `ottla doctor` and the console report it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from ottla import Admin, Cluster, ConfigResource, NewTopic
from ottla.cli.main import main
from ottla.console.cluster import ConsoleCluster as ConsoleCluster
from ottla.errors import KafkaTimeoutError
from tests.broker.in_sync import in_sync
from tests.patience import eventually

pytestmark = pytest.mark.xdist_group("cluster health")


@pytest.fixture(scope="module")
def without_one() -> Iterator[tuple[str, int]]:
    """A cluster of three nodes one of which was stopped, and the id of that node; it did not lead the quorum."""
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("orders", 2, 3)])
        eventually(lambda: "orders" in admin.list_topics() and in_sync(admin, "orders") == {1, 2, 3})
        leader = admin.describe_metadata_quorum().leader_id
        stopped = next(node for node in cluster.nodes if node != leader)
        cluster.stop(stopped)
        with closing(ConsoleCluster(cluster.client_settings())) as console:
            eventually(lambda: {each["role"] for each in console.overview()["away"]} == {"broker", "voter"})
        yield cluster.bootstrap_servers, stopped


def test_the_status_names_the_unavailable_broker_and_voter_and_the_effect_of_the_next_failure(
    without_one: tuple[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    address, stopped = without_one
    assert main(["cluster", "status", "--bootstrap-server", address]) == 0
    out = capsys.readouterr().out
    assert "all well" not in out
    assert f"broker {stopped} (127.0.0.1:" in out
    assert f"voter {stopped} (127.0.0.1:" in out
    assert "is away since 20" in out
    assert "2 partitions would be below min.insync.replicas and reject acks=all (orders-0, orders-1)" in out
    assert "if one more voter failed, the quorum would lose its majority (2 of 3 run, 2 are needed)" in out


def test_the_status_as_json_has_the_same_facts(
    without_one: tuple[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    address, stopped = without_one
    assert main(["cluster", "status", "--json", "--bootstrap-server", address]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["role"], each["node_id"], each["since_ms"] > 0) for each in found["away"]] == [
        ("broker", stopped, True),
        ("voter", stopped, True),
    ]
    assert found["voters"] == {"voters": 3, "running": 2, "majority": 2}
    assert found["next_failure"]["below_min_isr"] == ["orders-0", "orders-1"]


def test_the_doctor_reports_a_problem_for_each_role_that_is_away(
    without_one: tuple[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    address, stopped = without_one
    assert main(["doctor", "--json", "--bootstrap-server", address]) == 1
    nodes = [each for each in json.loads(capsys.readouterr().out) if each["check"] == "nodes"]
    assert [(each["level"], each["remedy"]) for each in nodes] == [
        ("problem", f"start it, or if it is gone for good: ottla cluster unregister {stopped}"),
        ("problem", f"start it, or if it is gone for good: ottla cluster remove-controller {stopped}"),
    ]
    assert all("would lose its majority" in each["seen"] for each in nodes)


def test_without_a_majority_the_status_names_the_unreachable_brokers_and_other_calls_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Cluster() as cluster:
        with Admin(cluster.client_settings()) as admin:
            leader = admin.describe_metadata_quorum().leader_id
        left = next(node for node in cluster.nodes if node != leader)
        others = {node: cluster.addresses[node] for node in cluster.nodes if node != left}
        for node in others:
            cluster.kill(node)
        address = cluster.addresses[left]
        at = ("--bootstrap-server", address, "--set", "default.api.timeout.ms=1000")
        assert main(["cluster", "status", *at]) == 0
        out = capsys.readouterr().out
        assert main(["cluster", "quorum", *at]) == 1
        err = capsys.readouterr().err
        with Admin(bootstrap_servers=address) as admin:
            with pytest.raises(
                KafkaTimeoutError, match=rf"no response to DescribeQuorum from {address} \(node {left}\)"
            ):
                admin.describe_metadata_quorum(timeout=0.5)
            resource = ConfigResource("broker", str(left))
            assert admin.describe_configs([resource], timeout=5)[resource]["node.id"].value == str(left)
    assert "all well" not in out
    assert "any one broker may fail" not in out
    for said in (out, err):
        assert "no active controller answers: the quorum has probably lost its majority" in said
        for node, place in others.items():
            assert f"broker {node} ({place}) cannot be reached: connection refused" in said
