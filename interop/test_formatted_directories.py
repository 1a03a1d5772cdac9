"""Format a new cluster with our tool for a node of Kafka's, and with Kafka's tool for a node of ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from interop.kafka_places import BROKER_PORT, KafkaPlace
from ottla import Admin
from ottla.cli.storage.storage import storage
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for
from tests.broker.cluster_nodes import BrokerPlace
from tests.broker.quorum_nodes import CLUSTER, Place, new_hosts

TOLD = (
    *("--standalone", "--release-version", "4.1", "--feature", "eligible.leader.replicas.version=0"),
    *("--add-scram", "SCRAM-SHA-256=[name=alice,password=secret]"),
    *("--add-scram", "SCRAM-SHA-512=[name=bob,iterations=8192,password=hush]"),
)
USERS = {"alice": {"SCRAM-SHA-256": 4096}, "bob": {"SCRAM-SHA-512": 8192}}
LEVELS = {"metadata.version": 27, "group.version": 1, "transaction.version": 2}


@pytest.fixture(autouse=True, scope="module")
def kafka_is_there() -> None:
    rival.fetch()


def assert_begun_so(address: str) -> None:
    """Check the users and the feature levels."""
    with Admin(bootstrap_servers=address) as admin:
        assert admin.describe_user_scram_credentials() == USERS
        levels = admin.describe_features().finalized_features
    assert {name: levels[name].max_version_level for name in LEVELS} == LEVELS
    assert "eligible.leader.replicas.version" not in levels


def format_by_ours(place: Place, how: Sequence[str]) -> None:
    made = CliRunner().invoke(storage, ["format", "-t", CLUSTER, "-c", str(place.file), *how])
    assert made.output == f"formatted {place.data} for node {place.node_id} of cluster {CLUSTER}\n"


def test_kafkas_node_starts_with_the_users_and_features_of_our_tool(tmp_path: Path) -> None:
    (host,) = new_hosts(1)
    kafka = KafkaPlace(tmp_path, 1, host)
    format_by_ours(kafka, TOLD)
    kafka.is_broker_too(host)
    rival.run(rival.java("kafka.tools.StorageTool", "info", "-c", str(kafka.file)))
    try:
        kafka.start()
        kafka.wait_until_started()
        assert_begun_so(f"{host}:{BROKER_PORT}")
    finally:
        kafka.kill()


def test_our_nodes_start_with_the_users_and_features_of_kafkas_tool(tmp_path: Path) -> None:
    hosts = new_hosts(2)
    KafkaPlace(tmp_path, 1, hosts[0]).format_as(*TOLD)
    controller = Place(tmp_path, 1, hosts[0])
    broker = BrokerPlace(tmp_path, 2, hosts[1], [controller])
    try:
        controller.start()
        broker.start()
        wait_for(lambda: controller.leads(), "the controller leads")
        assert_begun_so(broker.address)
    finally:
        broker.kill()
        controller.kill()
