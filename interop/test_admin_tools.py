"""Kafka's admin tools work and print the same at our broker and at Apache Kafka."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.kafka_tools import ToolResult, Tools, dump
from ottla import Admin, Broker, NewTopic, Producer
from ottla.client.admin import TopicPartitionReplica
from ottla.errors import ErrorCode
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from rivals import apache_kafka as rival
from rivals.kafka_cluster import PATIENCE, wait_for
from tests.broker.wire import Wire

CONFIGS = "org.apache.kafka.tools.ConfigCommand"
ITS_OWN = (
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r"^\d{4}-\d\d-\d\dT\S+", "MOMENT"),
    (r"adminclient-\d+", "adminclient"),
    # Apache Kafka's list of eligible leader replicas writes a default config for all topics.
    (r"min\.insync\.replicas=1,", ""),
    (r"^\tat .*\n?", ""),
    (r'"log_dirs":\["[^"]*"\]', '"log_dirs":[FOLDER]'),
    # An embedded broker has other defaults than a standalone one.
    (r"STATIC_BROKER_CONFIG:group\.consumer\.[^,}]*, ", ""),
)
"""Patterns of the output that differ between any two brokers."""
QUESTIONS = {"--describe", "--list"}
"""Options of commands that change nothing."""


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


class Both:
    """Runs a tool at both brokers."""

    def __init__(self, tools: Tools, *addresses: str) -> None:
        self.tools = tools
        self.addresses = addresses

    def run_tool(self, name: str, *words: object) -> str:
        """Run the tool at both brokers, assert that both succeed with the same output, and return it.

        Apache Kafka's broker applies a change shortly after the response, so a read-only command is retried while the
        outputs differ.
        """
        texts = self.run_tool_at_each(name, *words)
        deadline = time.monotonic() + PATIENCE
        while texts[0] != texts[1] and QUESTIONS.intersection(words) and time.monotonic() < deadline:
            texts = self.run_tool_at_each(name, *words)
        assert texts[0] == texts[1]
        return texts[0]

    def run_tool_at_each(self, name: str, *words: object) -> list[str]:
        """Run the tool at each broker and assert success.

        The outputs may differ, because other tests share the brokers.
        """
        said = [self.tools.run(name, *words, "--bootstrap-server", address) for address in self.addresses]
        texts = [without_volatile_parts(text) for text, _ in said]
        assert [status for _, status in said] == [0, 0], texts
        return texts

    def run_rejected(self, name: str, *words: object) -> list[str]:
        """Run the tool at both brokers, assert that both reject the command, and return the output."""
        said = [self.tools.run(name, *words, "--bootstrap-server", address) for address in self.addresses]
        assert all(status for _, status in said), said
        return [without_volatile_parts(text) for text, _ in said]


def without_volatile_parts(text: str) -> str:
    """Remove the parts of the text that differ between brokers."""
    for pattern, general in ITS_OWN:
        text = re.sub(pattern, general, text, flags=re.MULTILINE)
    return text


@pytest.fixture
def both(tools: Tools, ottla_broker: str, apache_kafka: str) -> Both:
    return Both(tools, ottla_broker, apache_kafka)


def test_topics_are_created_described_extended_and_deleted(both: Both) -> None:
    named = ("--topic", "life")
    assert "Created topic life." in both.run_tool(
        "TopicCommand", "--create", *named, "--partitions", 3, "--config", "retention.ms=3600000"
    )
    output = both.run_tool("TopicCommand", "--describe", *named)
    assert "PartitionCount: 3\tReplicationFactor: 1\tConfigs: retention.ms=3600000" in output
    ours, theirs = both.run_rejected("TopicCommand", "--create", *named)
    assert ours == theirs
    both.run_tool("TopicCommand", "--alter", *named, "--partitions", 5)
    assert "PartitionCount: 5" in both.run_tool("TopicCommand", "--describe", *named)
    for refusal in both.run_rejected("TopicCommand", "--alter", *named, "--partitions", 2):
        assert "InvalidPartitionsException: " in refusal  # the rest is the broker's own text
        assert refusal.startswith("Error while executing topic command : ")
    both.run_tool("TopicCommand", "--delete", *named)
    ours, theirs = both.run_rejected("TopicCommand", "--describe", *named)
    assert ours == theirs


def test_topic_configs_are_changed_and_described(both: Both) -> None:
    topic = ("--entity-type", "topics", "--entity-name", "told-configs")
    both.run_tool("TopicCommand", "--create", "--topic", "told-configs")
    both.run_tool(
        CONFIGS, "--alter", *topic, "--add-config", "cleanup.policy=[compact,delete],max.message.bytes=2000000"
    )
    assert "cleanup.policy=compact,delete" in both.run_tool(CONFIGS, "--describe", *topic)
    both.run_tool(CONFIGS, "--alter", *topic, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in both.run_tool(CONFIGS, "--describe", *topic)
    ours, theirs = both.run_rejected(CONFIGS, "--alter", *topic, "--add-config", "bogus=1")
    assert "InvalidConfigurationException" in ours
    assert "InvalidConfigurationException" in theirs
    for refusal in both.run_rejected(CONFIGS, "--alter", *topic, "--add-config", "remote.storage.enable=true"):
        assert "InvalidConfigurationException" in refusal


def test_broker_configs_are_changed_and_described(both: Both) -> None:
    one, every = ("--entity-type", "brokers", "--entity-name", 1), ("--entity-type", "brokers", "--entity-default")
    both.run_tool(CONFIGS, "--alter", *one, "--add-config", "log.retention.bytes=123456789")
    both.run_tool(CONFIGS, "--alter", *every, "--add-config", "log.retention.bytes=987654321")
    output = both.run_tool(CONFIGS, "--describe", *one)
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.bytes=987654321" in output
    both.run_tool(CONFIGS, "--alter", *one, "--delete-config", "log.retention.bytes")
    both.run_tool(CONFIGS, "--alter", *every, "--delete-config", "log.retention.bytes")
    assert "log.retention.bytes" not in both.run_tool(CONFIGS, "--describe", *one)
    for refusal in both.run_rejected(CONFIGS, "--alter", *one, "--add-config", "num.partitions=7"):
        assert "[num.partitions]" in refusal


def test_group_configs_are_changed_and_described(both: Both) -> None:
    group = ("--entity-type", "groups", "--entity-name", "told")
    assert "The group 'told' doesn't exist" in both.run_tool(CONFIGS, "--describe", *group)
    spans = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000"
    assert "Completed updating config for group told." in both.run_tool(
        CONFIGS, "--alter", *group, "--add-config", spans
    )
    output = both.run_tool(CONFIGS, "--describe", *group)
    assert (
        "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, DEFAULT_CONFIG:group.consumer.session.timeout"
        in output
    )
    both.run_tool(CONFIGS, "--alter", *group, "--delete-config", "consumer.session.timeout.ms")
    for everything in both.run_tool_at_each(CONFIGS, "--describe", "--entity-type", "groups"):
        assert "Dynamic configs for group told are:\n  consumer.heartbeat.interval.ms=6000 " in everything
    output = both.run_tool(CONFIGS, "--describe", *group)
    assert "consumer.heartbeat.interval.ms=6000" in output
    assert "consumer.session.timeout.ms" not in output
    both.run_tool(CONFIGS, "--alter", *group, "--delete-config", "consumer.heartbeat.interval.ms")
    assert "doesn't exist" in both.run_tool(CONFIGS, "--describe", *group)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("consumer.session.timeout.ms=99999", "consumer.session.timeout.ms"),
        ("consumer.heartbeat.interval.ms=99999", "consumer.heartbeat.interval.ms"),
        ("bogus=1", "Unknown group config name: bogus"),
    ],
)
def test_an_invalid_group_config_is_rejected(both: Both, change: str, reason: str) -> None:
    group = ("--entity-type", "groups", "--entity-name", "told")
    for refusal in both.run_rejected(CONFIGS, "--alter", *group, "--add-config", change):
        assert "InvalidConfigurationException" in refusal
        assert reason in refusal


def test_client_metrics_subscriptions_are_created_described_and_deleted(both: Both) -> None:
    command, named = "ClientMetricsCommand", ("--entity-type", "client-metrics", "--entity-name", "m")
    assert both.run_tool(command, "--list") == ""
    assert "doesn't exist" in both.run_tool(CONFIGS, "--describe", *named)
    wanted = ("--metrics", "org.apache.kafka.producer.", "--match", "client_id=a.*")
    both.run_tool(command, "--alter", "--name", "m", "--interval", 5000, *wanted)
    assert both.run_tool(command, "--list") == "m"
    output = both.run_tool(command, "--describe", "--name", "m")
    assert all(
        part in output for part in ("interval.ms=5000", "match=client_id=a.*", "metrics=org.apache.kafka.producer.")
    )
    both.run_tool(CONFIGS, "--alter", *named, "--delete-config", "interval.ms")
    assert "interval.ms" not in both.run_tool(CONFIGS, "--describe", *named)
    for refusal in both.run_rejected(CONFIGS, "--alter", *named, "--add-config", "bogus=1"):
        assert "InvalidRequestException" in refusal
    for refusal in both.run_rejected(CONFIGS, "--alter", *named, "--add-config", "match=bogus"):
        assert "InvalidConfigurationException" in refusal
    both.run_tool(command, "--delete", "--name", "m")
    assert both.run_tool(command, "--list") == ""


def test_records_are_counted_and_deleted_and_log_sizes_are_reported(both: Both, tmp_path: Path) -> None:
    both.run_tool("TopicCommand", "--create", "--topic", "counted", "--partitions", 2)
    for address in both.addresses:
        with Producer(bootstrap_servers=address) as producer:
            for number in range(6):
                producer.send("counted", b"x" * 100, partition=number % 2).result(30)
    assert both.run_tool("GetOffsetShell", "--topic", "counted") == "counted:0:3\ncounted:1:3"
    wanted = tmp_path / "delete.json"
    wanted.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "counted", "partition": 0, "offset": 2}]}),
    )
    assert "counted-0\tlow_watermark: 2" in both.run_tool("DeleteRecordsCommand", "--offset-json-file", wanted)
    assert "counted:0:2" in both.run_tool("GetOffsetShell", "--topic", "counted", "--time", "earliest")
    for address in both.addresses:
        output = both.tools.run(
            "LogDirsCommand", "--describe", "--topic-list", "counted", "--bootstrap-server", address
        )
        (broker,) = json.loads(output.text.splitlines()[-1])["brokers"]
        sizes = {each["partition"]: each["size"] for each in broker["logDirs"][0]["partitions"]}
        assert sizes.keys() == {"counted-0", "counted-1"}
        assert sizes["counted-1"] > 300


def test_features_and_the_quorum_are_described(tools: Tools, ottla_broker: str) -> None:
    at = ("--bootstrap-server", ottla_broker)
    features = tools.run("FeatureCommand", *at, "describe").text
    assert re.search(r"metadata\.version\s+SupportedMinVersion: 3\.3-IV3\s.*FinalizedVersionLevel: 4\.4-IV2", features)
    status = tools.run("MetadataQuorumCommand", *at, "describe", "--status").text
    assert re.search(r"^LeaderId:\s+1$", status, re.MULTILINE)
    assert re.search(r"^MaxFollowerLag:\s+0$", status, re.MULTILINE)
    assert re.search(r"^1 .*Leader", tools.run("MetadataQuorumCommand", *at, "describe", "--replication").text, re.M)
    # The format that Kafka prints after `format --standalone`: the voter has a directory id.
    assert re.search(r'^CurrentVoters:\s+\[\{"id": 1, "directoryId": "[^"]{22}"\}\]', status, re.M), status
    assert re.search(r"^CurrentObservers:\s+\[\]$", status, re.MULTILINE)
    assert re.search(r"^kraft\.version\s.*FinalizedVersionLevel: 1\b", features.replace("Feature: ", ""), re.M), (
        features
    )
    refused = tools.run("FeatureCommand", *at, "downgrade", "--feature", "metadata.version=32")
    assert refused.status == 1
    assert "Metadata of level 33 may exist" in refused.text


UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.mark.parametrize("way", [UPGRADE, SAFE, UNSAFE])
@pytest.mark.parametrize(
    ("feature", "level"),
    [
        *(("metadata.version", level) for level in (34, 33, 32, 31, 30, 29, 7, 6, 0, -1)),
        *(("share.version", level) for level in (3, 2, 1, 0)),
        *(("eligible.leader.replicas.version", level) for level in (2, 1, 0)),
        *((name, level) for name in ("group.version", "kraft.version", "streams.version") for level in (2, 1, 0)),
        *(("transaction.version", level) for level in (3, 2, 1, 0)),
        ("no.such.feature", 1),
    ],
)
def test_a_feature_level_is_accepted_or_rejected_as_by_kafka(both: Both, feature: str, level: int, way: int) -> None:
    request = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature, level, upgrade_type=way)], validate_only=True
    )
    codes = []
    for address in both.addresses:
        with Wire(address) as wire:
            response = wire.ask(request, 2)
        codes.append(ErrorCode(response.error_code).name)
    assert codes[0] == codes[1]


def test_a_controller_that_is_not_registered_cannot_be_unregistered(both: Both) -> None:
    for refusal in both.run_rejected("ClusterTool", "unregister-controller", "--id", 9):
        assert re.search("9 is (not currently )?registered|no controller 9", refusal)


def test_the_features_of_a_release_are_changed_as_far_as_they_are_supported(tools: Tools, ottla_broker: str) -> None:
    at = ("--bootstrap-server", ottla_broker, "upgrade", "--release-version", "4.4")
    tried, changed = tools.run("FeatureCommand", *at, "--dry-run"), tools.run("FeatureCommand", *at)
    for feature in (
        "group.version",
        "kraft.version",
        "metadata.version",
        "share.version",
        "streams.version",
        "transaction.version",
    ):
        assert re.search(rf"^{re.escape(feature)} can be upgraded to \d+\.$", tried.text, re.MULTILINE), tried.text
        assert re.search(rf"^{re.escape(feature)} was upgraded to \d+\.$", changed.text, re.MULTILINE), changed.text
    assert tried.status == changed.status == 0


LEVEL_CHANGES = (
    *(("downgrade", f"share.version={level}") for level in (1, 0)),
    ("upgrade", "share.version=2"),
    *(("downgrade", f"{name}=0") for name in ("streams.version", "group.version", "eligible.leader.replicas.version")),
    *(("upgrade", f"{name}=1") for name in ("streams.version", "group.version", "eligible.leader.replicas.version")),
    *(("downgrade", f"transaction.version={level}") for level in (1, 0)),
    *(("upgrade", f"transaction.version={level}") for level in (1, 2)),
    ("downgrade", "kraft.version=0"),
    ("upgrade", "kraft.version=1"),
    ("disable", "share.version"),
    ("upgrade", "share.version=3"),
    ("upgrade", "share.version=2"),
    ("downgrade", "share.version=2"),
)
"""Commands of `kafka-features`, of which some are rejected."""


def test_kafka_features_changes_each_level_as_at_kafka(both: Both) -> None:
    def finalized(address: str) -> dict[str, str]:
        text = both.tools.run("FeatureCommand", "--bootstrap-server", address, "describe").text
        return dict(re.findall(r"^(?:Feature: )?(\S+)\s.*FinalizedVersionLevel: (\S+)", text, re.MULTILINE))

    try:
        for verb, feature in LEVEL_CHANGES:
            words = ("FeatureCommand", verb, "--feature", feature, "--bootstrap-server")
            ours, theirs = (both.tools.run(*words, address) for address in both.addresses)
            assert ours.status == theirs.status, (verb, feature, ours.text, theirs.text)
            if not ours.status:
                assert ours.text == theirs.text
            wait_for(lambda: len({tuple(finalized(each).items()) for each in both.addresses}) == 1, f"{verb} {feature}")
    finally:
        for address in both.addresses:
            both.tools.run("FeatureCommand", "--bootstrap-server", address, "upgrade", "--release-version", "4.4")


def test_streams_groups_are_switched_off_and_on(tools: Tools, ottla_broker: str) -> None:
    feature = "streams.version"

    def run(*words: str) -> ToolResult:
        return tools.run("FeatureCommand", "--bootstrap-server", ottla_broker, *words)

    assert run("downgrade", "--feature", f"{feature}=0").status == 0
    assert re.search(rf"{re.escape(feature)}\s.*FinalizedVersionLevel: 0\b", run("describe").text)
    assert run("upgrade", "--feature", f"{feature}=1").status == 0
    assert re.search(rf"{re.escape(feature)}\s.*FinalizedVersionLevel: 1\b", run("describe").text)


def test_the_cluster_id_and_the_brokers_are_described(both: Both, tools: Tools, ottla_broker: str) -> None:
    at = ("--bootstrap-server", ottla_broker)
    assert re.fullmatch(r"Cluster ID: \S{22}", tools.run("ClusterTool", "cluster-id", *at).text)
    host, port = ottla_broker.split(":")
    endpoints = tools.run("ClusterTool", "list-endpoints", *at).text
    assert re.search(rf"^1\s+{re.escape(host)}\s+{port}\s", endpoints, re.MULTILINE)
    for refusal in both.run_rejected("ClusterTool", "unregister", "--id", 9):
        assert re.search("9 is (not currently )?registered", refusal)


def test_a_reassignment_is_verified_cancelled_and_throttled(both: Both, tmp_path: Path) -> None:
    both.run_tool("TopicCommand", "--create", "--topic", "moved", "--partitions", 2)
    plan = tmp_path / "plan.json"
    places = [{"topic": "moved", "partition": number, "replicas": [1]} for number in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": places}))
    tool, file = "reassign.ReassignPartitionsCommand", ("--reassignment-json-file", plan)
    output = both.run_tool(
        tool, *file, "--execute", "--throttle", 5_000_000, "--replica-alter-log-dirs-throttle", 5_000_000
    )
    assert "Successfully started partition reassignments for moved-0,moved-1" in output
    output = both.run_tool(tool, *file, "--verify")
    assert "Reassignment of partition moved-0 is completed." in output
    assert "Clearing broker-level throttles on broker 1" in output
    assert "Clearing topic-level throttles on topic moved" in output
    # What is not set is cleared just so.
    assert output == both.run_tool(tool, *file, "--verify")
    both.run_tool(tool, *file, "--cancel")
    assert "No partition reassignments found." in both.run_tool(tool, "--list")
    rates = "leader.replication.throttled.rate=1000,follower.replication.throttled.rate=1000"
    broker = ("--entity-type", "brokers", "--entity-name", 1)
    both.run_tool(CONFIGS, "--alter", *broker, "--add-config", rates)
    assert "DYNAMIC_BROKER_CONFIG:leader.replication.throttled.rate=1000" in both.run_tool(
        CONFIGS, "--describe", *broker
    )
    both.run_tool(tool, *file, "--verify")
    assert "throttled" not in both.run_tool(CONFIGS, "--describe", *broker)


class Disks:
    """The two directories of a broker. One of them contains a topic's only replica."""

    def __init__(self, address: str, folder: Path, topic: str) -> None:
        self.address = address
        copy = TopicPartitionReplica(topic, 0, 1)
        with Admin(bootstrap_servers=address) as admin:
            self.present = str(admin.describe_replica_log_dirs([copy])[copy].current_replica_log_dir)
        self.other = next(each for each in two(folder).split(",") if each != self.present)
        self.plan = folder / "plan.json"
        places = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [self.other]}
        self.plan.write_text(json.dumps({"version": 1, "partitions": [places]}))

    def run_tool(self, tools: Tools, *words: object) -> str:
        named = ("--bootstrap-server", self.address, "--reassignment-json-file", self.plan)
        said = tools.run("reassign.ReassignPartitionsCommand", *named, *words)
        assert said.status == 0, said
        return without_volatile_parts(said.text).replace(self.present, "PRESENT").replace(self.other, "OTHER")


def two(folder: Path) -> str:
    return f"{folder / 'a'},{folder / 'b'}"


def test_replicas_move_between_the_directories_of_a_broker(tools: Tools, tmp_path: Path) -> None:
    folders = [tmp_path / "ours", tmp_path / "kafkas"]
    for folder in folders:
        folder.mkdir()
    # Kafka keeps the folder of a removed replica for a minute by default, and checks for such folders every 30 seconds.
    soon = {"log.initial.task.delay.ms": "500", "log.segment.delete.delay.ms": "1000"}
    with Broker(log_dirs=two(folders[0])) as ours, rival.apache_kafka({"log.dirs": two(folders[1])} | soon) as kafka:
        both = Both(tools, ours.bootstrap_servers, kafka.bootstrap_servers)
        both.run_tool("TopicCommand", "--create", "--topic", "between")
        for address in both.addresses:
            with Producer(bootstrap_servers=address) as producer:
                for _ in range(16):
                    producer.send("between", os.urandom(500_000), partition=0)
        disks = [Disks(*each, "between") for each in zip(both.addresses, folders, strict=True)]

        def run_tool(*words: object) -> str:
            texts = [each.run_tool(tools, *words) for each in disks]
            assert texts[0] == texts[1]
            return texts[0]

        slowly, quickly = (("--replica-alter-log-dirs-throttle", rate) for rate in (1_000, 1_000_000_000))
        assert "Successfully started moving log directory to OTHER for replica between-0 with broker 1" in run_tool(
            "--execute", *slowly
        )
        assert "Reassignment of replica between-0-1 is still in progress." in run_tool("--verify")
        run_tool("--cancel")
        run_tool("--verify")
        run_tool("--execute", *quickly)
        done = "Reassignment of replica between-0-1 completed successfully."
        for each in disks:
            wait_for(lambda: done in each.run_tool(tools, "--verify"), f"{each.other} is not reached")  # noqa: B023
        run_tool("--verify")
        assert both.run_tool("GetOffsetShell", "--topic", "between") == "between:0:16"
        for each in disks:
            assert Path(each.other, "between-0").is_dir()
            wait_for(lambda: not list(Path(each.present).glob("between-0*")), f"{each.present} keeps a copy")  # noqa: B023


def test_dump_log_segments_decodes_snapshots_of_our_metadata(tmp_path: Path) -> None:
    with (
        Broker(tmp_path, metadata_log_max_record_bytes_between_snapshots=500) as broker,
        Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        for number in range(20):
            admin.create_topics([NewTopic(f"t{number}", 2, configs={"retention.ms": "1234567"})])
    folder = tmp_path / "__cluster_metadata-0"
    snapshot, log = max(folder.glob("*.checkpoint")), max(folder.glob("*.log"))
    output = dump(snapshot, "--cluster-metadata-decoder")
    assert "SnapshotHeader" in output
    assert "SnapshotFooter" in output
    assert '"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":33}' in output
    assert '"name":"t1"' in output
    for text in (output, dump(log, "--cluster-metadata-decoder")):
        assert "isvalid: false" not in text
        assert "Error" not in text
