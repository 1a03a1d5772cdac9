"""DescribeConfigs: every config, its value, where that is from, and what it means."""

from __future__ import annotations

import kafka
import kafka.admin
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.config_entries import ONLY_WHEN_SET, ConfigType, broker_entries, topic_entries
from ottla.broker.settings.dynamic_config import DynamicSettings
from ottla.broker.settings.topic_configs import TOPIC_CONFIGS
from ottla.broker.settings.unsupported_configs import OF_BROKERS
from ottla.config import options_of
from ottla.coordination.cluster.topic_configs import SCHEMA_VALIDATION, list_options
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.broker.wire import Wire

TOPIC, BROKER = 2, 4
KINDS = {
    "cleanup.policy": ConfigType.LIST,
    "compression.type": ConfigType.STRING,
    "compression.gzip.level": ConfigType.INT,
    "leader.replication.throttled.replicas": ConfigType.LIST,
    "max.message.bytes": ConfigType.INT,
    "min.cleanable.dirty.ratio": ConfigType.DOUBLE,
    "min.insync.replicas": ConfigType.INT,
    "preallocate": ConfigType.BOOLEAN,
    "retention.ms": ConfigType.LONG,
    "segment.ms": ConfigType.LONG,
    "num.partitions": ConfigType.INT,
    "connections.max.idle.ms": ConfigType.LONG,
    "listeners": ConfigType.LIST,
}


def describe(wire: Wire, kind: int, name: str, *names: str, version: int = 4) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(kind, name, names or None)
    (result,) = wire.ask(DescribeConfigsRequest([resource], True, version >= 3), version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result  # type: ignore[no-any-return]


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    assert result.error_code == 0, result.error_message
    return {entry.name: entry for entry in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_has_every_config_of_kafka(wire: Wire, version: int) -> None:
    wire.create("t", retention_ms=5)
    entries = by_name(describe(wire, TOPIC, "t", version=version))
    assert entries.keys() == list_options().keys() - set(SCHEMA_VALIDATION.values())
    mine, default = entries["retention.ms"], entries["preallocate"]
    assert (mine.value, mine.config_source, mine.read_only, mine.is_sensitive) == ("5", 1, False, False)
    assert (default.value, default.config_source) == ("false", 5)
    if version >= 3:
        assert mine.config_type == ConfigType.LONG
        assert mine.documentation == "The age after which a segment is deleted; -1 is never."


def test_synonyms_list_the_values_of_lower_precedence() -> None:
    with Broker(log_retention_ms=7) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", retention_ms=5)
        wire.create("u")
        (entry,) = describe(wire, TOPIC, "t", "retention.ms").configs
        synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms]
        assert synonyms == [
            ("retention.ms", "5", 1),
            ("log.retention.ms", "7", 4),
        ]
        (entry,) = describe(wire, TOPIC, "u", "retention.ms").configs
        assert (entry.value, entry.config_source) == ("7", 4)


@pytest.mark.parametrize(
    ("name", "value", "synonyms"),
    [
        ("file.delete.delay.ms", "60000", [("log.segment.delete.delay.ms", "60000", 5)]),
        ("preallocate", "false", [("log.preallocate", "false", 5)]),
        ("segment.bytes", "1073741824", [("log.segment.bytes", "1073741824", 5)]),
        ("unclean.leader.election.enable", "false", [("unclean.leader.election.enable", "false", 5)]),
        ("segment.ms", "604800000", []),
        ("flush.ms", "9223372036854775807", []),
        ("leader.replication.throttled.replicas", "", []),
        ("remote.storage.enable", "false", []),
    ],
)
def test_a_topic_config_has_the_synonyms_of_kafka(
    wire: Wire, name: str, value: str, synonyms: list[tuple[str, str, int]]
) -> None:
    wire.create("t")
    (entry,) = describe(wire, TOPIC, "t", name).configs
    assert (entry.value, entry.config_source) == (value, 5)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms] == synonyms


def test_the_advertised_addresses_are_described_as_a_config() -> None:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        entry = by_name(describe(wire, BROKER, "1"))["advertised.listeners"]
        assert (entry.value, entry.config_source) == (f"PLAINTEXT://{broker.bootstrap_servers}", 5)
        assert entry.config_type == ConfigType.LIST
    with (
        Broker(listeners="A://127.0.0.1:0", advertised_listeners="A://example.org:9094") as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        entry = by_name(describe(wire, BROKER, "1"))["advertised.listeners"]
        assert (entry.value, entry.config_source) == ("A://example.org:9094", 4)


def test_only_requested_configs_are_returned(wire: Wire) -> None:
    wire.create("t")
    resource = DescribeConfigsResource(TOPIC, "t", ["retention.ms", "no.such.config"])
    (result,) = wire.ask(DescribeConfigsRequest([resource])).results
    (entry,) = result.configs
    assert (entry.name, entry.synonyms, entry.documentation) == ("retention.ms", [], None)


def test_the_broker_describes_all_of_its_settings() -> None:
    with Broker(num_partitions=3) as broker, Wire(broker.bootstrap_servers) as wire:
        entries = by_name(describe(wire, BROKER, "1"))
        own = {option.name for option in options_of(BrokerConfig)} - ONLY_WHEN_SET
        assert entries.keys() == own | OF_BROKERS.keys()
        assert not own & OF_BROKERS.keys()
        entry = entries["num.partitions"]
        assert (entry.value, entry.config_source, entry.read_only) == ("3", 4, True)
        assert [(synonym.value, synonym.source) for synonym in entry.synonyms] == [("3", 4), ("1", 5)]
        assert entries["auto.create.topics.enable"].value == "true"


def test_a_setting_that_equals_its_default_is_described_as_set() -> None:
    for process in (False, True):
        with Broker(num_partitions=1, process=process) as broker, Wire(broker.bootstrap_servers) as wire:
            entries = by_name(describe(wire, BROKER, "1"))
            assert (entries["num.partitions"].value, entries["num.partitions"].config_source) == ("1", 4)
            assert entries["log.retention.ms"].config_source == 5


def test_only_configs_that_kafka_sets_itself_are_set_for_all_brokers(wire: Wire) -> None:
    (entry,) = by_name(describe(wire, BROKER, "")).values()
    assert (entry.name, entry.value, entry.config_source) == ("min.insync.replicas", "1", 3)


def test_min_insync_replicas_is_a_cluster_wide_default_as_in_kafka_with_elr() -> None:
    with Broker(min_insync_replicas=2) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        name = "min.insync.replicas"
        topic, own = by_name(describe(wire, TOPIC, "t"))[name], by_name(describe(wire, BROKER, "1"))[name]
        expected = [("2", 3), ("2", 4), ("1", 5)]
        assert [(each.value, each.source) for each in topic.synonyms] == expected
        assert [(each.value, each.source) for each in own.synonyms] == expected
        assert (topic.value, topic.config_source) == ("2", 3)


@pytest.mark.parametrize(
    ("kind", "name", "error", "message"),
    [
        (TOPIC, "nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no topic 'nobody'."),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION, "only letters, digits"),
        (BROKER, "2", ErrorCode.INVALID_REQUEST, "this is broker 1, not 2"),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "'x' is not a broker id"),
        (64, "1", ErrorCode.INVALID_REQUEST, "Unsupported resource type: 64"),
    ],
)
def test_a_resource_without_configs_is_rejected(wire: Wire, kind: int, name: str, error: int, message: str) -> None:
    result = describe(wire, kind, name)
    assert (result.error_code, result.configs) == (error, [])
    assert message in str(result.error_message)


def test_every_config_has_a_type_and_a_description() -> None:
    entries = [
        *topic_entries({}, DynamicSettings(BrokerConfig(), {})),
        *broker_entries(DynamicSettings(BrokerConfig(), {})),
    ]
    assert [entry.name for entry in entries if not entry.documentation] == []
    types = {entry.name: entry.config_type for entry in entries}
    assert {name: types[name] for name in KINDS} == KINDS


def test_the_broker_default_of_a_topic_config_is_kafkas() -> None:
    assert BrokerConfig().changed_topic_defaults() == {}
    assert BrokerConfig(log_roll_ms=5).changed_topic_defaults() == {"segment.ms": "5"}
    assert TOPIC_CONFIGS.keys() <= list_options().keys()


def test_a_created_topic_is_returned_with_all_of_its_configs() -> None:
    with Broker(message_max_bytes=9999) as broker, Wire(broker.bootstrap_servers) as wire:
        topic = CreatableTopic("t", 1, 1, configs=[CreatableTopicConfig("retention.ms", "5")])
        (result,) = wire.ask(CreateTopicsRequest([topic])).topics
        reported = {config.name: (config.value, config.config_source) for config in result.configs}
        assert reported.keys() == list_options().keys()
        assert reported["retention.ms"] == ("5", 1)
        assert reported["max.message.bytes"] == ("9999", 4)
        assert reported["cleanup.policy"] == ("delete", 5)


def test_confluents_admin_client_describes_configs(broker: Broker, wire: Wire) -> None:
    wire.create("t", retention_ms=5)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    resources = [ConfigResource(ConfigResource.Type.TOPIC, "t"), ConfigResource(ConfigResource.Type.BROKER, "1")]
    topic, node = (future.result(20) for future in admin.describe_configs(resources).values())
    assert (topic["retention.ms"].value, topic["cleanup.policy"].value) == ("5", "delete")
    assert ConfigSource(topic["retention.ms"].source) == ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert topic["cleanup.policy"].is_default
    assert node["num.partitions"].value == "1"


def test_kafka_pythons_admin_client_describes_configs(broker: Broker, wire: Wire) -> None:
    wire.create("t", retention_ms=5)
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, "t")
    found = admin.describe_configs([resource])
    admin.close()
    assert "retention.ms" in str(found)
