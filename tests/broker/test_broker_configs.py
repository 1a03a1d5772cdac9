"""Settings of the broker that are changed at run time: applied at once, persistent, described with their source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages import alter_configs
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import Wire

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def change(wire: Wire, broker: str, name: str, operation: int, value: str | None = None) -> Any:
    """Return the error code for one change."""
    wish = AlterConfigsResource(BROKER, broker, [AlterableConfig(name, operation, value)])
    (answer,) = wire.ask(IncrementalAlterConfigsRequest([wish])).responses
    return answer


def list_synonyms(wire: Wire, kind: int, name: str, config: str) -> list[tuple[str, str | None, int]]:
    """A config's value by each of its sources, the one that counts first."""
    wanted = DescribeConfigsResource(kind, name, [config])
    (result,) = wire.ask(DescribeConfigsRequest([wanted], include_synonyms=True)).results
    return [(each.name, each.value, each.source) for config in result.configs for each in config.synonyms]


@pytest.mark.behaviour("B8")
def test_a_limit_of_the_broker_applies_at_once_to_topics_without_their_own(wire: Wire) -> None:
    wire.create("t")
    wire.create("own", max_message_bytes=5000)
    assert wire.produce("t", bytes(1000)).error_code == 0
    assert change(wire, "1", "message.max.bytes", SET, "500").error_code == 0
    assert wire.produce("t", bytes(1000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce("own", bytes(1000)).error_code == 0
    assert change(wire, "1", "message.max.bytes", DELETE).error_code == 0
    assert wire.produce("t", bytes(1000)).error_code == 0


def test_a_connection_limit_applies_at_once_and_keeps_open_connections(wire: Wire, broker: Broker) -> None:
    change(wire, "1", "max.connections", SET, "1")
    with Wire(broker.bootstrap_servers) as second:
        second.send(MetadataRequest([]), 1)
        assert list_synonyms(wire, BROKER, "1", "max.connections")[0] == ("max.connections", "1", 2)
        second.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            second.socket.recv(1)
        second.socket.settimeout(20)
        change(wire, "1", "max.connections", DELETE)
        assert second.receive(MetadataRequest([]), 1)[1].topics == []


def test_a_connection_above_the_limit_of_its_address_is_closed(wire: Wire, broker: Broker) -> None:
    change(wire, "1", "max.connections.per.ip", SET, "1")
    with Wire(broker.bootstrap_servers) as second, pytest.raises((EOFError, OSError)):
        second.ask(MetadataRequest([]), 1)
    change(wire, "1", "max.connections.per.ip", SET, "2")
    with Wire(broker.bootstrap_servers) as second:
        assert second.ask(MetadataRequest([]), 1).topics == []


def test_settings_of_the_log_cleaner_can_be_changed(tmp_path: Path) -> None:
    with Broker(tmp_path, log_cleaner_backoff_ms=50) as broker, Wire(broker.bootstrap_servers) as wire:
        change(wire, "", "log.cleaner.backoff.ms", SET, "20")
        change(wire, "", "log.cleaner.dedupe.buffer.size", SET, "1000")
        assert list_synonyms(wire, BROKER, "1", "log.cleaner.backoff.ms")[:2] == [
            ("log.cleaner.backoff.ms", "20", 3),
            ("log.cleaner.backoff.ms", "50", 4),
        ]


def test_a_value_of_one_broker_precedes_the_value_of_all_brokers(wire: Wire) -> None:
    wire.create("t")
    change(wire, "", "log.retention.ms", SET, "2000")
    change(wire, "1", "log.retention.ms", SET, "1000")
    layers = [("log.retention.ms", "1000", 2), ("log.retention.ms", "2000", 3)]
    assert list_synonyms(wire, BROKER, "1", "log.retention.ms") == layers
    assert list_synonyms(wire, TOPIC, "t", "retention.ms") == layers
    assert list_synonyms(wire, BROKER, "", "log.retention.ms") == layers[1:2]


def test_changes_persist_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        change(wire, "", "message.max.bytes", SET, "500")
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.produce("t", bytes(1000)).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_lists_are_appended_to_and_subtracted_from(wire: Wire) -> None:
    change(wire, "1", "log.cleanup.policy", APPEND, "compact")
    assert list_synonyms(wire, BROKER, "1", "log.cleanup.policy")[0][1] == "delete,compact"
    change(wire, "1", "log.cleanup.policy", SUBTRACT, "delete")
    assert list_synonyms(wire, BROKER, "1", "log.cleanup.policy")[0][1] == "compact"


@pytest.mark.parametrize(
    ("which", "name", "operation", "value", "code", "reason"),
    [
        ("1", "node.id", SET, "7", ErrorCode.INVALID_REQUEST, "a broker reads [node.id] when it starts"),
        ("", "num.partitions", SET, "7", ErrorCode.INVALID_REQUEST, "a broker reads [num.partitions] when it starts"),
        ("1", "no.such", APPEND, "7", ErrorCode.INVALID_CONFIG, "no.such is no list"),
        ("1", "no.such", SET, None, ErrorCode.INVALID_REQUEST, "no value is given"),
        (
            "1",
            "listener.name.plaintext.max.connection.creation.rate",
            SET,
            "7",
            ErrorCode.INVALID_REQUEST,
            "when it starts",
        ),
        ("1", "log.retention.ms", SET, "abc", ErrorCode.INVALID_REQUEST, "log.retention.ms"),
        ("1", "log.retention.ms", APPEND, "5", ErrorCode.INVALID_CONFIG, "is no list"),
        ("1", "log.retention.ms", SET, None, ErrorCode.INVALID_REQUEST, "no value is given"),
        (
            "7",
            "log.retention.ms",
            SET,
            "5",
            ErrorCode.INVALID_REQUEST,
            "this is broker 1, and only broker 7 can apply its configs",
        ),
        ("x", "log.retention.ms", SET, "5", ErrorCode.INVALID_REQUEST, "'x' is not a broker id"),
    ],
)
def test_an_invalid_change_is_rejected(
    wire: Wire, which: str, name: str, operation: int, value: str | None, code: int, reason: str
) -> None:
    answer = change(wire, which, name, operation, value)
    assert answer.error_code == code
    assert reason in answer.error_message


@pytest.mark.parametrize("which", ["1", ""])
@pytest.mark.parametrize("name", ["num.partitions", "no.such", "leader.replication.throttled.rate", "log.retention.ms"])
def test_deleting_a_config_that_is_not_set_is_no_error(wire: Wire, which: str, name: str) -> None:
    answer = change(wire, which, name, DELETE)
    assert (answer.error_code, answer.error_message) == (0, None)


@pytest.mark.parametrize(
    "name",
    [
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ],
)
def test_the_throttles_of_kafkas_tools_are_set_described_and_deleted(wire: Wire, name: str) -> None:
    assert list_synonyms(wire, BROKER, "1", name) == []
    assert change(wire, "1", name, SET, "1000000").error_code == 0
    assert list_synonyms(wire, BROKER, "1", name) == [(name, "1000000", 2)]
    assert change(wire, "1", name, DELETE).error_code == 0
    assert list_synonyms(wire, BROKER, "1", name) == []
    assert change(wire, "1", name, SET, "-5").error_code == ErrorCode.INVALID_REQUEST


def test_a_replacement_resets_the_configs_that_it_does_not_name(wire: Wire) -> None:
    change(wire, "1", "log.retention.ms", SET, "1000")
    wish = alter_configs.AlterConfigsResource(BROKER, "1", [alter_configs.AlterableConfig("log.retention.bytes", "9")])
    (answer,) = wire.ask(alter_configs.AlterConfigsRequest([wish])).responses
    assert answer.error_code == 0
    assert list_synonyms(wire, BROKER, "1", "log.retention.ms") == []
    assert list_synonyms(wire, BROKER, "1", "log.retention.bytes")[0] == ("log.retention.bytes", "9", 2)
    assert list_synonyms(wire, BROKER, "1", "log.retention.bytes")[0] == ("log.retention.bytes", "9", 2)


def test_tiered_storage_is_rejected(wire: Wire) -> None:
    wire.create("t")
    wish = AlterConfigsResource(TOPIC, "t", [AlterableConfig("remote.storage.enable", SET, "true")])
    (answer,) = wire.ask(IncrementalAlterConfigsRequest([wish])).responses
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert "keeps records on its own disk only" in answer.error_message


def described(wire: Wire, broker: str, config: str) -> Any:
    """Return the description of a broker config; None if it is not listed."""
    wanted = DescribeConfigsResource(BROKER, broker, [config])
    (result,) = wire.ask(DescribeConfigsRequest([wanted], include_synonyms=True)).results
    return next(iter(result.configs), None)


def test_a_kafka_config_without_effect_is_set_described_and_restored_after_a_restart(
    tmp_path: Path,
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert change(wire, "1", "log.cleaner.threads", SET, "2").error_code == 0
        assert change(wire, "1", "log.cleaner.threads", SET, "two").error_code == ErrorCode.INVALID_REQUEST
        assert change(wire, "1", "num.io.threads", DELETE).error_code == 0
        assert change(wire, "1", "socket.listen.backlog.size", SET, "2").error_code == ErrorCode.INVALID_REQUEST
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        name = "log.cleaner.threads"
        assert list_synonyms(wire, BROKER, "1", name) == [(name, "2", 2), (name, "1", 5)]
        found = described(wire, "1", name)
        assert (found.value, found.config_source, found.read_only, found.config_type) == ("2", 2, False, 3)
        change(wire, "1", name, DELETE)
        assert list_synonyms(wire, BROKER, "1", name) == [(name, "1", 5)]


@pytest.mark.parametrize(
    ("broker_id", "name"),
    [("1", "my.plugin.url"), ("", "my.plugin.url"), ("1", "listener.name.plaintext.my.plugin.url")],
)
def test_an_unknown_config_name_is_kept_and_its_value_is_not_returned(
    tmp_path: Path, broker_id: str, name: str
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert change(wire, broker_id, name, SET, "a secret").error_code == 0
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        found = described(wire, broker_id, name)
        source = 2 if broker_id else 3
        assert (found.value, found.is_sensitive, found.read_only) == (None, True, True)
        assert (found.config_source, found.config_type) == (source, 0)
        assert [(each.name, each.value, each.source) for each in found.synonyms] == [(name, None, source)]
        assert change(wire, broker_id, name, DELETE).error_code == 0
        assert described(wire, broker_id, name) is None


def test_a_kafka_list_without_effect_is_appended_to_and_set_for_the_cluster(wire: Wire) -> None:
    assert change(wire, "", "metric.reporters", APPEND, "org.example.Reporter").error_code == 0
    found = described(wire, "", "metric.reporters")
    both = "org.apache.kafka.common.metrics.JmxReporter,org.example.Reporter"
    assert (found.value, found.config_source, found.read_only, found.config_type) == (both, 3, False, 7)
    assert described(wire, "1", "metric.reporters").value == both


def test_alter_configs_keeps_an_unknown_config_name(wire: Wire) -> None:
    def replace_all(**configs: str) -> int:
        wanted = [alter_configs.AlterableConfig(name.replace("_", "."), value) for name, value in configs.items()]
        resource = alter_configs.AlterConfigsResource(BROKER, "1", wanted)
        return int(wire.ask(alter_configs.AlterConfigsRequest([resource])).responses[0].error_code)

    assert replace_all(cleanup_policy="delete", log_cleaner_threads="3") == 0
    found = described(wire, "1", "cleanup.policy")
    assert (found.value, found.is_sensitive, found.read_only) == (None, True, True)
    assert (found.config_source, found.config_type) == (2, 0)
    assert [(each.name, each.value, each.source) for each in found.synonyms] == [("cleanup.policy", None, 2)]
    assert described(wire, "1", "log.cleaner.threads").value == "3"
    assert replace_all(node_id="7") == ErrorCode.INVALID_REQUEST
    assert replace_all() == 0
    assert described(wire, "1", "cleanup.policy") is None
