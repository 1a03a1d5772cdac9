"""IncrementalAlterConfigs and AlterConfigs: what is answered is in force."""

from __future__ import annotations

import time
from pathlib import Path

import kafka
import kafka.admin
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_configs import AlterConfigsRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.wire import Wire

SET, DELETE, APPEND, SUBTRACT = range(4)


def change(wire: Wire, name: str, *changes: AlterableConfig, kind: int = 2, version: int = 1, dry: bool = False) -> int:
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, changes)], dry)
    (response,) = wire.ask(request, version).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return int(response.error_code)


def value(wire: Wire, name: str, config: str) -> str:
    request = DescribeConfigsRequest([DescribeConfigsResource(2, name, [config])])
    return str(wire.ask(request).results[0].configs[0].value)


@pytest.mark.behaviour("B8")
@pytest.mark.parametrize("version", range(2))
def test_a_change_is_in_effect_when_it_is_answered(wire: Wire, version: int) -> None:
    wire.create("t")
    assert wire.produce("t", bytes(500)).error_code == 0
    assert change(wire, "t", AlterableConfig("max.message.bytes", SET, "400"), version=version) == 0
    assert wire.produce("t", bytes(500)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert change(wire, "t", AlterableConfig("max.message.bytes", DELETE), version=version) == 0
    assert wire.produce("t", bytes(500)).error_code == 0


def test_a_change_is_in_effect_before_the_first_record_and_in_new_partitions(wire: Wire) -> None:
    wire.create("t")
    assert change(wire, "t", AlterableConfig("message.timestamp.type", SET, "LogAppendTime")) == 0
    assert wire.produce("t", b"a").log_append_time_ms > 0


def test_a_topic_requires_no_more_in_sync_replicas_than_it_has(wire: Wire) -> None:
    wire.create("t")
    assert change(wire, "t", AlterableConfig("min.insync.replicas", SET, "2")) == 0
    assert value(wire, "t", "min.insync.replicas") == "2"
    assert wire.produce("t", b"a").error_code == 0


@pytest.mark.behaviour("B8")
def test_records_are_deleted_when_retention_is_shortened() -> None:
    with Broker(log_retention_check_interval_ms=10) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", retention_ms=-1)
        wire.produce("t", b"from long ago")
        assert change(wire, "t", AlterableConfig("retention.ms", SET, "1000")) == 0
        deadline = time.monotonic() + 20
        while wire.fetch("t").error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            assert time.monotonic() < deadline


def test_lists_are_appended_to_and_subtracted_from(wire: Wire) -> None:
    wire.create("t")
    assert change(wire, "t", AlterableConfig("cleanup.policy", APPEND, "compact")) == 0
    assert value(wire, "t", "cleanup.policy") == "delete,compact"
    assert change(wire, "t", AlterableConfig("cleanup.policy", SUBTRACT, "delete")) == 0
    assert value(wire, "t", "cleanup.policy") == "compact"


def test_a_validated_change_is_not_applied(wire: Wire) -> None:
    wire.create("t", retention_ms=5)
    assert change(wire, "t", AlterableConfig("retention.ms", SET, "6"), dry=True) == 0
    assert change(wire, "t", AlterableConfig("retention.ms", SET, "soon"), dry=True) == ErrorCode.INVALID_CONFIG
    assert value(wire, "t", "retention.ms") == "5"


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (2, "", "INVALID_REQUEST"),
        (2, "u", "UNKNOWN_TOPIC_OR_PARTITION"),
        (4, "one", "INVALID_REQUEST"),
        (64, "1", "INVALID_REQUEST"),
    ],
)
def test_an_invalid_change_is_rejected(wire: Wire, kind: int, name: str, error: str) -> None:
    assert change(wire, name, AlterableConfig("retention.ms", SET, "1"), kind=kind) == ErrorCode[error]


def test_kafka_configs_without_effect_are_accepted(wire: Wire) -> None:
    # librdkafka's own tests and confluent-kafka's set it, as it does no harm.
    assert change(wire, "1", AlterableConfig("sasl.kerberos.min.time.before.relogin", SET, "58000"), kind=4) == 0


def test_each_resource_is_named_once_and_has_its_own_result(wire: Wire) -> None:
    wire.create("t")
    good = AlterConfigsResource(2, "t", [AlterableConfig("retention.ms", SET, "7")])
    bad = AlterConfigsResource(2, "u", [AlterableConfig("retention.ms", SET, "7")])
    responses = wire.ask(IncrementalAlterConfigsRequest([good, bad])).responses
    assert [response.error_code for response in responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert value(wire, "t", "retention.ms") == "7"
    responses = wire.ask(IncrementalAlterConfigsRequest([good, good])).responses
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", range(3))
def test_a_replacement_resets_the_configs_that_it_does_not_name(wire: Wire, version: int) -> None:
    wire.create("t", retention_ms=5, max_message_bytes=400)
    resource = alter_configs.AlterConfigsResource(2, "t", [alter_configs.AlterableConfig("retention.ms", "6")])
    (response,) = wire.ask(AlterConfigsRequest([resource]), version).responses
    assert (response.resource_name, response.error_code) == ("t", 0)
    assert value(wire, "t", "retention.ms") == "6"
    assert wire.produce("t", bytes(500)).error_code == 0


def test_both_apis_return_the_same_errors(wire: Wire) -> None:
    wire.create("t")
    old = alter_configs.AlterConfigsResource(2, "t", [alter_configs.AlterableConfig("retention.mss", "6")])
    new = incremental_alter_configs.AlterConfigsResource(2, "t", [AlterableConfig("retention.mss", SET, "6")])
    for request in (AlterConfigsRequest([old]), IncrementalAlterConfigsRequest([new])):
        (response,) = wire.ask(request).responses
        assert response.error_code == ErrorCode.INVALID_CONFIG
        assert response.error_message == "unknown topic config 'retention.mss'; did you mean 'retention.ms'?"


def test_changes_persist_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", flush_ms=5)
        wire.produce("t", bytes(500))
        changes = AlterableConfig("max.message.bytes", SET, "400"), AlterableConfig("flush.ms", DELETE)
        assert change(wire, "t", *changes) == 0
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.produce("t", bytes(500)).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert value(wire, "t", "flush.ms") == str(2**63 - 1)


@pytest.mark.behaviour("B8")
def test_confluents_admin_client_changes_configs(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    entries = [
        ConfigEntry("retention.ms", "5", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=entries)
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(20)
    assert (value(wire, "t", "retention.ms"), value(wire, "t", "cleanup.policy")) == ("5", "delete,compact")
    resource = ConfigResource(ConfigResource.Type.TOPIC, "t", set_config={"flush.ms": "9"})
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        (changed,) = admin.alter_configs([resource]).values()
    changed.result(20)
    assert (value(wire, "t", "retention.ms"), value(wire, "t", "flush.ms")) == ("604800000", "9")


def test_kafka_pythons_admin_client_changes_configs(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, "t", {"retention.ms": "5"})
    admin.alter_configs([resource])
    admin.close()
    assert value(wire, "t", "retention.ms") == "5"
