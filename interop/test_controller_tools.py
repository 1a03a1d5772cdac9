"""Kafka's own tools at a controller of ours, by `--bootstrap-controller`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.kafka_tools import Tools
from rivals import apache_kafka as rival
from tests.broker.quorum_nodes import CLUSTER, Place, new_hosts
from tests.patience import eventually

CONFIGS = "org.apache.kafka.tools.ConfigCommand"
TOOLS = "org.apache.kafka.tools"


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Place]:
    (host,) = new_hosts(1)
    place = Place(tmp_path, 1, host)
    place.format([place.voter])
    with place.serving():
        eventually(place.leads)
        yield place


def test_kafkas_tools_read_and_change_the_cluster_through_a_controller(controller: Place) -> None:
    rival.fetch()
    at = "--bootstrap-controller", controller.address
    with Tools() as tools:
        change = "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "log.retention.ms=60000"
        assert "Completed updating default config for brokers" in tools.run(CONFIGS, *at, *change).text
        seen = tools.run(CONFIGS, *at, "--entity-type", "brokers", "--entity-default", "--describe").text
        assert "log.retention.ms=60000" in seen
        assert f"Cluster ID: {CLUSTER}" in tools.run(f"{TOOLS}.ClusterTool", "cluster-id", *at).text
        listed = tools.run(f"{TOOLS}.ClusterTool", "list-endpoints", *at).text
        assert controller.address.rpartition(":")[0] in listed
        status = tools.run(f"{TOOLS}.MetadataQuorumCommand", *at, "describe", "--status").text
        assert "LeaderId:" in status
        features = tools.run(f"{TOOLS}.FeatureCommand", *at, "describe").text
        assert "Feature: metadata.version" in features


def test_elr_is_disabled_and_enabled_by_kafkas_tool(controller: Place) -> None:
    rival.fetch()
    at, feature = ("--bootstrap-controller", controller.address), "eligible.leader.replicas.version"
    with Tools() as tools:

        def level() -> str:
            reported = tools.run(f"{TOOLS}.FeatureCommand", *at, "describe").text
            (line,) = (each for each in reported.splitlines() if feature in each)
            return line.partition("FinalizedVersionLevel: ")[2].split()[0]

        def change(verb: str, number: int) -> str:
            return tools.run(f"{TOOLS}.FeatureCommand", *at, verb, "--feature", f"{feature}={number}").text

        assert level() == "1"
        assert f"{feature} was downgraded to 0." in change("downgrade", 0)
        assert level() == "0"
        assert f"{feature} was upgraded to 1." in change("upgrade", 1)
        assert level() == "1"
        brokers = "--entity-type", "brokers", "--entity-default"
        assert "min.insync.replicas=1" in tools.run(CONFIGS, *at, *brokers, "--describe").text
        refused = tools.run(CONFIGS, *at, *brokers, "--alter", "--delete-config", "min.insync.replicas").text
        assert "min.insync.replicas is one number for all brokers" in refused
