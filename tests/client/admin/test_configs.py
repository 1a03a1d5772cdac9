"""Configs of topics and brokers through our admin client; those of groups are in tests/broker/test_group_configs.py."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import Admin
from ottla.client.admin import ConfigResource
from ottla.client.admin.config_calls import result_error
from ottla.client.admin.config_resource import KINDS
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.incremental_alter_configs import AlterConfigsResourceResponse
from tests.client.conftest import fresh_name


def test_a_topic_config_is_set_described_with_its_source_and_deleted(admin: Admin, topic: str) -> None:
    resource = ConfigResource("topic", topic)
    admin.alter_configs({resource: {"segment.ms": 3_600_000, "cleanup.policy": ["compact", "delete"]}})
    found = admin.describe_configs([resource])[resource]
    assert (found["segment.ms"].value, found["segment.ms"].source) == ("3600000", "DYNAMIC_TOPIC_CONFIG")
    assert found["cleanup.policy"].value == "compact,delete"
    admin.alter_configs({resource: {"segment.ms": None}})
    assert admin.describe_configs([resource])[resource]["segment.ms"].is_default


def test_validated_configs_are_not_changed(admin: Admin, topic: str) -> None:
    resource = ConfigResource("topic", topic)
    admin.alter_configs({resource: {"preallocate": True}}, validate_only=True)
    assert admin.describe_configs([resource])[resource]["preallocate"].value == "false"


def test_broker_configs_are_described_by_that_broker(admin: Admin) -> None:
    (broker,) = admin.list_config_resources(["broker"])
    found = admin.describe_configs([broker])[broker]
    assert found["node.id"].value == broker.name
    assert found["node.id"].read_only
    assert not found["log.retention.ms"].read_only


def test_each_resource_is_altered_independently_and_every_error_is_reported(admin: Admin, topic: str) -> None:
    missing, there = ConfigResource("topic", fresh_name()), ConfigResource("topic", topic)
    with pytest.raises(KafkaError) as caught:
        admin.alter_configs({missing: {"retention.ms": 1}, there: {"retention.ms": 77}})
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.describe_configs([there])[there]["retention.ms"].value == "77"


def test_an_error_names_the_resource_that_is_missing_from_the_response() -> None:
    def describe_error(code: int, message: str | None) -> str:
        return str(result_error(AlterConfigsResourceResponse(code, message, KINDS["topic"], "flights")))

    assert (
        describe_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        == "UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'flights'"
    )
    assert describe_error(ErrorCode.INVALID_CONFIG, None) == "INVALID_CONFIG: topic 'flights'"
    assert describe_error(ErrorCode.INVALID_CONFIG, "no number") == "INVALID_CONFIG: no number"


def test_describing_a_nonexistent_broker_raises_an_error_that_names_it(admin: Admin) -> None:
    with pytest.raises(KafkaError, match="there is no broker 4711"):
        admin.describe_configs([ConfigResource("broker", "4711")])


@pytest.mark.parametrize("wrong", ["topic", ("tropic", "t"), ("topic", "t", "u")])
def test_a_resource_type_without_configs_is_a_clear_error(admin: Admin, wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a resource with configs: write ConfigResource\(kind, name\)"):
        admin.describe_configs([wrong])
